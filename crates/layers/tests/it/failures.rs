//! What becomes of a hook that fails, panics or is late, by what the layer says of itself.

use std::time::Duration;

use contexture_layers::{
    Hook, HookStatus, LayersError, ObservedItems, OnError, Projection, RunEnd, ToolGate,
    ToolRequest,
};

use crate::recording_layer::{
    Act, Log, RecordingLayer, begun, context, list, recall, said, stored, texts, written,
};

const SEEN: ObservedItems<'static> = ObservedItems {
    items: &[],
    nodes: &[],
    response: None,
    usage: None,
};

fn call() -> ToolRequest {
    ToolRequest {
        tool: "t".to_owned(),
        called_name: "t".to_owned(),
        call_id: "1".to_owned(),
        arguments: contexture_ir::Raw::null(),
    }
}

fn reason(status: &HookStatus) -> &str {
    match status {
        HookStatus::Failed { reason }
        | HookStatus::Skipped { reason }
        | HookStatus::Stale { reason } => reason,
        _ => "ok",
    }
}

#[tokio::test(start_paused = true)]
async fn a_failure_is_named_and_undone() {
    let cases = [
        (Act::Fail, "as told"),
        (Act::Panic, "it panicked: as told"),
        (Act::Hang, "no result within 30000 ms"),
        (Act::After(30_001), "no result within 30000 ms"),
        (Act::After(29_999), "ok"),
    ];
    for (act, expected) in cases {
        let log = Log::default();
        let layers = list([RecordingLayer::new("a", &log).on(Hook::Observe, act.clone())]);
        let mut states = begun(&layers).await;
        let context = context();
        let outcomes = layers.observe(&mut states, SEEN, &context).await.unwrap();
        assert_eq!(reason(&outcomes[0].status), expected, "{act:?}");
        let well = expected == "ok";
        assert_eq!(!written(&layers, &states).is_empty(), well, "{act:?}");
        assert_eq!(!context.drain_events().is_empty(), well, "{act:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn a_layer_without_a_limit_may_take_for_ever() {
    let log = Log::default();
    let day = Act::After(24 * 3600 * 1000);
    let probe = RecordingLayer::new("a", &log).on(Hook::Observe, day);
    let layers = list([probe.with(|spec| spec.timeouts.observe = None)]);
    let mut states = begun(&layers).await;
    let start = tokio::time::Instant::now();
    let outcomes = layers.observe(&mut states, SEEN, &context()).await.unwrap();
    assert!(outcomes[0].status.is_ok());
    assert_eq!(start.elapsed(), Duration::from_secs(24 * 3600));
}

#[tokio::test]
async fn one_that_must_not_fail_fails_the_operation() {
    let hooks = [
        Hook::Init,
        Hook::OnAppend,
        Hook::Recall,
        Hook::ProjectHistory,
        Hook::AfterModel,
        Hook::Observe,
    ];
    for hook in hooks {
        let log = Log::default();
        let probe = RecordingLayer::new("a", &log).on(hook, Act::Panic);
        let layers = list([probe.with(|spec| spec.on_error = OnError::Fail)]);
        let context = context();
        let mut states = layers.restore_states([]);
        let spec = layers.specs().next().unwrap().clone();
        let failed = async {
            layers.init_states(&mut states, &context).await?;
            layers.on_append(&mut states, vec![], &context).await?;
            let call = recall(&context, &[], &spec);
            let last = &mut <_>::default();
            layers
                .recall_all(&states, call, Projection::default(), last)
                .await?;
            layers.after_model(&mut states, &[], &context).await?;
            layers.observe(&mut states, SEEN, &context).await
        };
        let error = failed.await.unwrap_err();
        let LayersError::Layer { id, hook: at, .. } = &error else {
            panic!("{error}");
        };
        assert_eq!((id.as_str(), *at), ("a", hook));
        let expected = format!("the layer a failed in {hook}: it panicked: as told");
        assert_eq!(error.to_string(), expected);
    }
}

#[tokio::test]
async fn a_failing_gate_lets_the_call_pass_unless_it_must_not_fail() {
    for (on_error, denied) in [(OnError::Skip, false), (OnError::Fail, true)] {
        let log = Log::default();
        let probe = RecordingLayer::new("a", &log).on(Hook::BeforeTool, Act::Fail);
        let layers = list([probe.with(|spec| spec.on_error = on_error)]);
        let mut states = begun(&layers).await;
        let (gate, outcomes) = layers.before_tool(&mut states, &call(), &context()).await;
        assert_eq!(matches!(gate, ToolGate::Deny(_)), denied);
        assert!(!outcomes[0].status.is_ok());
    }
}

#[tokio::test]
async fn a_gate_whose_state_cannot_be_read_denies_if_it_must_not_fail() {
    for (on_error, denied) in [(OnError::Skip, false), (OnError::Fail, true)] {
        let log = Log::default();
        let layers = list([RecordingLayer::new("a", &log).with(|spec| spec.on_error = on_error)]);
        let mut states =
            layers.restore_states([(crate::recording_layer::id("a"), stored(1, "\"broken"))]);
        let (gate, _) = layers.before_tool(&mut states, &call(), &context()).await;
        assert_eq!(matches!(gate, ToolGate::Deny(_)), denied);
        let begun = layers.init_states(&mut states, &context()).await;
        assert_eq!(begun.is_err(), denied);
    }
}

#[tokio::test]
async fn layer_failing_init_is_skipped_until_states_are_reloaded() {
    let log = Log::default();
    let layers = list([
        RecordingLayer::new("a", &log).on(Hook::Init, Act::Fail),
        RecordingLayer::new("b", &log),
    ]);
    let context = context();
    let mut states = layers.restore_states([]);
    layers.init_states(&mut states, &context).await.unwrap();
    let told = context.drain_events();
    assert_eq!(told.len(), 1, "what a failed hook told is dropped");
    assert_eq!(told[0].layer.as_str(), "b");
    let (items, outcomes) = layers
        .on_append(&mut states, vec![said("x")], &context)
        .await
        .unwrap();
    assert_eq!(items, ["x", "b"].map(said));
    let skipped = HookStatus::Skipped {
        reason: "as told".to_owned(),
    };
    assert_eq!(outcomes[0].status, skipped);
    assert_eq!(written(&layers, &states), [("b".into(), "101".into())]);
}

#[tokio::test]
async fn failed_recall_drops_its_events_but_projects_history() {
    let log = Log::default();
    let mut probe = RecordingLayer::new("a", &log).on(Hook::Recall, Act::Fail);
    probe.window = Some(4);
    let panics = RecordingLayer::new("b", &log).on(Hook::ProjectHistory, Act::Panic);
    let layers = list([probe, panics]);
    let states = begun(&layers).await;
    let context = context();
    let spec = layers.specs().next().unwrap().clone();
    let call = recall(&context, &[], &spec);
    let gathered = layers
        .recall_all(&states, call, Projection::default(), &mut <_>::default())
        .await
        .unwrap();
    assert_eq!(texts(&gathered.contributions), ["b: <hint>100</hint>"]);
    let window = gathered.projection.policy.window;
    assert_eq!(window, contexture_compile::Window::Turns(4));
    let told = context.drain_events();
    assert_eq!(told.len(), 1);
    assert_eq!(told[0].layer.as_str(), "b");
    let failed = gathered.outcomes.iter().filter(|one| !one.status.is_ok());
    let failed: Vec<_> = failed.map(|one| (one.layer.as_str(), one.hook)).collect();
    assert_eq!(failed, [("a", Hook::Recall), ("b", Hook::ProjectHistory)]);
}

#[tokio::test]
async fn at_the_end_everybody_is_told_whoever_fails() {
    let log = Log::default();
    let probes = ["a", "b", "c"].map(|id| {
        let probe = RecordingLayer::new(id, &log).on(Hook::OnComplete, Act::Panic);
        let probe = probe.on(Hook::Dispose, Act::Fail);
        probe.with(|spec| spec.on_error = OnError::Fail)
    });
    let layers = list(probes);
    let mut states = begun(&layers).await;
    let ended = layers
        .on_complete(&mut states, &RunEnd::Completed, &context())
        .await;
    assert_eq!(ended.len(), 3);
    let let_go = layers.dispose(&states).await;
    let ids: Vec<&str> = let_go.iter().map(|one| one.layer.as_str()).collect();
    assert_eq!(ids, ["c", "b", "a"]);
    assert!(
        ended
            .iter()
            .chain(&let_go)
            .all(|one| matches!(one.status, HookStatus::Failed { .. }))
    );
}
