//! Kinds of items that queries and options can name.

use contexture::store::NodeKind;
use serde::Deserialize;
use utoipa::ToSchema;

/// A kind of item that can be asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// What a user said.
    User,
    /// What a model said.
    Assistant,
    /// What a developer or system said.
    Instruction,
    /// A call of a tool.
    Call,
    /// A tool's output.
    Output,
    /// A model's thoughts.
    Reasoning,
    /// What stands for a compacted span.
    Compaction,
}

impl ItemKind {
    /// All kinds, in the order they are listed in.
    pub const ALL: [Self; 7] = [
        Self::User,
        Self::Assistant,
        Self::Instruction,
        Self::Call,
        Self::Output,
        Self::Reasoning,
        Self::Compaction,
    ];

    /// Returns the kind of this name.
    #[must_use]
    pub fn from_name(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// Returns the kind that the store uses.
    #[must_use]
    pub const fn node_kind(self) -> NodeKind {
        match self {
            Self::User => NodeKind::User,
            Self::Assistant => NodeKind::Assistant,
            Self::Instruction => NodeKind::Instruction,
            Self::Call => NodeKind::FunctionCall,
            Self::Output => NodeKind::FunctionCallOutput,
            Self::Reasoning => NodeKind::Reasoning,
            Self::Compaction => NodeKind::Compaction,
        }
    }

    /// Returns the lower-case name.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        // The store's words, so that a filter and the `kind` of a result are spelled alike.
        self.node_kind().as_str()
    }
}
