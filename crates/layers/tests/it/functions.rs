//! Functions of layers: what goes in and what comes out is held against its schema.

use contexture_ir::Raw;
use contexture_layers::{Hook, OnError};

use crate::recording_layer::{
    Act, Log, RecordingLayer, begun, context, id, list, stored, taken, written,
};

#[tokio::test]
async fn arguments_and_results_must_fit() {
    let cases = [
        ("a_set", "5", Ok("5")),
        ("a_set", "\"5\"", Err("the arguments do not fit: ")),
        ("a_set", "7", Err("the result does not fit its schema: ")),
        ("b_set", "5", Err("no layer has a function \"b_set\"")),
        ("set", "5", Err("no layer has a function \"set\"")),
    ];
    for (tool, arguments, expected) in cases {
        let log = Log::default();
        let layers = list([RecordingLayer::new("a", &log)]);
        let mut states = begun(&layers).await;
        taken(&log);
        let context = context();
        let arguments = Raw::parse(arguments).unwrap();
        let result = layers
            .call_function(&mut states, tool, &arguments, &context)
            .await;
        match (expected, result) {
            (Ok(expected), Ok(result)) => assert_eq!(result.get(), expected),
            (Err(reason), Err(error)) => {
                assert!(error.to_string().starts_with(reason), "{error}");
                assert!(written(&layers, &states).is_empty(), "{reason}");
                assert!(context.drain_events().is_empty(), "{reason}");
            }
            (expected, result) => panic!("{tool}: {expected:?}, {result:?}"),
        }
    }
}

#[tokio::test(start_paused = true)]
async fn a_function_that_fails_changes_nothing() {
    let cases = [
        (Act::Fail, "as told"),
        (Act::Panic, "it panicked: as told"),
        (Act::Hang, "no result within 30000 ms"),
    ];
    for (act, reason) in cases {
        let log = Log::default();
        let layers = list([RecordingLayer::new("a", &log).on(Hook::Function, act)]);
        let mut states = begun(&layers).await;
        let five = Raw::parse("5").unwrap();
        let result = layers
            .call_function(&mut states, "a_set", &five, &context())
            .await;
        assert_eq!(result.unwrap_err().to_string(), reason);
        assert!(written(&layers, &states).is_empty());
    }
}

#[tokio::test]
async fn a_layer_without_a_state_cannot_be_called() {
    let log = Log::default();
    let layers = list([RecordingLayer::new("a", &log).with(|spec| spec.on_error = OnError::Skip)]);
    let mut states = layers.restore_states([(id("a"), stored(1, "{"))]);
    let five = Raw::parse("5").unwrap();
    let result = layers
        .call_function(&mut states, "a_set", &five, &context())
        .await;
    let reason = result.unwrap_err().to_string();
    assert!(reason.contains("cannot be read"), "{reason}");
    assert_eq!(taken(&log), [""; 0]);
}
