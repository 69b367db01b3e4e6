//! What a provider's prompt cache compares: the blocks of a request ([`OutlineBlock`]) and, as data, everything beside its
//! text ([`CacheKeyRules`]).
//!
//! What differs between models (minimum lengths, times, prices) is the catalogue's. Not here: cache markers, which are
//! edits of a request (`CacheMarkers` in `spec.rs`), and hashes, tokens and segments, which the model of prompt caches
//! makes of the blocks.

use contexture_ir::Fields;
use serde_json::value::RawValue;

use crate::model::chunk::CacheTtl;

/// The parts of a request, in the cache's order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RequestPart {
    /// The definitions of tools.
    Tools,
    /// The form of the answer and how much to think, where they stand before the system prompt.
    Form,
    /// The system prompt.
    System,
    /// What else must be equal for messages to be read from the cache: the choice of a tool, thinking.
    Settings,
    /// The array of messages.
    Messages,
}

impl RequestPart {
    /// Returns the name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Tools => "tools",
            Self::Form => "form",
            Self::System => "system",
            Self::Settings => "settings",
            Self::Messages => "messages",
        }
    }
}

/// A setting of a request that is part of the prefix which a provider caches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrefixSetting {
    /// The path of its members: `["reasoning", "effort"]`.
    pub path: &'static [&'static str],
    /// The part of the request in whose place it stands in the cache's order.
    pub part: RequestPart,
    /// The provider's word for its change; empty where it has none.
    pub reason: &'static str,
}

impl PrefixSetting {
    /// Describes a setting.
    #[must_use]
    pub const fn new(
        path: &'static [&'static str],
        part: RequestPart,
        reason: &'static str,
    ) -> Self {
        Self { path, part, reason }
    }
}

/// What a provider's prompt cache compares beside the text, and what it calls a difference.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CacheKeyRules {
    /// The settings that are part of the prefix.
    pub settings: &'static [PrefixSetting],
    /// The members that a cache is never shared across, beside the model, each with the provider's word for its change.
    pub scopes: &'static [(&'static str, &'static str)],
    /// The provider's words for other changes.
    pub reasons: ChangeReasons,
    /// Whether a model that caches only what is marked takes its markers in this format. Elsewhere such a model has no
    /// cache that could be asked for.
    pub explicit_markers: bool,
    /// The member by which requests with one prefix are brought to one machine; `None` if there is none.
    pub routing_key: Option<RoutingKey>,
    /// How a request names a cache object that was made beforehand; `None` where there are no such objects.
    pub cached_content: Option<CachedContentRules>,
    /// The members that may differ between two requests of one prefix.
    pub free: FreeMembers,
}

impl CacheKeyRules {
    /// The rules of a format of which nothing is known.
    pub const NONE: Self = Self {
        settings: &[],
        scopes: &[],
        reasons: ChangeReasons {
            system: "system_changed",
            messages: "messages_changed",
            compaction: None,
        },
        explicit_markers: false,
        routing_key: None,
        cached_content: None,
        free: FreeMembers::NONE,
    };
}

/// The members of a request that the provider documents as no part of what its cache compares, as far as a request of ours
/// that goes on from a client's has to change them. A member that is not listed stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FreeMembers {
    /// The members that belong to a stream, each with its value in a request for a whole answer.
    pub not_streamed: &'static [(&'static str, &'static str)],
    /// The spellings of the limit of the answer; empty where it must stay.
    pub output_limit: &'static [&'static str],
    /// Whether the provider keeps answers; `None` where a request cannot say.
    pub stored: Option<StoredAnswers>,
}

impl FreeMembers {
    /// No member may differ.
    pub const NONE: Self = Self {
        not_streamed: &[],
        output_limit: &[],
        stored: None,
    };
}

/// The member by which a request says whether the provider keeps its answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredAnswers {
    /// The name of the member, a boolean.
    pub member: &'static str,
    /// Whether an answer is kept where the request does not say.
    pub by_default: bool,
}

/// A provider's words for what changed between two requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ChangeReasons {
    /// The word for a change of the system prompt.
    pub system: &'static str,
    /// The word for a change of the messages.
    pub messages: &'static str,
    /// The word for a compaction that stands where there was none: the JSON by which it is known, and the word; `None`
    /// where it is a change like others.
    pub compaction: Option<(&'static str, &'static str)>,
}

/// A member by which requests with one prefix are brought to one machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RoutingKey {
    /// The name of the member.
    pub member: &'static str,
    /// The catalogue's name of the only provider that is known to accept it: an unknown member may be refused.
    pub provider: &'static str,
}

/// How a request names a cache object that was made beforehand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CachedContentRules {
    /// The member that names the object; the first spelling is the one that is written.
    pub members: [&'static str; 2],
    /// What stands before a model's name in the request that makes an object.
    pub model_prefix: &'static str,
}

/// Receives the blocks of a request in the cache's order: tools, system prompt, messages.
pub trait OutlineVisitor<'a> {
    /// Takes the next block.
    fn visit_block(&mut self, block: OutlineBlock<'a, '_>);
}

/// One block of a request: a tool, a block of the system prompt, a content block of a message.
#[derive(Debug)]
pub struct OutlineBlock<'a, 'f> {
    /// The part of the request that it belongs to.
    pub part: RequestPart,
    /// Where it stands in the request: `messages[12].content[0]`.
    pub path: String,
    /// The index of the tool, block or message in its array.
    pub index: usize,
    /// The block as it stands in the request.
    pub json: &'a RawValue,
    /// What its cached form has beside its own JSON.
    pub context: BlockContext<'a, 'f>,
    /// What is counted with it beside its own text.
    pub overhead: BlockOverhead,
    /// A member beside the blocks of its message that is billed with it.
    pub beside: Option<&'a RawValue>,
    /// The cache marker that follows as a block of its own.
    pub marker: Option<CacheTtl>,
}

/// What a block's cached form has beside the block's own JSON.
#[derive(Clone, Copy, Debug)]
pub enum BlockContext<'a, 'f> {
    /// Nothing beside the block itself.
    Alone,
    /// The role of a message: the block is a text that stands for that message.
    Word(&'static str),
    /// The other members of its message, for the first of a message's blocks.
    FirstOf {
        /// The message that the block belongs to.
        message: &'f Fields<'a>,
        /// The member that holds the blocks.
        content: &'static str,
    },
    /// The block is a message with one text, which the cache takes for one block of this type.
    OneText {
        /// The message that the block stands for.
        message: &'f Fields<'a>,
        /// The member that holds the text.
        content: &'static str,
        /// The type of the block.
        block_type: &'static str,
    },
}

/// What is counted with a block beside its own text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockOverhead {
    /// No overhead beside its own text.
    None,
    /// The overhead of the system prompt.
    System,
    /// The overhead of a message.
    Message,
}

/// How a format arranges the blocks of a request, beside what its members are called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct OutlineShape {
    /// What is expected where the history is missing or something else.
    pub expected: &'static str,
    /// Whether system messages that lead the history are the system prompt.
    pub leading_system: bool,
    /// The role of a text that stands for the whole history; `None` where the history is always an array.
    pub text_history: Option<&'static str>,
    /// The type of the block that a text as content stands for in the cache; `None` where they are two things.
    pub text_block: Option<&'static str>,
    /// The member of a message, beside its content, that is billed with its last block.
    pub beside: Option<&'static str>,
}
