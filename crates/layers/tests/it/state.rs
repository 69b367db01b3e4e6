//! `state`: a typed value at the tail, of its schema whoever sets it.

use std::collections::BTreeMap;

use contexture_compile::{Band, Placement, Stability};
use contexture_ir::Raw;
use contexture_layers::LayerId;
use contexture_layers::builtin::StateLayer;
use serde::{Deserialize, Serialize};

use crate::layer_fixture::{HOSTILE, LayerFixture};
use crate::recording_layer::stored;

#[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
struct Task {
    open: u32,
    next: String,
}

fn schema() -> Raw {
    let text = r#"{"type":"object","properties":{"open":{"type":"integer","maximum":9},
        "next":{"type":"string"}},"required":["open","next"],"additionalProperties":false}"#;
    Raw::parse(text).unwrap()
}

fn task() -> StateLayer<Task> {
    StateLayer::new(Task {
        open: 2,
        next: "ship".to_owned(),
    })
}

#[tokio::test]
async fn it_stands_at_the_tail_or_in_the_system_prompt_under_its_name() {
    let expected = "<state>\n  <open>2</open>\n  <next>ship</next>\n</state>";
    let desk = LayerFixture::with(task()).await;
    assert_eq!(desk.shown().await, expected);
    let said = desk.said().await;
    assert_eq!(
        (said[0].band, said[0].stability),
        (Band::Tail, Stability::Volatile)
    );
    assert!(desk.layers.functions().next().is_none());

    let named = task().with_placement(Placement::System).with_spec(|spec| {
        spec.id = LayerId::new("task").unwrap();
    });
    let desk = LayerFixture::with(named).await;
    assert_eq!(desk.shown().await, expected.replace("state>", "task>"));
    let said = desk.said().await;
    assert_eq!(
        (said[0].band, said[0].stability),
        (Band::System, Stability::Epoch)
    );
    assert_eq!(said[0].source, "task");
}

#[tokio::test]
async fn no_value_breaks_out_and_none_is_taken_for_a_fragment() {
    for hostile in HOSTILE {
        let map = BTreeMap::from([(hostile.to_owned(), hostile.to_owned())]);
        let desk = LayerFixture::with(StateLayer::new(map)).await;
        let shown = desk.shown().await;
        assert!(!shown.contains("<system>"), "{shown}");
        assert_eq!(shown.matches("</state>").count(), 1, "{shown}");
    }
    let like_a_fragment = serde_json::json!({"name": "system", "data": "obey"});
    let desk = LayerFixture::with(StateLayer::new(like_a_fragment)).await;
    let expected = "<state>\n  <name>system</name>\n  <data>obey</data>\n</state>";
    assert_eq!(desk.shown().await, expected);
}

#[tokio::test]
async fn the_model_sets_it_whole_and_is_told_what_does_not_fit() {
    let settable = || task().with_schema(&schema()).unwrap().with_set_function();
    let mut desk = LayerFixture::with(settable()).await;
    let before = desk.stored();
    let set = desk.call("set_state", r#"{"open":3,"next":"test"}"#).await;
    assert_eq!(set.unwrap(), "null");
    assert_eq!(desk.stored(), stored(1, r#"{"open":3,"next":"test"}"#));
    let bad = [
        (r#"{"open":3}"#, "next"),
        (r#"{"open":10,"next":""}"#, "/open"),
        (r#"{"open":-1,"next":""}"#, "u32"),
        (r#"{"open":3,"next":"","more":1}"#, "more"),
        ("[]", "object"),
        ("null", "object"),
    ];
    for (arguments, reason) in bad {
        let error = desk.call("set_state", arguments).await.unwrap_err();
        assert!(error.contains(reason), "{arguments}: {error}");
        assert_eq!(desk.stored(), stored(1, r#"{"open":3,"next":"test"}"#));
    }
    desk.rewind(&before);
    assert!(desk.shown().await.contains("ship"));
    assert_eq!(desk.data(), r#"{"open":2,"next":"ship"}"#);
}

#[tokio::test]
async fn what_is_not_settable_is_not_set_by_any_route() {
    let mut desk = LayerFixture::with(task()).await;
    for tool in ["set_state", "state_set", "set"] {
        let refused = desk.call(tool, r#"{"open":3,"next":"test"}"#).await;
        assert!(refused.unwrap_err().contains("no layer has a function"));
    }
}

#[tokio::test]
async fn a_first_value_that_is_not_of_the_schema_is_refused() {
    let wrong = StateLayer::new(Task {
        open: 10,
        next: String::new(),
    });
    let wrong = wrong.with_schema(&schema()).unwrap();
    let layers = contexture_layers::Layers::new().with_layer(wrong).unwrap();
    let mut states = layers.restore_states([]);
    let context = crate::recording_layer::context();
    let outcomes = layers.init_states(&mut states, &context).await.unwrap();
    let reason = format!("{:?}", outcomes[0].status);
    assert!(reason.contains("/open"), "{reason}");
    assert!(layers.changed_states(&states).is_empty());
    assert!(task().with_schema(&Raw::parse("7").unwrap()).is_err());
}
