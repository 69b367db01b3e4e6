//! What a target demands of a history.

use crate::model::format::Format;

/// The output of a call that nobody answered.
pub const NO_RESULT: &str = "[No tool result available]";
/// The user message before a history that begins with the model.
pub const BEGINNING: &str = "[The conversation begins here.]";
/// The user message after a history that ends with the model.
pub const CONTINUE: &str = "[Continue.]";

/// What a target demands of a history. Start from [`RepairRules::for_format`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RepairRules {
    /// The format the history will be written in. What its writer leaves out says nothing there: such a
    /// message is taken out, and such another item is no beginning, no end and nothing a thought led to.
    /// For Anthropic that is, among others, text of white space only.
    pub target: Format,
    /// What becomes of a call that nobody answered. A custom tool's call, or another call that is no
    /// function's, is always taken out: no output can be made up for it.
    pub unanswered: Unanswered,
    /// What call ids may look like.
    pub call_ids: CallIds,
    /// Whether an item's id may stand only once: a thought that stands again is taken out, another
    /// item loses its id.
    pub unique_item_ids: bool,
    /// Whether the first message must be the user's; else [`BEGINNING`] is put before it.
    pub user_first: bool,
    /// Whether the last message must be the user's or a tool's, because the model takes no beginning
    /// of its own answer (prefill); else [`CONTINUE`] is put behind it.
    pub user_last: bool,
}

/// What becomes of a call that nobody answered.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// It gets the output [`NO_RESULT`], so that the model sees what it wanted.
    #[default]
    Placeholder,
    /// It is taken out, as are thoughts that led to nothing else.
    Strip,
}

/// What call ids may look like; an id that may not is replaced by one derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallIds {
    /// The longest id, in bytes; at least 16.
    pub max_bytes: usize,
    /// Which characters it may hold.
    pub charset: Charset,
}

/// Which characters an id may hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Any.
    Any,
    /// `A-Z a-z 0-9 _ -`.
    Plain,
}

impl CallIds {
    /// Whether the target takes an id.
    #[must_use]
    pub fn accepts(&self, id: &str) -> bool {
        let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        !id.is_empty()
            && id.len() <= self.max_bytes.max(16)
            && (self.charset == Charset::Any || id.bytes().all(plain))
    }
}

impl RepairRules {
    /// The rules of a format that wants nothing but pairs: any id, either side first and last.
    pub(crate) const fn pairs_only(target: Format) -> Self {
        Self {
            target,
            unanswered: Unanswered::Placeholder,
            call_ids: CallIds {
                max_bytes: usize::MAX,
                charset: Charset::Any,
            },
            unique_item_ids: false,
            user_first: false,
            user_last: false,
        }
    }
}
