//! Nodes: items in the tree.

use std::borrow::Cow;
use std::sync::Arc;

use contexture_ir::{
    Audience, ContentHash, Item, MessageId, NodeId, Origin, ResponseId, Role, RunId,
};

/// An item to be appended.
///
/// The item's JSON is stored byte for byte and never parsed by a store. `answers` and
/// `copied_from` must name nodes that exist: `answers` an earlier item of the same append or a
/// node on the path, `copied_from` any node of the conversation.
#[derive(Clone, Debug)]
pub struct NewItem {
    /// Id of the node, unique within the conversation. Derive it from (run, step, index) or
    /// (source, index), so that a repeated append is recognised.
    pub id: NodeId,
    /// JSON of the item, stored byte for byte.
    pub json: Arc<str>,
    /// Kind of the item; see [`NodeKind::of`].
    pub kind: NodeKind,
    /// Call that this output answers; `None` for other items.
    pub answers: Option<NodeId>,
    /// Message that the item belongs to; `None` means a message of its own, named by the node's id.
    pub message_id: Option<MessageId>,
    /// Run that produced the item, if any.
    pub run: Option<RunId>,
    /// Number of the step within the run.
    pub step: Option<u32>,
    /// Model response that the item is part of, if any.
    pub response: Option<ResponseId>,
    /// Origin of the item: who produced it.
    pub origin: Origin,
    /// Audience of the item: who may see it.
    pub audience: Audience,
    /// Node that this one was copied from, when an edit re-sends what follows.
    pub copied_from: Option<NodeId>,
    /// Hash of the item's meaning, for matching; see `contexture_ir`.
    pub meaning_hash: Option<ContentHash>,
    /// Creation time in milliseconds since the Unix epoch. For information only: nodes are ordered by depth.
    pub created_ms: i64,
}

impl NewItem {
    /// Returns an item whose JSON is `json`, visible to everyone, with nothing else known about it.
    #[must_use]
    pub fn new(id: NodeId, item: &Item, json: impl Into<Arc<str>>, created_ms: i64) -> Self {
        Self {
            id,
            json: json.into(),
            kind: NodeKind::of(item),
            answers: None,
            message_id: None,
            run: None,
            step: None,
            response: None,
            origin: origin_of(item),
            audience: Audience::ALL,
            copied_from: None,
            meaning_hash: None,
            created_ms,
        }
    }
}

fn origin_of(item: &Item) -> Origin {
    match item {
        Item::Message(message) if message.role == Role::User => Origin::User,
        Item::FunctionCallOutput(_) => Origin::Tool,
        _ if item.is_model_output() => Origin::Model,
        _ => Origin::System,
    }
}

/// Kind of the item in a node, stored so that lists and counters need not parse the item.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NodeKind {
    /// A message by a person, which begins a turn.
    User,
    /// A message by a model.
    Assistant,
    /// A message by the host, with the role system or developer.
    Instruction,
    /// A call of a tool.
    FunctionCall,
    /// The output of a call.
    FunctionCallOutput,
    /// The reasoning of a model.
    Reasoning,
    /// A compaction, which stands for a span of nodes.
    Compaction,
    /// Any other item.
    Extension,
}

impl NodeKind {
    /// All kinds, in the order of their stored codes.
    pub const ALL: [Self; 8] = [
        Self::User,
        Self::Assistant,
        Self::Instruction,
        Self::FunctionCall,
        Self::FunctionCallOutput,
        Self::Reasoning,
        Self::Compaction,
        Self::Extension,
    ];

    /// Returns the kind of an item.
    #[must_use]
    pub fn of(item: &Item) -> Self {
        match item {
            Item::Message(message) => match message.role {
                Role::User => Self::User,
                Role::Assistant => Self::Assistant,
                Role::System | Role::Developer => Self::Instruction,
            },
            Item::FunctionCall(_) => Self::FunctionCall,
            Item::FunctionCallOutput(_) => Self::FunctionCallOutput,
            Item::Reasoning(_) => Self::Reasoning,
            Item::Compaction(_) => Self::Compaction,
            Item::Extension(_) => Self::Extension,
        }
    }

    /// Returns the lower-case word for programs and people; `other` for [`NodeKind::Extension`].
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::User => "user",
            Self::Assistant => "assistant",
            Self::Instruction => "instruction",
            Self::FunctionCall => "call",
            Self::FunctionCallOutput => "output",
            Self::Reasoning => "reasoning",
            Self::Compaction => "compaction",
            Self::Extension => "other",
        }
    }

    /// Returns the code that databases store for the kind.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the kind of a stored code; `None` for an unknown one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// An item in the tree. It never changes, except that its content may be redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Id of the node, unique within the conversation.
    pub id: NodeId,
    /// Node before this one on its path; `None` for the first.
    pub parent: Option<NodeId>,
    /// Position on its path: 1 for the first node, so the depth of a head is the path's length.
    pub depth: u64,
    /// Number of messages on the path up to and including this node.
    pub messages: u64,
    /// Number of turns on the path up to and including this node.
    pub turns: u64,
    /// Depth of the newest compaction on the path up to and including this node; 0 without one.
    pub compacted: u64,
    /// JSON of the item, byte for byte as appended, or of its tombstone.
    pub json: Arc<str>,
    /// Hash of `json`.
    pub content_hash: ContentHash,
    /// Kind of the item.
    pub kind: NodeKind,
    /// Call that this output answers; `None` for other items.
    pub answers: Option<NodeId>,
    /// Message that the item belongs to; `None` means a message of its own.
    pub message_id: Option<MessageId>,
    /// Run that produced the item, if any.
    pub run: Option<RunId>,
    /// Number of the step within the run.
    pub step: Option<u32>,
    /// Model response that the item is part of, if any.
    pub response: Option<ResponseId>,
    /// Origin of the item: who produced it.
    pub origin: Origin,
    /// Audience of the item: who may see it.
    pub audience: Audience,
    /// Node that this one was copied from, if any.
    pub copied_from: Option<NodeId>,
    /// Hash of the item's meaning, if the writer gave one.
    pub meaning_hash: Option<ContentHash>,
    /// Creation time in milliseconds since the Unix epoch, as given by the writer.
    pub created_ms: i64,
    /// Time of the redaction in milliseconds since the Unix epoch; `None` if the content was not redacted.
    ///
    /// Of a redacted node, `json` is the tombstone, `content_hash` is the hash of the tombstone,
    /// and `meaning_hash` is `None`.
    pub redacted_ms: Option<i64>,
}

impl Node {
    /// Returns the id of the node's message; a node that names none is a message by itself, with its own id.
    #[must_use]
    pub fn effective_message_id(&self) -> Cow<'_, str> {
        match &self.message_id {
            Some(id) => Cow::Borrowed(id.as_str()),
            None => Cow::Owned(self.id.to_string()),
        }
    }
}
