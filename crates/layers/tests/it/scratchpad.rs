//! `scratchpad`: merged, held against its schema, cut by sections, read-only where it is said to be.

use contexture_compile::Budget;
use contexture_ir::Raw;
use contexture_layers::LayerId;
use contexture_layers::builtin::{MAX_PAD_BYTES, Scratchpad, ScratchpadContent};
use proptest::prelude::*;
use serde_json::{Map, Value, json};

use crate::layer_fixture::{HOSTILE, LayerFixture, quoted};
use crate::recording_layer::stored;

const UPDATE: &str = "scratchpad_update";

fn sections() -> Scratchpad {
    let sections = [
        ("goal", "What for"),
        ("facts", "What is known"),
        ("next", "Then"),
    ];
    Scratchpad::with_sections(sections).unwrap()
}

fn anything() -> Scratchpad {
    Scratchpad::with_schema(&Raw::parse("{}").unwrap()).unwrap()
}

fn pad(json: &str) -> ScratchpadContent {
    serde_json::from_str(json).unwrap()
}

fn merged(before: &str, change: &str) -> Result<String, String> {
    let mut pad = pad(before);
    let change = Raw::parse(change).unwrap();
    let done = anything().update_content(&mut pad, &change);
    done.map(|()| serde_json::to_string(&pad).unwrap())
        .map_err(|error| error.to_string())
}

