//! Kinds of items that queries and options can name.

use contexture::store::NodeKind;
use serde::Deserialize;
use utoipa::ToSchema;

/// A kind of item that a query can ask for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ItemKind {
    /// A message of a user.
    User,
    /// A message of a model.
    Assistant,
    /// A message of a developer or the system.
    Instruction,
    /// A call of a tool.
    Call,
    /// The output of a tool.
    Output,
    /// The reasoning of a model.
    Reasoning,
    /// A compaction of a span of items.
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

    /// Returns the kind of this name; `None` if there is none.
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
