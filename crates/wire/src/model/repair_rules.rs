//! What a target demands of a history.

use contexture_ir::Item;

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
    /// The format that the history will be written in. A message of which its writer would write nothing is removed;
    /// any other such item does not count as the beginning, the end or what a thought led to. For Anthropic this
    /// includes text of white space only.
    pub target: Format,
    /// What becomes of a call without an output. A call that is not a function's, such as a custom tool's, is always
    /// removed, because no output can be made up for it.
    pub unanswered: Unanswered,
    /// The form of call ids that the target accepts.
    pub call_ids: CallIds,
    /// Whether each item id may occur only once: a repeated thought is removed, any other item loses the repeated id.
    pub unique_item_ids: bool,
    /// Whether the first message must be the user's; else [`BEGINNING`] is put before it.
    pub user_first: bool,
    /// Whether the last message must be the user's or a tool's, because the model takes no beginning
    /// of its own answer (prefill); else [`CONTINUE`] is put behind it.
    pub user_last: bool,
    /// Whether the model's calls must directly follow the user's side, so that its messages before them join theirs.
    pub calls_open_turns: bool,
    /// Whether the model continues a beginning of its answer that the history ends with. Such a beginning may not end
    /// with white space, and holds thoughts only where the request has the model think.
    pub prefill: bool,
    /// Whether the provider keeps what came before the history (`previous_response_id`), so that an output may answer a
    /// call that is not in it.
    pub kept_beginning: bool,
    /// How the request has the model think. [`Thinking::Budgeted`] demands that an open round of tools began with a
    /// thought.
    pub thinking: Thinking,
}

/// How a request has its model think, as far as that decides which histories are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Thinking {
    /// Not at all, or in a way that demands nothing of the history.
    #[default]
    Off,
    /// As much as the model decides: thoughts may stand anywhere in its turn, but it continues no begun answer.
    Adaptive,
    /// With a budget: the turn of a model that calls tools must begin with a thought.
    Budgeted,
}

/// What of a request decides which histories are accepted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RequestTraits {
    /// Whether its model continues a begun answer where it does not think.
    pub prefill: bool,
    /// How it has its model think.
    pub thinking: Thinking,
}

/// What repair does about an item that the provider refuses whatever stands beside it; reasons are sentence fragments
/// without a full stop.
#[derive(Clone, Debug, PartialEq)]
pub enum ItemRepair {
    /// It is taken out.
    Remove(&'static str),
    /// It is written as this one.
    Replace(Item, &'static str),
}

impl ToolRefusal {
    /// Returns a stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::DuplicateName { .. } => "duplicate_tool",
            Self::TooMany { .. } => "too_many_tools",
        }
    }
}

/// What a target demands of the tools that a request offers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolRules {
    /// Whether a schema of arguments may have `anyOf`, `oneOf` or `allOf` beside its properties.
    pub combined_schemas: bool,
    /// Whether an array in a schema of arguments may leave open what its items are.
    pub open_arrays: bool,
    /// Whether a request may have a list of tools that is empty.
    pub empty_list: bool,
}

impl ToolRules {
    /// The rules of a format that demands nothing.
    pub(crate) const NONE: Self = Self {
        combined_schemas: true,
        open_arrays: true,
        empty_list: true,
    };
}

/// Why a list of tools cannot be offered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolRefusal {
    /// Two different tools have one name, so a call of it could mean either.
    #[error("two different tools are called `{name}`: tools[{first}] and tools[{second}]")]
    DuplicateName {
        /// The name that both have.
        name: String,
        /// The index of the first of them.
        first: usize,
        /// The index of the other.
        second: usize,
    },
    /// There are more tools than the model takes.
    #[error("{count} of at most {limit} tools")]
    TooMany {
        /// The number of tools.
        count: usize,
        /// The most that the model takes.
        limit: usize,
    },
}

/// What becomes of a call without an output.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Unanswered {
    /// It gets the output [`NO_RESULT`], so that the model sees what it wanted.
    #[default]
    Placeholder,
    /// It is removed, and so are thoughts that led to nothing else.
    Strip,
}

/// The form of call ids that a target accepts; any other id is replaced by one derived from it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallIds {
    /// The length of the longest id in bytes; less than 16 counts as 16.
    pub max_bytes: usize,
    /// The characters that an id may contain.
    pub charset: Charset,
}

/// The characters that an id may contain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Charset {
    /// Any character, ASCII or not.
    Any,
    /// Only the characters `A-Z a-z 0-9 _ -`.
    Plain,
}

impl CallIds {
    /// Reports whether the target accepts an id; an empty one is never accepted.
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
            calls_open_turns: false,
            prefill: false,
            kept_beginning: false,
            thinking: Thinking::Off,
        }
    }

    /// The same for a request with members of these names, one of which may say that the provider keeps the beginning of
    /// its history.
    #[must_use]
    pub fn for_members<'n>(self, mut names: impl Iterator<Item = &'n str>) -> Self {
        let members = self.target.spec().members();
        let kept = members.map_or(&[][..], |members| members.provider_history);
        let kept_beginning = names.any(|name| kept.contains(&name));
        Self {
            kept_beginning,
            user_first: self.user_first && !kept_beginning,
            ..self
        }
    }

    /// The same for a request.
    #[must_use]
    pub fn for_request(self, request: RequestTraits) -> Self {
        let RequestTraits { prefill, thinking } = request;
        let prefill = prefill && thinking == Thinking::Off;
        Self {
            // Formats that take either end have no rule about a begun answer.
            prefill: self.user_last && prefill,
            user_last: self.user_last && !prefill,
            thinking,
            ..self
        }
    }
}
