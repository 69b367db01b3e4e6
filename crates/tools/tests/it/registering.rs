//! What may be registered, and that all of it survives storage.

use contexture_ir::{Extra, FunctionTool, ProviderTool, ToolDefinition};
use contexture_tools::{
    Batch, Choice, Name, Policy, PropertyOrder, Registry, Tool, ToolError, ToolGroup, ToolId,
};

use crate::fixtures::{names, offer, raw, registry, tool};

#[test]
fn names_that_could_be_confused_are_refused() {
    let mut registry = registry([tool("find", "")]);
    registry
        .register_group(ToolGroup::namespace("crm", ""))
        .unwrap();
    registry
        .register_group(ToolGroup::toolkit("git", ""))
        .unwrap();
    registry.register(tool("find", "").in_group("crm")).unwrap();
    registry
        .register(tool("commit", "").in_group("GIT"))
        .unwrap();
    let before = registry.clone();
    for (tool, expected) in [
        (
            tool("FIND", ""),
            "\"FIND\" is already the name of the tool find",
        ),
        (
            tool("Find", "").in_group("crm"),
            "\"Find\" is already the name of the tool crm/find",
        ),
        (
            tool("find", "").in_group("git"),
            "\"find\" is already the name of the tool find",
        ),
        (
            tool("commit", ""),
            "\"commit\" is already the name of the tool git/commit",
        ),
        (
            tool("Crm", ""),
            "\"Crm\" is already the name of the group crm",
        ),
        (
            tool("load_toolkit", ""),
            "\"load_toolkit\" is the name of the tool that loads toolkits",
        ),
        (tool("", ""), "the name \"\" cannot be a tool's"),
        (tool("a\nb", ""), "the name \"a\\nb\" cannot be a tool's"),
        (
            tool("x", "").in_group("none"),
            "tool none/x belongs to the group \"none\", which is not registered",
        ),
    ] {
        let error = registry.register(tool).unwrap_err().to_string();
        assert!(error.starts_with(expected), "{error}");
    }
    for group in [
        ToolGroup::namespace("Find", ""),
        ToolGroup::toolkit("CRM", ""),
        ToolGroup::namespace("Load_Toolkit", ""),
    ] {
        registry.register_group(group).unwrap_err();
    }
    assert_eq!(registry, before);
}

#[test]
fn a_batch_comes_whole_or_not_at_all_and_goes_whole() {
    let mut registry = registry([tool("a", "")]);
    let before = registry.clone();
    let batch = |tools: Vec<Tool>| Batch {
        groups: vec![ToolGroup::namespace("crm", "")],
        tools,
    };
    let bad = batch(vec![tool("b", ""), tool("A", "")]);
    registry.register_batch("server", bad).unwrap_err();
    assert_eq!(registry, before);
    let good = batch(vec![tool("b", ""), tool("find", "").in_group("crm")]);
    registry.register_batch("server", good).unwrap();
    registry.register(tool("own", "").in_group("crm")).unwrap();
    assert_eq!(registry.sources(), [Name::from("server")]);
    let gone = registry.unregister_source("server");
    let gone: Vec<String> = gone.iter().map(ToString::to_string).collect();
    assert_eq!(gone, ["b", "crm/find", "crm/own"]);
    assert_eq!(registry, before);
    assert!(registry.unregister_source("server").is_empty());
}

#[test]
fn replacing_keeps_the_place_and_the_source() {
    let mut registry = Registry::new();
    let batch = Batch {
        tools: vec![tool("a", "old"), tool("b", "")],
        ..Batch::default()
    };
    registry.register_batch("s", batch).unwrap();
    let shared = registry.clone();
    let old = registry.replace(tool("a", "new")).unwrap().unwrap();
    assert_eq!(old, tool("a", "old"));
    let bad = Tool::function("a", "", raw("[]"));
    assert!(matches!(
        registry.replace(bad),
        Err(ToolError::BadSchema { .. })
    ));
    assert_eq!(registry.get(&ToolId::flat("a")), Some(&tool("a", "new")));
    assert_eq!(shared.get(&ToolId::flat("a")), Some(&tool("a", "old")));
    assert_eq!(registry.replace(tool("c", "")).unwrap(), None);
    assert_eq!(registry.unregister_source("s").len(), 2);
    assert_eq!(registry.unregister(&ToolId::flat("c")), Some(tool("c", "")));
    assert_eq!(registry.tools().len(), 0);
}

#[test]
fn everything_survives_storage() {
    let mut extra = Extra::new();
    extra.set("x", raw("12345678901234567890123"));
    let full = Tool::new(ToolDefinition::Function(FunctionTool {
        name: "f".to_owned(),
        description: None,
        parameters: Some(raw(
            r#"{"properties":{"b":{},"a":{"maximum":12345678901234567890123}}}"#,
        )),
        strict: Some(true),
        extra,
    }));
    let search = Tool::new(ToolDefinition::Provider(ProviderTool {
        format: "anthropic".to_owned(),
        kind: "web_search".to_owned(),
        raw: raw(r#"{"type": "web_search", "name": "web_search"}"#),
    }));
    let mut registry = registry([
        full.with_tags(["t"])
            .with_marks(["m"])
            .with_property_order(PropertyOrder::AsWritten),
        search,
    ]);
    let batch = Batch {
        groups: vec![ToolGroup::toolkit("kit", "d")],
        tools: vec![tool("in_kit", "d").in_group("kit")],
    };
    registry.register_batch("server", batch).unwrap();
    let text = serde_json::to_string(&registry).unwrap();
    let again: Registry = serde_json::from_str(&text).unwrap();
    assert_eq!(again, registry);
    assert_eq!(serde_json::to_string(&again).unwrap(), text);
    assert!(text.contains("12345678901234567890123"));

    let choice = Choice::by_task("x", 3).excluding(Policy::deny_all().allow("f*"));
    let selection = offer(&registry, &choice, None).selection;
    let text = serde_json::to_string(&selection).unwrap();
    assert_eq!(
        serde_json::from_str::<contexture_tools::Selection>(&text).unwrap(),
        selection
    );

    let twice = text_of(&[tool("a", ""), tool("A", "")]);
    let error = serde_json::from_str::<Registry>(&twice)
        .unwrap_err()
        .to_string();
    assert!(error.contains("already the name"), "{error}");
}

fn text_of(tools: &[Tool]) -> String {
    let tools: Vec<String> = tools
        .iter()
        .map(|tool| format!("{{\"what\":{}}}", serde_json::to_string(tool).unwrap()))
        .collect();
    format!("{{\"groups\":[],\"tools\":[{}]}}", tools.join(","))
}

#[test]
fn the_order_of_registration_does_not_show() {
    let some = ["zeta", "Beta", "alpha", "beta2", "_x", "Ärger"];
    let forwards = registry(some.map(|name| tool(name, "")));
    let backwards = registry(some.into_iter().rev().map(|name| tool(name, "")));
    assert_eq!(forwards.offer_all().tools, backwards.offer_all().tools);
    assert_eq!(
        names(&forwards.offer_all().tools),
        ["_x", "alpha", "Beta", "beta2", "zeta", "Ärger"]
    );
}