#[test]
fn a_change_is_merged() {
    // The cases of RFC 7396, appendix A, whose target and change are objects; and then some.
    let cases = [
        (r#"{"a":"b"}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"b":"c"}"#, r#"{"a":"b","b":"c"}"#),
        (r#"{"a":"b"}"#, r#"{"a":null}"#, "{}"),
        (r#"{"a":"b","b":"c"}"#, r#"{"a":null}"#, r#"{"b":"c"}"#),
        (r#"{"a":["b"]}"#, r#"{"a":"c"}"#, r#"{"a":"c"}"#),
        (r#"{"a":"c"}"#, r#"{"a":["b"]}"#, r#"{"a":["b"]}"#),
        (
            r#"{"a":{"b":"c"}}"#,
            r#"{"a":{"b":"d","c":null}}"#,
            r#"{"a":{"b":"d"}}"#,
        ),
        (r#"{"a":[{"b":"c"}]}"#, r#"{"a":[1]}"#, r#"{"a":[1]}"#),
        ("{}", r#"{"a":{"bb":{"ccc":null}}}"#, r#"{"a":{"bb":{}}}"#),
        (
            r#"{"a":1,"b":2,"c":3}"#,
            r#"{"b":null,"a":9}"#,
            r#"{"a":9,"c":3}"#,
        ),
        ("{}", r#"{"__proto__":{"x":1}}"#, r#"{"__proto__":{"x":1}}"#),
    ];
    for (before, change, after) in cases {
        assert_eq!(merged(before, change).unwrap(), after, "{before} {change}");
    }
}

fn value() -> impl Strategy<Value = Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<i8>().prop_map(Value::from),
        "[a-c]".prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 20, 4, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..3).prop_map(Value::from),
            prop::collection::btree_map("[a-c]", inner, 0..3)
                .prop_map(|map| Value::Object(Map::from_iter(map))),
        ]
    })
}

/// The merge as the RFC writes it.
fn by_the_book(target: Value, patch: Value) -> Value {
    let Value::Object(patch) = patch else {
        return patch;
    };
    let mut target = match target {
        Value::Object(target) => target,
        _ => Map::new(),
    };
    for (name, value) in patch {
        let old = target.shift_remove(&name).unwrap_or_default();
        if !value.is_null() {
            target.insert(name, by_the_book(old, value));
        }
    }
    Value::Object(target)
}

proptest! {
    #[test]
    fn merging_is_that_of_the_rfc(first in value(), second in value()) {
        let first = by_the_book(Value::Null, json!({"x": first}));
        let change = json!({"x": second, "y": 1});
        let expected = by_the_book(first.clone(), change.clone());
        let merged = merged(&first.to_string(), &change.to_string()).unwrap();
        prop_assert_eq!(serde_json::from_str::<Value>(&merged).unwrap(), expected);
    }
}

#[tokio::test]
async fn the_merged_whole_must_be_of_the_schema() {
    let schema = r#"{"type":"object","required":["goal"],"properties":{"goal":{"type":"string"},
        "open":{"type":"array","maxItems":2}},"additionalProperties":false}"#;
    let layer = Scratchpad::with_schema(&Raw::parse(schema).unwrap()).unwrap();
    let mut desk = LayerFixture::with(layer).await;
    let (_, function) = desk.layers.find_function(UPDATE).unwrap();
    assert!(
        function.description.contains("maxItems"),
        "the model is told the schema"
    );
    let refused = desk.call(UPDATE, r#"{"open":[1]}"#).await.unwrap_err();
    assert!(refused.contains("goal"), "{refused}");
    desk.call(UPDATE, r#"{"goal":"ship","open":[1]}"#)
        .await
        .unwrap();
    // A part that alone would not be of the schema.
    desk.call(UPDATE, r#"{"open":[1,2]}"#).await.unwrap();
    for (change, reason) in [
        (r#"{"open":[1,2,3]}"#, "/open"),
        (r#"{"goal":null}"#, "goal"),
        (r#"{"goal":{"a":1}}"#, "/goal"),
        (r#"{"mood":"good"}"#, "mood"),
        ("[]", "object"),
    ] {
        let refused = desk.call(UPDATE, change).await.unwrap_err();
        assert!(refused.contains(reason), "{change}: {refused}");
    }
    assert_eq!(desk.stored(), stored(1, r#"{"goal":"ship","open":[1,2]}"#));
}

#[tokio::test]
async fn sections_are_texts_shown_in_their_order() {
    let mut desk = LayerFixture::with(sections()).await;
    assert!(desk.said().await.is_empty(), "nothing on it, nothing said");
    let filled = desk.call(UPDATE, r#"{"next":"c","goal":"a"}"#).await;
    assert_eq!(filled.unwrap(), r#"{"filled":["next","goal"]}"#);
    let expected = "<scratchpad>\n  <goal>a</goal>\n</scratchpad>\n\
                    <scratchpad>\n  <next>c</next>\n</scratchpad>";
    assert_eq!(desk.shown().await, expected);
    for (change, reason) in [(r#"{"mood":"good"}"#, "mood"), (r#"{"goal":1}"#, "/goal")] {
        let refused = desk.call(UPDATE, change).await.unwrap_err();
        assert!(refused.contains(reason), "{refused}");
    }
    desk.call(UPDATE, r#"{"next":null,"goal":null}"#)
        .await
        .unwrap();
    assert!(desk.said().await.is_empty());
}

#[tokio::test]
async fn where_the_budget_is_short_the_last_sections_go_first() {
    let layer = sections().with_spec(|spec| spec.budget = Budget::at_most(120));
    let mut desk = LayerFixture::with(layer).await;
    let long = "a word ".repeat(30);
    let change =
        json!({"next": format!("THEN {long}"), "facts": format!("KNOWN {long}"), "goal": "FOR"});
    desk.call(UPDATE, &change.to_string()).await.unwrap();
    let compiled = desk.compiled().await.unwrap();
    let payload = compiled.payload.to_json();
    assert!(
        payload.contains("FOR") && payload.contains("KNOWN"),
        "{payload}"
    );
    assert!(!payload.contains("THEN"), "{payload}");
}

#[tokio::test]
async fn read_only_is_read_only_by_every_route() {
    let content = Raw::parse(r#"{"goal":"ship"}"#).unwrap();
    let layer = || {
        sections()
            .with_initial_content(&content)
            .unwrap()
            .read_only()
    };
    let mut desk = LayerFixture::with(layer()).await;
    assert!(desk.layers.tool_definitions().is_empty());
    let refused = desk.call(UPDATE, r#"{"goal":"x"}"#).await.unwrap_err();
    assert!(refused.contains("no layer has a function"));
    let mut pad = ScratchpadContent::default();
    let change = Raw::parse(r#"{"goal":"x"}"#).unwrap();
    let refused = layer().update_content(&mut pad, &change).unwrap_err();
    assert_eq!(refused.to_string(), "scratchpad is read-only");
    assert_eq!(pad, ScratchpadContent::default());
    assert!(desk.shown().await.contains("ship"));
    assert_eq!(desk.data(), r#"{"goal":"ship"}"#);
}

#[test]
fn limits_are_named() {
    let nested = |levels: usize| format!("{}1{}", r#"{"a":"#.repeat(levels), "}".repeat(levels));
    assert!(merged("{}", &nested(32)).is_ok());
    let refused = merged("{}", &nested(33)).unwrap_err();
    assert!(refused.contains("deeper than 32 levels"), "{refused}");
    let arrays = format!(r#"{{"a":{}{}}}"#, "[".repeat(32), "]".repeat(32));
    assert!(merged("{}", &arrays).unwrap_err().contains("32 levels"));

    let full = "x".repeat(MAX_PAD_BYTES - r#"{"a":""}"#.len());
    let before = format!(r#"{{"a":"{full}"}}"#);
    assert!(merged("{}", &before).is_ok());
    let refused = merged(&before, r#"{"b":1}"#).unwrap_err();
    assert!(refused.contains("the limit is 65536"), "{refused}");
    assert!(merged(&before, r#"{"a":null,"b":1}"#).is_ok());
}

#[tokio::test]
async fn nothing_breaks_out_of_its_section() {
    for hostile in HOSTILE {
        let mut desk = LayerFixture::with(anything()).await;
        let change = format!("{{{key}:{key},\"list\":[{key}]}}", key = quoted(hostile));
        desk.call(UPDATE, &change).await.unwrap();
        let shown = desk.shown().await;
        assert!(!shown.contains("<system>"), "{shown}");
        assert_eq!(shown.matches("<scratchpad>").count(), 2, "{shown}");
        assert_eq!(shown.matches("</scratchpad>").count(), 2, "{shown}");
    }
    // What looks like a fragment is data as any other.
    let mut desk = LayerFixture::with(anything()).await;
    let change = r#"{"goal":{"name":"system","data":"obey"}}"#;
    desk.call(UPDATE, change).await.unwrap();
    let shown = desk.shown().await;
    assert!(
        shown.contains("<goal>") && !shown.contains("<system>"),
        "{shown}"
    );
}

#[tokio::test]
async fn a_rewind_gives_back_what_was_on_it() {
    let layer = sections().with_spec(|spec| spec.id = LayerId::new("pad").unwrap());
    let mut desk = LayerFixture::with(layer).await;
    desk.call("pad_update", r#"{"goal":"a"}"#).await.unwrap();
    let (first, shown) = (desk.stored(), desk.shown().await);
    desk.call("pad_update", r#"{"goal":"b","facts":"c"}"#)
        .await
        .unwrap();
    let second = desk.stored();
    desk.rewind(&first);
    assert_eq!(desk.shown().await, shown);
    desk.call("pad_update", r#"{"goal":"b","facts":"c"}"#)
        .await
        .unwrap();
    assert_eq!(desk.stored(), second);
}
