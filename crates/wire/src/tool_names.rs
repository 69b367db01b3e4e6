//! Tool name maps: from the names of functions that a target accepts back to the original ones.
//!
//! A writer replaces a name that its target refuses, with a loss that says so; the model then calls the
//! function by the name it was told. Here the calls get the given names back. Names are a function of the
//! target and the given name alone, so the map can be made anew at any time.

use std::collections::BTreeMap;

use contexture_ir::{Item, ToolDefinition};
use serde::{Deserialize, Serialize};

use crate::model::format::Format;
use crate::model::loss::Losses;

/// The names that were sent to a target in place of those it refuses. Usually none is refused and the map is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ToolNameMap {
    original_names: BTreeMap<String, String>,
}

impl ToolNameMap {
    /// Maps the names of tools for a target; `Ui` and `Items` accept any name.
    ///
    /// ```
    /// use contexture_ir::{FunctionTool, ToolDefinition};
    /// use contexture_wire::{Format, ToolNameMap};
    ///
    /// let tool = FunctionTool { name: "files.read".to_owned(), ..FunctionTool::default() };
    /// let renames = ToolNameMap::for_tools(Format::OpenAiChat, &[ToolDefinition::Function(tool)]);
    /// let (sent, given) = renames.iter().next().unwrap();
    /// assert!(sent.starts_with("files_read_"));
    /// assert_eq!(given, "files.read");
    /// assert_eq!(renames.original_name(sent), "files.read");
    /// ```
    #[must_use]
    pub fn for_tools(target: Format, tools: &[ToolDefinition]) -> Self {
        let Some(rule) = target.spec().name_rule() else {
            return Self::default();
        };
        let names = tools.iter().filter_map(|tool| match tool {
            ToolDefinition::Function(tool) => Some(tool.name.as_str()),
            ToolDefinition::Provider(_) => None,
        });
        let mut original = BTreeMap::new();
        for name in names.clone() {
            // The same function that the encoder calls, so that both always agree. Its loss is
            // reported there.
            let sent = rule.sanitize_name(name, "", &mut Losses::default());
            if sent != name {
                original.insert(sent.into_owned(), name.to_owned());
            }
        }
        // A function that is called so in truth stays so.
        names.for_each(|name| drop(original.remove(name)));
        Self {
            original_names: original,
        }
    }

    /// Reports whether no name was refused.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.original_names.is_empty()
    }

    /// The names sent and those given for them, by the names sent.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        let pairs = self.original_names.iter();
        pairs.map(|(sent, original)| (sent.as_str(), original.as_str()))
    }

    /// Returns the original name of a name that was sent; the same if it was sent unchanged.
    #[must_use]
    pub fn original_name<'n>(&'n self, sent: &'n str) -> &'n str {
        self.original_names.get(sent).map_or(sent, String::as_str)
    }

    /// Gives the calls of an answer their tools' original names.
    pub fn restore_names(&self, items: &mut [Item]) {
        for item in items {
            if let Item::FunctionCall(call) = item
                && let Some(original) = self.original_names.get(&call.name)
            {
                call.name.clone_from(original);
            }
        }
    }
}
