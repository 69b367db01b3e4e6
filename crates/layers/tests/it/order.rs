//! Which layer is asked when, and who has the last word.

use std::time::Duration;

use contexture_ir::{Raw, RunId};
use contexture_layers::{
    AnswerVerdict, ChildEnd, Hook, Layers, ObservedItems, Projection, RunEnd, ToolGate, ToolRequest,
};

use crate::recording_layer::{
    Act, Log, RecordingLayer, begun, context, list, recall, said, taken, texts,
};

fn request() -> ToolRequest {
    ToolRequest {
        tool: "files/read".to_owned(),
        called_name: "files_read".to_owned(),
        call_id: "call_1".to_owned(),
        arguments: Raw::null(),
    }
}

/// Added as c, a, b; their orders make them a, b, c.
fn three(log: &Log) -> Layers {
    list([("c", 3), ("a", 1), ("b", 2)].map(|(id, order)| {
        let mut probe = RecordingLayer::new(id, log).with(|spec| spec.order = order);
        probe.verdict = AnswerVerdict::Fix(vec![said(id)]);
        probe
    }))
}

fn each(hook: &str) -> Vec<String> {
    ["a", "b", "c"].map(|id| format!("{id} {hook}")).to_vec()
}

#[tokio::test]
async fn every_hook_is_asked_in_order_and_dispose_in_reverse() {
    let log = Log::default();
    let layers = three(&log);
    let context = context();
    let mut states = layers.restore_states([]);
    layers.init_states(&mut states, &context).await.unwrap();
    assert_eq!(taken(&log), each("init"));
    layers.init_states(&mut states, &context).await.unwrap();
    assert_eq!(taken(&log), [""; 0], "only where there is no state");

    let (items, _) = layers
        .on_append(&mut states, vec![said("hello")], &context)
        .await
        .unwrap();
    assert_eq!(taken(&log), each("on_append"));
    assert_eq!(items, ["hello", "a", "b", "c"].map(said));

    let spec = layers.specs().next().unwrap().clone();
    let call = recall(&context, &[], &spec);
    let gathered = layers
        .recall_all(&states, call, Projection::default(), &mut <_>::default())
        .await
        .unwrap();
    assert_eq!(taken(&log), each("recall"));
    let spoken = ["a", "b", "c"].map(|id| format!("{id}: <hint>101</hint>"));
    assert_eq!(texts(&gathered.contributions), spoken);

    let (verdict, _) = layers
        .after_model(&mut states, &[said("answer")], &context)
        .await
        .unwrap();
    assert_eq!(taken(&log), each("after_model"));
    assert_eq!(
        verdict,
        AnswerVerdict::Fix(["answer", "a", "b", "c"].map(said).to_vec())
    );

    layers.before_tool(&mut states, &request(), &context).await;
    assert_eq!(taken(&log), each("before_tool"));

    let seen = ObservedItems {
        items: &[],
        nodes: &[],
        response: None,
        usage: None,
    };
    layers.observe(&mut states, seen, &context).await.unwrap();
    assert_eq!(taken(&log), each("observe"));

    let mut child = layers.restore_states([]);
    layers
        .on_spawn(&states, &mut child, &context)
        .await
        .unwrap();
    assert_eq!(taken(&log), each("on_spawn"));
    layers
        .on_parent_update(&mut child, &states, &context)
        .await
        .unwrap();
    assert_eq!(taken(&log), each("on_parent_update"));
    let end = ChildEnd {
        run: RunId::derive("test", &[]),
        end: RunEnd::Completed,
        result: None,
        usage: <_>::default(),
    };
    layers
        .on_return(&mut states, &child, &end, &context)
        .await
        .unwrap();
    assert_eq!(taken(&log), each("on_return"));

    let aborted = RunEnd::Aborted { reason: None };
    layers.on_complete(&mut states, &aborted, &context).await;
    assert_eq!(taken(&log), each("on_complete"));
    layers.dispose(&states).await;
    assert_eq!(taken(&log), ["c dispose", "b dispose", "a dispose"]);

    let told = context.drain_events().into_iter();
    let told: Vec<String> = told
        .filter(|event| event.name == "observe")
        .map(|event| event.layer.to_string())
        .collect();
    assert_eq!(told, ["a", "b", "c"]);
}

#[tokio::test]
async fn layers_of_one_order_stay_as_they_were_added() {
    let log = Log::default();
    let layers = list(["c", "a", "b"].map(|id| RecordingLayer::new(id, &log)));
    begun(&layers).await;
    assert_eq!(taken(&log), ["c init", "a init", "b init"]);
}

