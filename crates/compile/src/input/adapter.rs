//! [`TargetAdapter`]: a program's own way to write requests, for a provider that no format describes.
//!
//! The compiler decides as for any target: what is said, how much of the history fits, what is cleared. The adapter is
//! given the outcome as a transcript and writes the provider's JSON. It decides nothing, so the report holds for any
//! adapter, and so does the post-condition on what the adapter is given.
//!
//! What only a format can have, an adapter has not: cache markers, predictions of what a provider's cache holds, native
//! compactions.

use std::fmt;
use std::ops::Deref;
use std::sync::Arc;

use contexture_ir::{Raw, Transcript};
use contexture_wire::{Format, Overhead, RepairRules};

/// Writes requests for a provider that no [`Format`] describes.
///
/// ```
/// use std::sync::Arc;
///
/// use contexture_catalogue::Catalogue;
/// use contexture_compile::{AdapterError, Compiler, Target, TargetAdapter};
/// use contexture_ir::{Item, Message, Raw, Role, Transcript};
/// use serde_json::json;
///
/// /// A provider that takes one prompt.
/// #[derive(Debug)]
/// struct PlainPrompt;
///
/// impl TargetAdapter for PlainPrompt {
///     fn name(&self) -> &str {
///         "plain-prompt"
///     }
///
///     fn encode_request(&self, request: &Transcript) -> Result<Raw, AdapterError> {
///         let prompt: Vec<String> = request.items.iter().map(Item::text).collect();
///         Ok(Raw::from_value(&json!({"prompt": prompt.join("\n")}))?)
///     }
/// }
///
/// let target = Target::custom(Arc::new(PlainPrompt), "our-model").window(8_000);
/// let items = [Message::text(Role::User, "Bonjour.").into()];
/// let compiled = Compiler::new(Catalogue::builtin()).compile(&items, &target)?;
/// assert_eq!(compiled.payload.to_json(), r#"{"prompt":"Bonjour."}"#);
/// # Ok::<(), contexture_compile::CompileError>(())
/// ```
pub trait TargetAdapter: fmt::Debug + Send + Sync {
    /// Returns the name that stands for the format in reports, stored calls and telemetry: `cohere`.
    ///
    /// Two adapters that write different requests need different names: what one conversation learned about a target
    /// (its plan, calibrated counts) is kept under the adapter's name and the model's.
    fn name(&self) -> &str;

    /// Writes the provider's request.
    ///
    /// The transcript holds everything that is to be sent: `model`, the system prompt in `instructions`, the history in
    /// `items` (every output follows its call), `tools`, `options` with the output limit, and the parameters of the
    /// target in `extra`. The same transcript must give the same JSON.
    ///
    /// # Errors
    /// [`AdapterError`] for what the provider cannot be sent; the compile is refused with it.
    fn encode_request(&self, request: &Transcript) -> Result<Raw, AdapterError>;

    /// Returns the tokens that the provider adds around messages, calls and tools. The budget counts with the upper
    /// bounds. Default: bounds that hold for every provider known so far.
    fn overhead(&self) -> Overhead {
        Overhead::WIDEST
    }

    /// Returns what the provider demands of a history; its `target` has no effect. Default: every call has its output,
    /// and nothing else.
    fn repair_rules(&self) -> RepairRules {
        RepairRules::for_format(Format::Items)
    }
}

/// Why an adapter cannot write a request.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{reason}")]
pub struct AdapterError {
    /// The reason, as a sentence fragment: `documents are not supported`.
    pub reason: String,
}

impl AdapterError {
    /// An error with this reason.
    #[must_use]
    pub fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
        }
    }
}

impl From<contexture_ir::Error> for AdapterError {
    fn from(error: contexture_ir::Error) -> Self {
        Self::new(error.to_string())
    }
}

/// An adapter that is shared by the clones of a target. Equal only to itself: code cannot be compared.
#[derive(Clone, Debug)]
pub struct SharedAdapter(Arc<dyn TargetAdapter>);

impl SharedAdapter {
    /// Shares an adapter.
    #[must_use]
    pub fn new(adapter: Arc<dyn TargetAdapter>) -> Self {
        Self(adapter)
    }

    /// Returns what the provider demands of a history, written as items.
    pub(crate) fn item_rules(&self) -> RepairRules {
        RepairRules {
            target: Format::Items,
            ..self.0.repair_rules()
        }
    }
}

impl Deref for SharedAdapter {
    type Target = dyn TargetAdapter;

    fn deref(&self) -> &Self::Target {
        &*self.0
    }
}

impl PartialEq for SharedAdapter {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}
