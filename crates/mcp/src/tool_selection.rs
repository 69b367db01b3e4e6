//! Which tools a client is offered: all, or those of a list. Each definition takes room in the prompt of every call.

use std::collections::BTreeSet;

/// What lists name at once, and the tools that it means. Every tool is in a group.
const GROUPS: [(&str, &[&str]); 6] = [
    ("search", &["list_conversations", "search_conversations"]),
    (
        "read",
        &["list_conversations", "read_conversation", "read_link"],
    ),
    (
        "memory",
        &[
            "create_memory",
            "delete_memory",
            "read_memory",
            "update_memory",
        ],
    ),
    (
        "branches",
        &[
            "create_branch",
            "create_checkpoint",
            "list_branches",
            "restore_checkpoint",
            "switch_branch",
        ],
    ),
    ("budget", &["check_budget", "compact_conversation"]),
    ("rules", &["drop_rule", "list_rules", "restore_rule"]),
];

/// A choice of tools.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolSelection(BTreeSet<&'static str>);

/// A word that names no tool and no group of tools.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no tools {name:?}: expected {}, or names of tools", group_names())]
pub struct UnknownTools {
    name: String,
}

impl ToolSelection {
    /// Reads words: groups (`search`, `read`, `memory`, `branches`, `budget`, `rules`) and names of tools, in any mixture.
    ///
    /// # Errors
    /// [`UnknownTools`] for a word that is neither.
    pub fn from_words<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownTools> {
        let mut selected = BTreeSet::new();
        for word in words {
            let group = GROUPS.iter().find(|(name, _)| *name == word);
            let mut tools = GROUPS.iter().flat_map(|(_, tools)| *tools);
            match (group, tools.find(|name| **name == word)) {
                (Some((_, members)), _) => selected.extend(*members),
                (None, Some(name)) => selected.extend([*name]),
                (None, None) => {
                    let name = word.to_owned();
                    return Err(UnknownTools { name });
                }
            }
        }
        Ok(Self(selected))
    }

    pub(crate) fn has_tool(&self, name: &str) -> bool {
        self.0.contains(name)
    }
}

fn group_names() -> String {
    GROUPS.map(|(name, _)| name).join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tools;

    #[test]
    fn every_tool_is_in_a_group_and_groups_have_only_tools() {
        let all: BTreeSet<&str> = tools::ALL
            .iter()
            .map(|entry| entry.definition.name.as_ref())
            .collect();
        let grouped: BTreeSet<&str> = GROUPS
            .iter()
            .flat_map(|(_, tools)| *tools)
            .copied()
            .collect();
        assert_eq!(grouped, all);
    }

    #[test]
    fn words_are_groups_and_tools() {
        let some = ToolSelection::from_words(["memory", "read_link"]).unwrap();
        assert!(some.has_tool("update_memory") && some.has_tool("read_link"));
        assert!(!some.has_tool("search_conversations"));
        let unknown = ToolSelection::from_words(["sarch"]).unwrap_err();
        assert_eq!(
            unknown.to_string(),
            "no tools \"sarch\": expected search, read, memory, branches, budget, rules, or names of tools"
        );
    }
}
