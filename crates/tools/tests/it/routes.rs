//! What calls mean, by every route and in every shape, and that a denied tool is reached by none.

use contexture_ir::Item;
use contexture_tools::{
    Call, IssueKind, LoadedToolkits, Name, Policy, PolicyVerdict, Registry, Resolved, Route,
    RuleTarget, Tool, ToolGroup, ToolId,
};
use proptest::prelude::*;
use serde_json::json;

use crate::fixtures::{raw, tool};

fn registry() -> Registry {
    let mut registry = Registry::new();
    registry
        .register_group(ToolGroup::namespace("files", ""))
        .unwrap();
    registry
        .register_group(ToolGroup::toolkit("git", ""))
        .unwrap();
    let schema = r#"{"type":"object","properties":{"path":{"type":"string"},"depth":{"type":"integer","minimum":0}},
        "required":["path"],"additionalProperties":false}"#;
    let delete = Tool::function("delete_file", "", raw(schema)).in_group("files");
    for tool in [
        delete.with_marks(["destructive"]),
        tool("read", "").in_group("files"),
        tool("commit", "").in_group("git"),
        tool("think", ""),
    ] {
        registry.register(tool).unwrap();
    }
    registry
}

fn loaded() -> LoadedToolkits {
    [Name::from("git")].into_iter().collect()
}

fn resolve(call: &Call, policy: &Policy) -> Result<Resolved, String> {
    let resolved = registry().resolve(call, policy, &loaded());
    resolved.map_err(|error| error.to_string())
}

#[track_caller]
fn check(name: &str, arguments: &str, expected: Result<(&str, &str, Route), &str>) {
    let resolved = resolve(&Call::new(name, arguments), &Policy::default());
    match (resolved, expected) {
        (Ok(resolved), Ok((id, arguments, route))) => {
            assert_eq!(resolved.tool.to_string(), id);
            assert_eq!(resolved.arguments.raw.get(), arguments);
            assert_eq!(resolved.route, route);
            assert_eq!(resolved.verdict, PolicyVerdict::Allow);
        }
        (Err(error), Err(expected)) => assert_eq!(error, expected),
        (found, expected) => panic!("{found:?}, expected {expected:?}"),
    }
}

