//! Patterns that name tools.
//!
//! `*` stands for any characters, `?` for one. Case does not matter, so that no spelling gets around a rule; the
//! registry has no two names that differ in case only. A pattern is held against a tool's name and against its group's
//! name (naming a group means all its tools); one with a `/` also against the two together, `group/name`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use contexture_text::{case_folded, glob_matches};

use crate::names::ToolId;

/// A pattern that names tools: `delete_*`, `crm/*`, `load_toolkit`.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Pattern {
    written: String,
    folded: String,
}

impl Pattern {
    /// The pattern of this text.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        let written = text.into();
        // Folded once: a policy tries its patterns against every tool of every call.
        let folded = case_folded(&written);
        Self { written, folded }
    }

    /// The text it was made of.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.written
    }

    /// Whether it is the form of a name alone, in any case.
    #[must_use]
    pub fn matches_name(&self, name: &str) -> bool {
        glob_matches(&self.folded, &case_folded(name))
    }

    /// Whether it names this tool.
    #[must_use]
    pub fn matches(&self, tool: &ToolId) -> bool {
        let group = tool.group.as_ref();
        glob_matches(&self.folded, &tool.name.case_folded())
            || group.is_some_and(|group| glob_matches(&self.folded, &group.case_folded()))
            // Only a pattern with a `/` can mean group and name together. Any other would match by the accident
            // of the separator.
            || (group.is_some()
                && self.folded.contains('/')
                && glob_matches(&self.folded, &case_folded(&tool.to_string())))
    }
}

impl<T: Into<String>> From<T> for Pattern {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(&self.written)
    }
}

impl fmt::Debug for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.written, f)
    }
}

impl Serialize for Pattern {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.written)
    }
}

impl<'de> Deserialize<'de> for Pattern {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer).map(Self::new)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_groups_and_both() {
        let tool = ToolId::in_group("CRM", "delete_File");
        for (pattern, expected) in [
            ("delete_file", true),
            ("DELETE_*", true),
            ("crm", true),
            ("crm/delete*", true),
            ("c*e", false),
            ("other/*", false),
            ("crm/deletefile", false),
        ] {
            assert_eq!(Pattern::new(pattern).matches(&tool), expected, "{pattern}");
        }
        assert!(Pattern::new("a/b").matches(&ToolId::flat("a/b")));
        assert!(Pattern::new("a/b").matches(&ToolId::in_group("g", "A/B")));
    }
}
