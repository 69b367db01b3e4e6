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
    /// The node's id, unique within the conversation. Derive it from (run, step, index) or
    /// (source, index), so that a repeated append is recognised.
    pub id: NodeId,
    /// The item's JSON.
    pub json: Arc<str>,
    /// What kind of item it is; see [`NodeKind::of`].
    pub kind: NodeKind,
    /// The call that this output answers.
    pub answers: Option<NodeId>,
    /// The message it belongs to; `None` means a message of its own, named by the node's id.
    pub message_id: Option<MessageId>,
    /// The run that made it.
    pub run: Option<RunId>,
    /// The step within the run.
    pub step: Option<u32>,
    /// The model response that it is part of.
    pub response: Option<ResponseId>,
    /// Who produced it.
    pub origin: Origin,
    /// Who may see it.
    pub audience: Audience,
    /// The node it was copied from, when an edit re-sends what follows.
    pub copied_from: Option<NodeId>,
    /// Hash of the item's meaning, for matching; see `contexture_ir`.
    pub meaning_hash: Option<ContentHash>,
    /// Milliseconds since the Unix epoch. Information only: order is depth.
    pub created_ms: i64,
}

impl NewItem {
    /// An item whose JSON is `json`, visible to everyone, with nothing else known about it.
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

/// What kind of item a node holds, so that lists and counters need not parse it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum NodeKind {
    /// A message by a person. Begins a turn.
    User,
    /// A message by a model.
    Assistant,
    /// A message by the host.
    Instruction,
    /// A call.
    FunctionCall,
    /// A call's output.
    FunctionCallOutput,
    /// Reasoning.
    Reasoning,
    /// A compaction.
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

    /// The kind of an item.
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

    /// The lower-case word that programs and people are told; `other` where there is none.
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

    /// The stored code.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Reads a stored code.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }
}

/// An item in the tree. Never changes, except that its content may be redacted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Its id.
    pub id: NodeId,
    /// The node before it on its path; `None` for the first.
    pub parent: Option<NodeId>,
    /// Its place on its path: 1 for the first node, so the depth of a head is the path's length.
    pub depth: u64,
    /// Messages on the path up to and including this node.
    pub messages: u64,
    /// Turns on the path up to and including this node.
    pub turns: u64,
    /// Depth of the newest compaction on the path up to and including this node; 0 without one.
    pub compacted: u64,
    /// The item's JSON, byte for byte as appended, or its tombstone.
    pub json: Arc<str>,
    /// Hash of `json`.
    pub content_hash: ContentHash,
    /// What kind of item it is.
    pub kind: NodeKind,
    /// The call that this output answers.
    pub answers: Option<NodeId>,
    /// The message it belongs to; `None`: its own.
    pub message_id: Option<MessageId>,
    /// The run that made it.
    pub run: Option<RunId>,
    /// The step within the run.
    pub step: Option<u32>,
    /// The model response that it is part of.
    pub response: Option<ResponseId>,
    /// Who produced it.
    pub origin: Origin,
    /// Who may see it.
    pub audience: Audience,
    /// The node it was copied from.
    pub copied_from: Option<NodeId>,
    /// Hash of the item's meaning.
    pub meaning_hash: Option<ContentHash>,
    /// Milliseconds since the Unix epoch, as the writer said.
    pub created_ms: i64,
    /// When its content was redacted, if it was: `json` is a tombstone then, `content_hash` that of
    /// the tombstone, and `meaning_hash` is gone.
    pub redacted_ms: Option<i64>,
}

impl Node {
    /// The id of the message the node belongs to: its own id where it names none.
    #[must_use]
    pub fn effective_message_id(&self) -> Cow<'_, str> {
        match &self.message_id {
            Some(id) => Cow::Borrowed(id.as_str()),
            None => Cow::Owned(self.id.to_string()),
        }
    }
}
