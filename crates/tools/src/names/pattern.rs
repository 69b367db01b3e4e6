//! Patterns that name tools.
//!
//! `*` stands for any characters, `?` for one. Case does not matter, so that no spelling gets around a rule; the
//! registry has no two names that differ in case only. A pattern is held against a tool's name and against its group's
//! name (naming a group means all its tools); one with a `/` also against the two together, `group/name`.

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use contexture_text::case_folded;

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

/// Whether `text` is of the form `pattern`: on a mismatch the last `*` takes one character more, so the work is at most
/// the product of the lengths.
fn glob_matches(pattern: &str, text: &str) -> bool {
    let (mut pattern, mut text) = (pattern.chars(), text.chars());
    // One place to go back to is enough: an earlier `*` never has to take more once a later one has matched.
    let mut star: Option<(std::str::Chars<'_>, std::str::Chars<'_>)> = None;
    loop {
        let here = text.clone();
        match (pattern.next(), text.next()) {
            (Some('*'), _) => {
                star = Some((pattern.clone(), here.clone()));
                // A star matches nothing first; each failure below lets it take one character more.
                text = here;
            }
            (None, None) => return true,
            (Some(p), Some(t)) if p == '?' || p == t => {}
            _ => {
                let Some((after, mut from)) = star.take() else {
                    return false;
                };
                // The text is used up, so no longer match of the star can help.
                if from.next().is_none() {
                    return false;
                }
                (pattern, text) = (after.clone(), from.clone());
                star = Some((after, from));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs() {
        for (pattern, text, expected) in [
            ("", "", true),
            ("", "a", false),
            ("*", "", true),
            ("*", "a/b", true),
            ("a*c", "abc", true),
            ("a*c", "abd", false),
            ("*ab*ab", "abab", true),
            ("*aab", "aaaab", true),
            ("a?", "a", false),
            ("?", "é", true),
            ("**", "x", true),
            ("a*", "a*b", true),
        ] {
            assert_eq!(glob_matches(pattern, text), expected, "{pattern} {text}");
        }
        assert!(!glob_matches(&"*a".repeat(50), &"a".repeat(49)));
    }

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
