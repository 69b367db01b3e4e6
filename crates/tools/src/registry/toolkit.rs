//! Toolkits: groups whose tools are shown only after the model has asked for them.
//!
//! The model sees one tool, [`LOADER`], whose definition describes every toolkit and stays the same whatever is loaded.
//! Which tools a toolkit holds may be said in a directory, a fragment for the system prompt that the renderer escapes
//! like any other.
//! What is loaded is state: it is stored with the conversation's, and rewinds with it.
//!
//! Not here: a provider's own search for tools ([`crate::offer::tool_search`]).

use contexture_ir::{Fragment, FunctionTool, Raw, fragment, quote_json};
use serde::{Deserialize, Serialize};

use crate::names::{LOADER, Name};
use crate::registry::Registry;
use crate::registry::tool::{GroupKind, ToolGroup};

/// The loader's argument.
pub(crate) const LOADER_ARGUMENT: &str = "toolkit";

/// The toolkits loaded so far, in the order of loading.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct LoadedToolkits(Vec<Name>);

impl LoadedToolkits {
    /// Notes that a toolkit was loaded; loading it again changes nothing.
    // A list and not a set: the order of loading is the order in which the tools are offered.
    pub fn mark_loaded(&mut self, toolkit: Name) {
        if !self.contains(toolkit.as_str()) {
            self.0.push(toolkit);
        }
    }

    /// Whether a toolkit is loaded; the name as registered.
    #[must_use]
    pub fn contains(&self, toolkit: &str) -> bool {
        self.0.iter().any(|name| name == toolkit)
    }

    /// The toolkits in the order of loading.
    pub fn iter(&self) -> impl ExactSizeIterator<Item = &Name> {
        self.0.iter()
    }
}

impl FromIterator<Name> for LoadedToolkits {
    fn from_iter<I: IntoIterator<Item = Name>>(names: I) -> Self {
        let mut loaded = Self::default();
        names.into_iter().for_each(|name| loaded.mark_loaded(name));
        loaded
    }
}

impl Registry {
    /// All toolkits as loaded: for targets that search deferred tools themselves.
    #[must_use]
    pub fn all_loaded(&self) -> LoadedToolkits {
        let kits = self.groups_of(GroupKind::Toolkit);
        kits.map(|kit| kit.name.clone()).collect()
    }

    /// The directory of toolkits for the system prompt: each with its description and its tools. `None` without
    /// toolkits. It does not change when one is loaded.
    #[must_use]
    pub fn tools_fragment(&self) -> Option<Fragment> {
        // All tools are listed, loaded or not, so that loading changes no byte of the prompt.
        let kits = self.groups_of(GroupKind::Toolkit).map(|kit| {
            let tools: Vec<&str> = self
                .group_members(kit)
                .map(|tool| tool.id.name.as_str())
                .collect();
            fragment(
                "toolkit",
                (
                    Fragment::new("name", kit.name.as_str()),
                    Fragment::new("description", kit.description.as_str()),
                    Fragment::new("tools", tools.join(", ")),
                ),
            )
        });
        let kits: Vec<Fragment> = kits.collect();
        (!kits.is_empty()).then(|| fragment("toolkits", kits))
    }

    /// The tool that loads toolkits; `None` without toolkits.
    pub(crate) fn loader_tool(&self) -> Option<FunctionTool> {
        let kits: Vec<&ToolGroup> = self.groups_of(GroupKind::Toolkit).collect();
        // Without toolkits the loader would be a tool that can do nothing.
        if kits.is_empty() {
            return None;
        }
        let names: Vec<String> = kits
            .iter()
            .map(|kit| quote_json(kit.name.as_str()))
            .collect();
        let lines: Vec<String> = kits.iter().map(|kit| toolkit_line(kit)).collect();
        // The enumeration binds the model to names that exist, in targets that enforce schemas.
        let schema = format!(
            "{{\"additionalProperties\":false,\"properties\":{{\"{LOADER_ARGUMENT}\":{{\"description\":\"The toolkit to load.\",\
             \"enum\":[{}],\"type\":\"string\"}}}},\"required\":[\"{LOADER_ARGUMENT}\"],\"type\":\"object\"}}",
            names.join(",")
        );
        Some(FunctionTool {
            name: LOADER.to_owned(),
            description: Some(format!(
                "Loads a toolkit: a group of further tools, which can be called from the next step on. Load one when \
                 the tools at hand do not suffice. The toolkits:\n{}",
                lines.join("\n")
            )),
            parameters: Raw::parse(schema).ok(),
            ..FunctionTool::default()
        })
    }
}

/// What a toolkit is, on one line whatever its description holds.
fn toolkit_line(kit: &ToolGroup) -> String {
    // White space is folded, because a line break in a description would look like another toolkit.
    let words: Vec<&str> = kit.description.split_whitespace().collect();
    match words.as_slice() {
        [] => format!("- {}", kit.name),
        words => format!("- {}: {}", kit.name, words.join(" ")),
    }
}
