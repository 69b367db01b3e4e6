//! Names of tools, and the ids that tell tools apart.

mod pattern;

pub use pattern::Pattern;

use std::borrow::Borrow;
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// The name of the tool that loads toolkits; no other tool may have it.
pub const LOADER: &str = "load_toolkit";

/// A name, cheap to clone. Compared as written; [`Name::case_folded`] is how the registry tells names apart.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Name(Arc<str>);

impl Name {
    /// The name as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// The form in which names are compared where case does not matter.
    #[must_use]
    pub fn case_folded(&self) -> String {
        contexture_text::case_folded(&self.0)
    }
}

impl<T: AsRef<str>> From<T> for Name {
    fn from(text: T) -> Self {
        Self(text.as_ref().into())
    }
}

impl Borrow<str> for Name {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl PartialEq<str> for Name {
    fn eq(&self, other: &str) -> bool {
        self.as_str() == other
    }
}

impl PartialEq<&str> for Name {
    fn eq(&self, other: &&str) -> bool {
        self.as_str() == *other
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&*self.0, f)
    }
}

impl Serialize for Name {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.0)
    }
}

impl<'de> Deserialize<'de> for Name {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::from)
    }
}

/// Who a tool is: its name, and the group it belongs to.
///
/// Displayed as `group/name`. Two groups may each have a tool of one name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ToolId {
    /// The namespace or toolkit; absent for a flat tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group: Option<Name>,
    /// The tool's own name.
    pub name: Name,
}

impl ToolId {
    /// A tool that belongs to no group.
    #[must_use]
    pub fn flat(name: impl Into<Name>) -> Self {
        Self {
            group: None,
            name: name.into(),
        }
    }

    /// A tool of a group.
    #[must_use]
    pub fn in_group(group: impl Into<Name>, name: impl Into<Name>) -> Self {
        Self {
            group: Some(group.into()),
            name: name.into(),
        }
    }
}

impl fmt::Display for ToolId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.group {
            Some(group) => write!(f, "{group}/{}", self.name),
            None => f.write_str(self.name.as_str()),
        }
    }
}
