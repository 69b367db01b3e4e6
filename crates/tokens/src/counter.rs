//! The trait of everything that counts tokens of text.

use std::fmt::Debug;

use crate::count::TokenCount;

/// Counts the tokens of a text for one encoding.
///
/// Implementations depend on nothing but the text, so that counts can be remembered: equal names mean equal counts.
///
/// ```
/// use contexture_tokens::{TokenCount, TokenCounter};
///
/// /// A model that reads bytes.
/// #[derive(Debug)]
/// struct Bytes;
///
/// impl TokenCounter for Bytes {
///     fn name(&self) -> &str {
///         "bytes"
///     }
///     fn count(&self, text: &str) -> TokenCount {
///         TokenCount::exact(text.len() as u64)
///     }
/// }
///
/// let counter: &dyn TokenCounter = &Bytes;
/// assert_eq!(counter.count_up_to("four", 3), None);
/// ```
pub trait TokenCounter: Debug + Send + Sync {
    /// The encoding's name; counters of one name count alike.
    fn name(&self) -> &str;

    /// Counts a text; text that spells special tokens counts as text.
    fn count(&self, text: &str) -> TokenCount;

    /// Counts a text unless it may have more than `limit` tokens (its `high` is above `limit`).
    ///
    /// Cheaper than [`Self::count`] for texts far above the limit, where the counter can tell early.
    fn count_up_to(&self, text: &str, limit: u64) -> Option<TokenCount> {
        let count = self.count(text);
        (count.high <= limit).then_some(count)
    }
}