#[tokio::test(start_paused = true)]
async fn layers_are_recalled_at_once_and_observe_at_once() {
    let log = Log::default();
    let slow = |id: &str, ms| {
        let probe = RecordingLayer::new(id, &log).on(Hook::Recall, Act::After(ms));
        probe.on(Hook::Observe, Act::After(ms))
    };
    let layers = list([slow("a", 3000), slow("b", 2000), slow("c", 1000)]);
    let mut states = begun(&layers).await;
    let context = context();
    let spec = layers.specs().next().unwrap().clone();
    let start = tokio::time::Instant::now();
    let call = recall(&context, &[], &spec);
    let gathered = layers
        .recall_all(&states, call, Projection::default(), &mut <_>::default())
        .await
        .unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(3));
    let order: Vec<&str> = gathered
        .contributions
        .iter()
        .map(|said| said.source.as_str())
        .collect();
    assert_eq!(order, ["a", "b", "c"], "whoever was done first");

    let _ = context.drain_events();
    let seen = ObservedItems {
        items: &[],
        nodes: &[],
        response: None,
        usage: None,
    };
    layers.observe(&mut states, seen, &context).await.unwrap();
    assert_eq!(start.elapsed(), Duration::from_secs(6));
    let told = context.drain_events();
    let order: Vec<&str> = told.iter().map(|event| event.layer.as_str()).collect();
    assert_eq!(order, ["a", "b", "c"], "whoever was done first");
}

#[tokio::test]
async fn a_denial_is_the_last_word_and_nobody_else_is_asked() {
    let gates = [
        ToolGate::Guide("one".to_owned()),
        ToolGate::Deny("no".to_owned()),
        ToolGate::Ask("what?".to_owned()),
    ];
    let log = Log::default();
    let layers = list(["a", "b", "c"].iter().zip(gates).map(|(id, gate)| {
        let mut probe = RecordingLayer::new(id, &log);
        probe.gate = gate;
        probe
    }));
    let mut states = begun(&layers).await;
    taken(&log);
    let (gate, outcomes) = layers
        .before_tool(&mut states, &request(), &context())
        .await;
    assert_eq!(gate, ToolGate::Deny("no".to_owned()));
    assert_eq!(taken(&log), ["a before_tool", "b before_tool"]);
    assert_eq!(outcomes.len(), 2);
}

#[test]
fn gates_are_joined_by_their_weight() {
    for (other, both) in [
        (ToolGate::Allow, ToolGate::Approve),
        (
            ToolGate::Guide("x".to_owned()),
            ToolGate::Guide("x".to_owned()),
        ),
        (ToolGate::Ask("x".to_owned()), ToolGate::Ask("x".to_owned())),
        (
            ToolGate::Deny("x".to_owned()),
            ToolGate::Deny("x".to_owned()),
        ),
    ] {
        assert_eq!(ToolGate::Approve.and(other.clone()), both);
        assert_eq!(other.and(ToolGate::Approve), both);
    }
    let guide = |text: &str| ToolGate::Guide(text.to_owned());
    let ask = |text: &str| ToolGate::Ask(text.to_owned());
    let deny = |text: &str| ToolGate::Deny(text.to_owned());
    let cases = [
        (ToolGate::Allow, ToolGate::Allow, ToolGate::Allow),
        (ToolGate::Allow, guide("a"), guide("a")),
        (guide("a"), guide("b"), guide("a\nb")),
        (guide(""), guide("b"), guide("b")),
        (guide("a"), ask("b"), ask("b")),
        (ask("a"), ask("b"), ask("a\nb")),
        (ask("a"), deny("b"), deny("b")),
        (deny("a"), deny("b"), deny("a")),
    ];
    for (one, two, both) in cases {
        assert_eq!(one.clone().and(two.clone()), both, "{one:?} and {two:?}");
    }
}

#[tokio::test]
async fn after_model_stops_at_first_retry_or_stop_verdict() {
    let retry = || AnswerVerdict::Retry {
        feedback: "again".to_owned(),
    };
    let stop = || AnswerVerdict::Stop {
        reason: "enough".to_owned(),
    };
    let fix = || AnswerVerdict::Fix(vec![said("fixed")]);
    let fixed = AnswerVerdict::Fix(["answer", "fixed"].map(said).to_vec());
    let cases = [
        ([fix(), retry(), stop()], retry(), 2),
        ([AnswerVerdict::Pass, stop(), retry()], stop(), 2),
        ([AnswerVerdict::Pass, fix(), AnswerVerdict::Pass], fixed, 3),
        ([const { AnswerVerdict::Pass }; 3], AnswerVerdict::Pass, 3),
    ];
    for (verdicts, expected, asked) in cases {
        let log = Log::default();
        let layers = list(["a", "b", "c"].iter().zip(verdicts).map(|(id, verdict)| {
            let mut probe = RecordingLayer::new(id, &log);
            probe.verdict = verdict;
            probe
        }));
        let mut states = begun(&layers).await;
        let (verdict, outcomes) = layers
            .after_model(&mut states, &[said("answer")], &context())
            .await
            .unwrap();
        assert_eq!(verdict, expected);
        assert_eq!(outcomes.len(), asked, "{expected:?}");
    }
}

#[tokio::test]
async fn each_layer_changes_the_projection_that_the_one_before_left() {
    let log = Log::default();
    let mut probes = ["a", "b", "c"].map(|id| RecordingLayer::new(id, &log));
    probes[0].window = Some(1);
    probes[1].window = Some(2);
    let layers = list(probes);
    let states = begun(&layers).await;
    let context = context();
    let spec = layers.specs().next().unwrap().clone();
    let gathered = layers
        .recall_all(
            &states,
            recall(&context, &[], &spec),
            Projection::default(),
            &mut <_>::default(),
        )
        .await
        .unwrap();
    let window = gathered.projection.policy.window;
    assert_eq!(window, contexture_compile::Window::Turns(2));
}
