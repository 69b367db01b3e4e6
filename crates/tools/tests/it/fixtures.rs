//! Tools for the tests.

use contexture_ir::{Raw, ToolDefinition};
use contexture_tools::{
    Choice, LoadedToolkits, Offer, OfferRequest, Registry, Selection, Tool, ToolSupport,
};

pub(crate) fn raw(text: &str) -> Raw {
    Raw::parse(text).unwrap()
}

/// A tool of any arguments.
pub(crate) fn tool(name: &str, description: &str) -> Tool {
    Tool::function(name, description, raw(r#"{"type":"object"}"#))
}

/// A tool whose parameters are strings.
pub(crate) fn with_parameters(name: &str, description: &str, parameters: &[&str]) -> Tool {
    let properties: Vec<String> = parameters
        .iter()
        .map(|parameter| format!("{parameter:?}:{{\"type\":\"string\"}}"))
        .collect();
    let schema = format!(
        "{{\"type\":\"object\",\"properties\":{{{}}}}}",
        properties.join(",")
    );
    Tool::function(name, description, raw(&schema))
}

pub(crate) fn registry(tools: impl IntoIterator<Item = Tool>) -> Registry {
    let mut registry = Registry::new();
    for tool in tools {
        registry.register(tool).unwrap();
    }
    registry
}

pub(crate) fn offer(registry: &Registry, choice: &Choice, latched: Option<&Selection>) -> Offer {
    registry.offer(OfferRequest {
        choice,
        loaded: &LoadedToolkits::default(),
        latched,
        support: ToolSupport::default(),
        limit: None,
    })
}

pub(crate) fn names(tools: &[ToolDefinition]) -> Vec<&str> {
    tools.iter().map(ToolDefinition::name).collect()
}
