//! Times and kinds of items, as answers say them.

use contexture::store::NodeKind;
use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// A time in RFC 3339, in universal time.
pub(crate) fn format_timestamp(ms: i64) -> String {
    // A time beyond the calendar is shown as its number: a listing must not fail by one bad row.
    Timestamp::from_millisecond(ms).map_or_else(|_| ms.to_string(), |time| time.to_string())
}

/// What an item is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub(crate) enum ItemKind {
    User,
    Assistant,
    Instruction,
    Call,
    Output,
    Reasoning,
    Compaction,
    Other,
}

impl ItemKind {
    /// As the store says it.
    pub(crate) const fn node_kind(self) -> NodeKind {
        match self {
            Self::User => NodeKind::User,
            Self::Assistant => NodeKind::Assistant,
            Self::Instruction => NodeKind::Instruction,
            Self::Call => NodeKind::FunctionCall,
            Self::Output => NodeKind::FunctionCallOutput,
            Self::Reasoning => NodeKind::Reasoning,
            Self::Compaction => NodeKind::Compaction,
            Self::Other => NodeKind::Extension,
        }
    }

    /// The lower-case word.
    pub(crate) const fn as_str(self) -> &'static str {
        self.node_kind().as_str()
    }
}

impl From<NodeKind> for ItemKind {
    fn from(kind: NodeKind) -> Self {
        match kind {
            NodeKind::User => Self::User,
            NodeKind::Assistant => Self::Assistant,
            NodeKind::Instruction => Self::Instruction,
            NodeKind::FunctionCall => Self::Call,
            NodeKind::FunctionCallOutput => Self::Output,
            NodeKind::Reasoning => Self::Reasoning,
            NodeKind::Compaction => Self::Compaction,
            // Kinds that are added later are shown, by this word.
            _ => Self::Other,
        }
    }
}