#[test]
fn routes() {
    let files = || Route::Namespace("files".into());
    check(
        "think",
        r#"{"a": 1}"#,
        Ok(("think", r#"{"a": 1}"#, Route::Direct)),
    );
    check("think", "", Ok(("think", "{}", Route::Direct)));
    check(
        "commit",
        "{}",
        Ok(("git/commit", "{}", Route::Toolkit("git".into()))),
    );
    check(
        "load_toolkit",
        r#"{"toolkit":"GIT"}"#,
        Ok((
            "load_toolkit",
            r#"{"toolkit":"GIT"}"#,
            Route::Load("git".into()),
        )),
    );
    check(
        "files",
        r#"{"action":"read","args":{"big":12345678901234567890123}}"#,
        Ok(("files/read", r#"{"big":12345678901234567890123}"#, files())),
    );
    check(
        "files",
        r#"{"action":"read","args":"{\"a\":1}"}"#,
        Ok(("files/read", r#"{"a":1}"#, files())),
    );
    check(
        "files",
        r#"{"action":"read"}"#,
        Ok(("files/read", "{}", files())),
    );
}

#[test]
fn errors_say_what_there_is() {
    check("Think", "{}", Err("unknown tool \"Think\"; similar: think"));
    check("zzz", "{}", Err("unknown tool \"zzz\""));
    check(
        "files",
        r#"{"action":"rm"}"#,
        Err("unknown action \"rm\" in the namespace files; available: delete_file, read"),
    );
    check(
        "files",
        "null",
        Err("unknown action \"\" in the namespace files; available: delete_file, read"),
    );
    check(
        "load_toolkit",
        r#"{"toolkit":"svn"}"#,
        Err("unknown toolkit \"svn\"; available: git"),
    );
    check(
        "think",
        "[1]",
        Err("think: the arguments are to be an object, found \"[1]\""),
    );
    check(
        "think",
        "{a b}",
        Err("think: arguments, byte 3: expected `:` behind a key, found \"b}\""),
    );
    check("git", "{}", Err("unknown tool \"git\""));
    let error = registry().resolve(
        &Call::new("commit", ""),
        &Policy::default(),
        &LoadedToolkits::default(),
    );
    assert_eq!(
        error.unwrap_err().to_string(),
        "git/commit belongs to the toolkit git, which is not loaded; call load_toolkit first"
    );
    let call = Call {
        group: Some("svn".to_owned()),
        ..Call::new("commit", "")
    };
    assert_eq!(
        resolve(&call, &Policy::default()).unwrap_err(),
        "unknown namespace \"svn\"; available: files, git"
    );
    let none = Registry::new().resolve(
        &Call::new("load_toolkit", "{}"),
        &Policy::default(),
        &loaded(),
    );
    assert_eq!(
        none.unwrap_err().to_string(),
        "unknown toolkit \"\"; available: none"
    );
}

/// The same call of `think` with `{"a":1}`, as each provider writes it.
#[test]
fn every_shape_of_a_call_is_read() {
    for shape in [
        json!({"name": "think", "arguments": {"a": 1}}),
        json!({"name": "think", "arguments": "{\"a\":1}"}),
        json!({"id": "c", "type": "function", "function": {"name": "think", "arguments": "{\"a\":1}"}}),
        json!({"type": "function_call", "call_id": "c", "name": "think", "arguments": "{\"a\":1}"}),
        json!({"type": "tool_use", "id": "c", "name": "think", "input": {"a": 1}}),
        json!({"functionCall": {"name": "think", "args": {"a": 1}}}),
        json!({"type": "tool-call", "toolCallId": "c", "toolName": "think", "input": {"a": 1}}),
    ] {
        let call = Call::from_json(&shape.to_string()).unwrap();
        assert_eq!(
            (call.name.as_str(), call.arguments.as_str()),
            ("think", "{\"a\":1}"),
            "{shape}"
        );
        let denied = resolve(&call, &Policy::default().deny("THINK")).unwrap_err();
        assert_eq!(denied, "think is denied by the rule \"THINK\"");
    }
    for shape in [
        "",
        "[]",
        "{}",
        r#"{"name":1}"#,
        r#"{"function":{"arguments":"{}"}}"#,
    ] {
        Call::from_json(shape).unwrap_err();
    }
    let item = r#"{"type":"function_call","call_id":"c","namespace":"git","name":"commit","arguments":"{}"}"#;
    let Item::FunctionCall(call) = Item::parse(item).unwrap() else {
        panic!();
    };
    let call = Call::from(&call);
    assert_eq!(Call::from_json(item).unwrap(), call);
    let resolved = resolve(&call, &Policy::default()).unwrap();
    assert_eq!(resolved.route, Route::Toolkit("git".into()));
}

#[test]
fn the_gate_stands_behind_every_route() {
    let delete = Call::new("files", r#"{"action":"delete_file","args":{"path":"/"}}"#);
    let commit = Call::new("commit", "{}");
    let grouped = Call {
        group: Some("git".to_owned()),
        ..commit.clone()
    };
    let load = Call::new("load_toolkit", r#"{"toolkit":"git"}"#);
    for (call, pattern) in [
        (&delete, "delete_file"),
        (&delete, "Files/*"),
        (&delete, "files"),
        (&commit, "commit"),
        (&grouped, "git"),
        (&load, "load_toolkit"),
    ] {
        let error = resolve(call, &Policy::default().deny(pattern)).unwrap_err();
        assert!(error.contains("is denied by the rule"), "{error}");
    }
    let marked = Policy::default().with_rule(
        RuleTarget::Mark("destructive".to_owned()),
        PolicyVerdict::Ask,
    );
    assert_eq!(
        resolve(&delete, &marked).unwrap().verdict,
        PolicyVerdict::Ask
    );
    let error = resolve(&delete, &Policy::deny_all()).unwrap_err();
    assert_eq!(error, "files/delete_file is denied, for no rule allows it");
    // What is denied is still offered.
    assert_eq!(registry().offer_all().tools.len(), 3);
}

#[test]
fn arguments_are_checked_against_the_tool_reached() {
    let check = |arguments: &str| -> Vec<String> {
        let call = Call::new(
            "files",
            format!("{{\"action\":\"delete_file\",\"args\":{arguments}}}"),
        );
        let resolved = resolve(&call, &Policy::default()).unwrap();
        let findings = registry().check_arguments(&resolved).unwrap();
        findings.iter().map(ToString::to_string).collect()
    };
    assert!(check(r#"{"path":"x","depth":3}"#).is_empty());
    assert_eq!(check(r#"{"path":7}"#), ["/path: expected string, found 7"]);
    assert_eq!(
        check("{}"),
        ["/path: expected a value, for it is required, found nothing"]
    );
    assert_eq!(
        check(r#"{"path":"x","depth":-1}"#),
        ["/depth: expected minimum 0, found -1"]
    );
    assert_eq!(
        check(r#"{"path":"x","y":1}"#),
        ["the arguments: expected only the members it knows, found y"]
    );
}

#[test]
fn faults_of_both_texts_are_told() {
    let call = Call::new("files", r#"{action:"read","args":"{'a':1,}"}"#);
    let resolved = resolve(&call, &Policy::default()).unwrap();
    let kinds: Vec<IssueKind> = resolved
        .arguments
        .issues
        .iter()
        .map(|issue| issue.kind)
        .collect();
    use IssueKind::{DoublyEncoded, TrailingComma, UnquotedKey};
    assert_eq!(
        kinds,
        [UnquotedKey, DoublyEncoded, UnquotedKey, TrailingComma]
    );
}

proptest! {
    /// Whatever the rules and however a call is written: it resolves to no tool that the policy denies.
    #[test]
    fn a_denied_tool_never_resolves(
        patterns in prop::collection::vec(("[a-z*?/_]{1,8}|delete_file|git|files/\\*|read|\\*", 0..3u8), 0..6),
        otherwise in 0..3u8,
        name in "files|git|commit|think|read|delete_file|load_toolkit|FILES|files/read",
        group in prop::option::of("files|git|nothing"),
        action in "read|delete_file|Read|commit|",
        kit in "git|GIT|files|",
        packed in any::<bool>(),
    ) {
        let verdict = |number: u8| match number {
            0 => PolicyVerdict::Allow,
            1 => PolicyVerdict::Ask,
            _ => PolicyVerdict::Deny,
        };
        let mut policy = Policy { default_verdict: verdict(otherwise), ..Policy::default() };
        for (pattern, number) in patterns {
            policy = policy.with_rule(RuleTarget::Name(pattern.into()), verdict(number));
        }
        let mut arguments = json!({"action": action, "args": {"action": "delete_file"}, "toolkit": kit}).to_string();
        if packed {
            arguments = json!(arguments).to_string();
        }
        let call = Call { name, group, arguments };
        let registry = registry();
        for loaded in [loaded(), LoadedToolkits::default()] {
            if let Ok(resolved) = registry.resolve(&call, &policy, &loaded) {
                let decided = match registry.get(&resolved.tool) {
                    Some(tool) => policy.decide_tool(tool).verdict,
                    None => policy.decide_name(&ToolId::flat("load_toolkit")).verdict,
                };
                prop_assert_eq!(decided, resolved.verdict);
                prop_assert_ne!(decided, PolicyVerdict::Deny);
            }
        }
    }
}
