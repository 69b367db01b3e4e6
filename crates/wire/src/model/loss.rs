//! What a translation could not carry over.
//!
//! Nothing is dropped silently: whoever drops says so here. A loss names the place, what was lost and
//! why, and its kind is one of a closed list, so that each format's losses can be declared.

use std::fmt;

use serde::Serialize;

/// Something a translation dropped or changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Loss {
    /// The path of what was lost: in the source document when lifting (`messages[3].content[0]`), in the items when
    /// lowering (`items[12].content[0]`).
    pub path: String,
    /// What kind of thing was lost.
    pub what: LossKind,
    /// Why, in a sentence fragment without a full stop.
    pub why: String,
}

/// The kinds of losses, a closed list.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum LossKind {
    /// An item or block that the target cannot express.
    Item,
    /// A part of an item that the target cannot express.
    Part,
    /// A field of another format.
    Field,
    /// A role written as another role.
    Role,
    /// An order that the target cannot express.
    Order,
    /// Opaque bytes (signature, encrypted content) that only their maker can read.
    Opaque,
    /// A value changed to the nearest the target accepts.
    Value,
    /// A tool or tool choice of another provider.
    Tool,
    /// A request option the target does not know.
    Option,
    /// Alternatives beyond the first answer.
    Alternative,
}

impl LossKind {
    /// All kinds, in the order of the variants.
    pub const ALL: [Self; 10] = [
        Self::Item,
        Self::Part,
        Self::Field,
        Self::Role,
        Self::Order,
        Self::Opaque,
        Self::Value,
        Self::Tool,
        Self::Option,
        Self::Alternative,
    ];

    /// Returns the name that reports use.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Item => "item",
            Self::Part => "part",
            Self::Field => "field",
            Self::Role => "role",
            Self::Order => "order",
            Self::Opaque => "opaque",
            Self::Value => "value",
            Self::Tool => "tool",
            Self::Option => "option",
            Self::Alternative => "alternative",
        }
    }
}

impl fmt::Display for Loss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}: {}", self.path, self.what.as_str(), self.why)
    }
}

/// Collects losses while a document is walked; paths are built only when something is lost.
#[derive(Debug, Default)]
pub struct Losses {
    list: Vec<Loss>,
}

impl Losses {
    /// Records a loss; `why` is a sentence fragment without a full stop.
    pub fn push(&mut self, path: impl Into<String>, what: LossKind, why: impl Into<String>) {
        self.list.push(Loss {
            path: path.into(),
            what,
            why: why.into(),
        });
    }

    /// Moves all losses out of `other`, and puts the prefix before their paths.
    pub(crate) fn extend_with_prefix(&mut self, prefix: &str, other: Losses) {
        self.list.extend(other.list.into_iter().map(|mut loss| {
            loss.path.insert_str(0, prefix);
            loss
        }));
    }

    /// Returns the losses in the order they were recorded.
    #[must_use]
    pub fn into_vec(self) -> Vec<Loss> {
        self.list
    }

    /// Reports whether nothing was lost.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }
}

/// Losses as a list, for formats that collect them while walking.
impl From<Losses> for Vec<Loss> {
    fn from(losses: Losses) -> Self {
        losses.into_vec()
    }
}
