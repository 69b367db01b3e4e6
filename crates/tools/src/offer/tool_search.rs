//! The providers' own tool search: definitions that are sent but not read until the model asks for them.
//!
//! Anthropic: tools carry `defer_loading: true`, and a tool `tool_search_tool_bm25` (or `…_regex`) searches them; deferred
//! tools are not part of the cached prefix (Anthropic, "Tool search tool"). OpenAI Responses: deferred functions stand
//! in a tool of type `namespace`, and a tool of type `tool_search` loads them at the end of the context (OpenAI, "Tool
//! search"). Which models can is a field of the catalogue.
//!
//! Not here: how a format writes the fields; wire does, from what tools carry for that format.

use contexture_catalogue::ModelSpec;
use contexture_ir::{Extra, FunctionTool, ProviderTool, Raw, ToolDefinition, quote_json};
use serde::{Deserialize, Serialize};

use crate::registry::{ArgsSchema, RegistryEntry, ToolGroup};

const ANTHROPIC: &str = "anthropic";
const RESPONSES: &str = "openai-responses";

/// How toolkits reach the model.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ToolSearchMode {
    /// By our own tool `load_toolkit`: any target.
    #[default]
    Loader,
    /// By Anthropic's `tool_search_tool_bm25_20251119`.
    AnthropicBm25,
    /// By Anthropic's `tool_search_tool_regex_20251119`.
    AnthropicRegex,
    /// By OpenAI's `tool_search`, Responses only.
    OpenAi,
}

/// What a target can do with tools.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct ToolSupport {
    /// How toolkits reach the model.
    pub search: ToolSearchMode,
    /// How namespaces' arguments are written.
    pub args: ArgsSchema,
}

impl ToolSupport {
    /// What a model can do through a format (`anthropic`, `openai-responses`, …): the provider's own search where the
    /// catalogue says that the model has it and the format can say it, else the loader.
    #[must_use]
    pub fn for_model(model: &ModelSpec, format: &str) -> Self {
        let search = match (model.capabilities.tool_search, format) {
            (true, ANTHROPIC) => ToolSearchMode::AnthropicBm25,
            (true, RESPONSES) => ToolSearchMode::OpenAi,
            _ => ToolSearchMode::Loader,
        };
        Self {
            search,
            // Every target takes `anyOf` until a user says otherwise; none reports it as a capability.
            args: ArgsSchema::AnyOf,
        }
    }
}

impl ToolSearchMode {
    /// The provider's tool that searches; `None` for the loader.
    pub(crate) fn search_tool(self) -> Option<ToolDefinition> {
        // Versioned types of the providers' documentation, written out: these bytes are in the cached prefix.
        let (format, kind, raw) = match self {
            Self::Loader => return None,
            Self::AnthropicBm25 => (
                ANTHROPIC,
                "tool_search_tool_bm25_20251119",
                r#"{"type":"tool_search_tool_bm25_20251119","name":"tool_search_tool_bm25"}"#,
            ),
            Self::AnthropicRegex => (
                ANTHROPIC,
                "tool_search_tool_regex_20251119",
                r#"{"type":"tool_search_tool_regex_20251119","name":"tool_search_tool_regex"}"#,
            ),
            Self::OpenAi => (RESPONSES, "tool_search", r#"{"type":"tool_search"}"#),
        };
        Some(ToolDefinition::Provider(ProviderTool {
            format: format.to_owned(),
            kind: kind.to_owned(),
            raw: Raw::parse(raw).ok()?,
        }))
    }

    /// A toolkit's tools, deferred.
    pub(crate) fn deferred_definitions<'e>(
        self,
        kit: &ToolGroup,
        tools: impl Iterator<Item = &'e RegistryEntry>,
    ) -> Vec<ToolDefinition> {
        let functions = tools.filter_map(|entry| entry.tool.as_function());
        let functions: Vec<&FunctionTool> = functions.collect();
        match self {
            // One namespace for the toolkit where its names allow it: the model then sees the toolkit's
            // description once.
            Self::OpenAi if has_valid_names(kit, &functions) => {
                deferred_namespace(kit, functions).into_iter().collect()
            }
            Self::OpenAi => functions
                .into_iter()
                .map(|f| defer_function(f, RESPONSES))
                .collect(),
            _ => functions
                .into_iter()
                .map(|f| defer_function(f, ANTHROPIC))
                .collect(),
        }
    }
}

/// Whether OpenAI takes all these names as they are. Others are deferred one by one, for wire renames only functions.
fn has_valid_names(kit: &ToolGroup, functions: &[&FunctionTool]) -> bool {
    let mark = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    let names = functions.iter().map(|function| function.name.as_str());
    let mut names = names.chain([kit.name.as_str()]);
    names.all(|name| name.len() <= 64 && name.chars().all(mark))
}

/// Returns the function with `defer_loading` set for a format, beside what it carries for that format already.
fn defer_function(function: &FunctionTool, format: &str) -> ToolDefinition {
    let mut function = function.clone();
    // In the format's own fields, so that other formats neither see the mark nor report it as lost.
    let mut wire: Extra = function.extra.wire_fields(format);
    if let Ok(yes) = Raw::parse("true") {
        wire.set("defer_loading", yes);
    }
    function.extra.set_wire_fields(format, wire);
    ToolDefinition::Function(function)
}

/// OpenAI's tool of type `namespace` with all its functions deferred.
fn deferred_namespace(kit: &ToolGroup, functions: Vec<&FunctionTool>) -> Option<ToolDefinition> {
    let functions: Vec<String> = functions.into_iter().map(responses_function).collect();
    let raw = format!(
        "{{\"type\":\"namespace\",\"name\":{},\"description\":{},\"tools\":[{}]}}",
        quote_json(kit.name.as_str()),
        quote_json(&kit.description),
        functions.join(",")
    );
    Some(ToolDefinition::Provider(ProviderTool {
        format: RESPONSES.to_owned(),
        kind: "namespace".to_owned(),
        raw: Raw::parse(raw).ok()?,
    }))
}

fn responses_function(function: &FunctionTool) -> String {
    let mut out = format!(
        "{{\"type\":\"function\",\"name\":{}",
        quote_json(&function.name)
    );
    if let Some(text) = &function.description {
        out.push_str(&format!(",\"description\":{}", quote_json(text)));
    }
    let schema = function.parameters.as_ref().map(Raw::get);
    let schema = schema.unwrap_or("{\"properties\":{},\"type\":\"object\"}");
    // Responses makes `strict` true by default, under which schemas with optional members are refused.
    let strict = function.strict.unwrap_or(false);
    out.push_str(&format!(
        ",\"parameters\":{schema},\"strict\":{strict},\"defer_loading\":true}}"
    ));
    out
}
