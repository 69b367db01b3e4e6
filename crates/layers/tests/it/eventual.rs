//! Words made after the answer before: used once, replaced, never brought back.

use contexture_compile::{PathItem, Stability};
use contexture_layers::{
    Hook, HookOutcome, HookStatus, LayerStates, Layers, Projection, RecallCache, RecallMode,
};

use crate::recording_layer::{
    Act, Log, RecordingLayer, context, id, list, node, path, recall, stored, taken, texts,
};

fn eventual(log: &Log) -> RecordingLayer {
    RecordingLayer::new("a", log).with(|spec| spec.recall = RecallMode::Eventual)
}

fn having(layers: &Layers, state: &str) -> LayerStates {
    layers.restore_states([(id("a"), stored(1, state))])
}

async fn gathered(
    layers: &Layers,
    states: &LayerStates,
    path: &[PathItem],
    last: &mut RecallCache,
) -> (Vec<String>, Vec<HookOutcome>) {
    let mut context = context();
    context.head = path.last().and_then(|item| item.node);
    let spec = layers.specs().next().unwrap().clone();
    let call = recall(&context, path, &spec);
    let all = layers.recall_all(states, call, Projection::default(), last);
    let all = all.await.unwrap();
    (texts(&all.contributions), all.outcomes)
}

async fn refreshed(
    layers: &Layers,
    states: &LayerStates,
    path: &[PathItem],
    last: &mut RecallCache,
) -> Vec<HookOutcome> {
    let mut context = context();
    context.head = path.last().map(|item| item.node.unwrap_or(node(0)));
    let spec = layers.specs().next().unwrap().clone();
    let call = recall(&context, path, &spec);
    layers.refresh_recall(states, call, last).await.unwrap()
}

#[tokio::test]
async fn a_call_waits_only_where_nothing_was_said_yet() {
    let log = Log::default();
    let layers = list([eventual(&log)]);
    let last = &mut RecallCache::default();
    let (said, _) = gathered(&layers, &having(&layers, "1"), &path(&[1]), last).await;
    assert_eq!(
        (said, taken(&log).len()),
        (vec!["a: <hint>1</hint>".into()], 1)
    );
    let (said, _) = gathered(&layers, &having(&layers, "2"), &path(&[1, 2]), last).await;
    assert_eq!(
        (said, taken(&log).len()),
        (vec!["a: <hint>1</hint>".into()], 0)
    );
    refreshed(&layers, &having(&layers, "3"), &path(&[1, 2]), last).await;
    let (said, _) = gathered(&layers, &having(&layers, "4"), &path(&[1, 2, 3]), last).await;
    assert_eq!(
        (said, taken(&log).len()),
        (vec!["a: <hint>3</hint>".into()], 1)
    );
}

#[tokio::test]
async fn what_was_cleared_never_comes_back() {
    let log = Log::default();
    let full = list([eventual(&log)]);
    let empty = list([eventual(&log).on(Hook::Recall, Act::SayNothing)]);
    let last = &mut RecallCache::default();
    gathered(&full, &having(&full, "1"), &path(&[1]), last).await;
    refreshed(&empty, &having(&empty, "2"), &path(&[1, 2]), last).await;
    for nodes in [&[1, 2][..], &[1, 2, 3], &[1, 2, 3, 4]] {
        let (said, _) = gathered(&empty, &having(&empty, "2"), &path(nodes), last).await;
        assert_eq!(said, [""; 0]);
    }
}

#[tokio::test]
async fn words_made_elsewhere_are_not_used() {
    let log = Log::default();
    let layers = list([eventual(&log)]);
    let last = &mut RecallCache::default();
    let made = async |last: &mut RecallCache| {
        refreshed(&layers, &having(&layers, "1"), &path(&[1, 2, 3]), last).await;
        taken(&log);
    };
    // The path, and whether it holds node 3.
    let cases: [(&[u8], bool); 4] = [
        (&[1, 2, 3], true),
        (&[1, 2, 3, 4], true),
        (&[1, 2], false),
        (&[1, 2, 9], false),
    ];
    for (nodes, used) in cases {
        made(last).await;
        let (said, _) = gathered(&layers, &having(&layers, "5"), &path(nodes), last).await;
        let expected = if used {
            "a: <hint>1</hint>"
        } else {
            "a: <hint>5</hint>"
        };
        assert_eq!(said, [expected], "{nodes:?}");
    }
}

#[tokio::test]
async fn cached_recall_stays_valid_at_its_head_after_rewind() {
    let log = Log::default();
    let layers = list([eventual(&log)]);
    let last = &mut RecallCache::default();
    refreshed(&layers, &having(&layers, "1"), &path(&[1]), last).await;
    gathered(&layers, &having(&layers, "2"), &path(&[1, 2]), last).await;
    taken(&log);
    gathered(&layers, &having(&layers, "3"), &path(&[1]), last).await;
    assert_eq!(taken(&log), [""; 0]);
}

#[tokio::test]
async fn a_refresh_that_fails_is_told_and_leaves_what_seldom_changes() {
    for (stability, expected) in [
        (Stability::Epoch, "a: <hint>1</hint>"),
        (Stability::Volatile, "a: <hint>2</hint>"),
    ] {
        let log = Log::default();
        let probe = eventual(&log).with(|spec| spec.stability = stability);
        let well = list([probe.clone()]);
        let ill = list([probe.on(Hook::Recall, Act::Panic)]);
        let last = &mut RecallCache::default();
        gathered(&well, &having(&well, "1"), &path(&[1]), last).await;
        let outcomes = refreshed(&ill, &having(&ill, "2"), &path(&[1, 2]), last).await;
        let stale = matches!(outcomes[0].status, HookStatus::Stale { .. });
        assert_eq!(stale, stability == Stability::Epoch);
        let (said, _) = gathered(&well, &having(&well, "2"), &path(&[1, 2]), last).await;
        assert_eq!(said, [expected]);
    }
}

#[tokio::test]
async fn failed_atomic_recall_reuses_cache_unless_volatile() {
    for (stability, expected) in [
        (Stability::Frozen, &["a: <hint>1</hint>"][..]),
        (Stability::Volatile, &[]),
    ] {
        let log = Log::default();
        let probe = RecordingLayer::new("a", &log).with(|spec| spec.stability = stability);
        let well = list([probe.clone()]);
        let ill = list([probe.on(Hook::Recall, Act::Fail)]);
        let last = &mut RecallCache::default();
        gathered(&well, &having(&well, "1"), &path(&[1, 2]), last).await;
        let (said, outcomes) = gathered(&ill, &having(&ill, "2"), &path(&[1, 2]), last).await;
        assert_eq!(said, expected);
        assert!(!outcomes[0].status.is_ok());
        let (said, _) = gathered(&ill, &having(&ill, "2"), &path(&[1]), last).await;
        assert_eq!(said, [""; 0], "said on a path that is left");
    }
}

#[tokio::test]
async fn a_layer_without_a_state_says_nothing_though_it_once_did() {
    let log = Log::default();
    let layers = list([eventual(&log)]);
    let last = &mut RecallCache::default();
    refreshed(&layers, &having(&layers, "1"), &path(&[1]), last).await;
    let (said, outcomes) = gathered(&layers, &having(&layers, "{"), &path(&[1]), last).await;
    assert_eq!(said, [""; 0]);
    assert!(matches!(outcomes[0].status, HookStatus::Skipped { .. }));
}
