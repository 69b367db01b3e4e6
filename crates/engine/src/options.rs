//! What a call says and heeds beside its conversation.

use contexture_compile::{Cancel, Contribution};

/// How to compile a call; see [`Conversation::compile_with`](crate::Conversation::compile_with). A list of
/// contributions is options that say these too.
///
/// ```
/// use contexture_compile::Cancel;
/// use contexture_engine::CompileOptions;
///
/// let cancel = Cancel::new();
/// // Kept by another thread, say: one that notices that nobody waits any more.
/// let elsewhere = cancel.clone();
/// let options = CompileOptions { cancel: Some(&cancel), ..CompileOptions::default() };
/// # elsewhere.cancel();
/// # assert!(options.cancel.is_some_and(Cancel::is_cancelled));
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct CompileOptions<'a> {
    /// What is said too, behind what the handle says. Default: nothing.
    pub also: &'a [Contribution],
    /// What may call the compile off from another thread; it is looked at between the passes. Default:
    /// nothing.
    pub cancel: Option<&'a Cancel>,
}

impl<'a> From<&'a [Contribution]> for CompileOptions<'a> {
    fn from(also: &'a [Contribution]) -> Self {
        Self {
            also,
            ..Self::default()
        }
    }
}

impl<'a, const N: usize> From<&'a [Contribution; N]> for CompileOptions<'a> {
    fn from(also: &'a [Contribution; N]) -> Self {
        Self::from(also.as_slice())
    }
}

impl<'a> From<&'a Vec<Contribution>> for CompileOptions<'a> {
    fn from(also: &'a Vec<Contribution>) -> Self {
        Self::from(also.as_slice())
    }
}
