//! Bytes in, bytes out: what is read, what is to be stored, and what is never touched.

use contexture_layers::{Hook, ObservedItems, STATE_BYTES, StoredState};
use proptest::prelude::*;

use crate::recording_layer::{
    Act, Log, RecordingLayer, begun, context, id, list, stored, taken, written,
};

const SEEN: ObservedItems<'static> = ObservedItems {
    items: &[],
    nodes: &[],
    response: None,
    usage: None,
};

#[tokio::test]
async fn what_did_not_change_is_not_stored() {
    let log = Log::default();
    let layers = list([
        RecordingLayer::new("a", &log),
        RecordingLayer::new("b", &log),
    ]);
    let mut states = layers.restore_states([]);
    assert!(written(&layers, &states).is_empty());
    layers.init_states(&mut states, &context()).await.unwrap();
    assert_eq!(written(&layers, &states).len(), 2);
    states.mark_committed();
    assert!(written(&layers, &states).is_empty());
    layers
        .call_function(
            &mut states,
            "a_set",
            &contexture_ir::Raw::parse("5").unwrap(),
            &context(),
        )
        .await
        .unwrap();
    let changed = layers.changed_states(&states);
    assert_eq!(changed.len(), 1);
    assert_eq!(changed[0].layer, id("a"));
    assert_eq!(changed[0].current, stored(1, "5"));
    assert_eq!(changed[0].previous, Some(stored(1, "100")));
    layers
        .call_function(
            &mut states,
            "a_set",
            &contexture_ir::Raw::parse("100").unwrap(),
            &context(),
        )
        .await
        .unwrap();
    assert!(written(&layers, &states).is_empty(), "it is as it was");
}

#[tokio::test]
async fn a_state_that_cannot_be_read_is_left_alone() {
    let cases = [
        (stored(1, "\"text\""), "cannot be read by version 1"),
        (stored(1, "{"), "cannot be read by version 1"),
        (stored(2, "1"), "unknown"),
        (stored(13, "1"), "it panicked: an unlucky version"),
        (
            StoredState {
                version: 0,
                bytes: vec![0xff, 0xfe].into(),
            },
            "of version 0 cannot be read",
        ),
    ];
    for (bad, reason) in cases {
        let log = Log::default();
        let layers = list([
            RecordingLayer::new("a", &log),
            RecordingLayer::new("b", &log),
        ]);
        let mut states = layers.restore_states([(id("a"), bad.clone())]);
        let outcomes = layers.init_states(&mut states, &context()).await.unwrap();
        assert!(
            format!("{:?}", outcomes[0]).contains(reason),
            "{outcomes:?}"
        );
        let outcomes = layers.observe(&mut states, SEEN, &context()).await.unwrap();
        assert!(format!("{:?}", outcomes[0].status).starts_with("Skipped"));
        assert!(outcomes[1].status.is_ok());
        assert_eq!(written(&layers, &states), [("b".into(), "101".into())]);
        assert_eq!(taken(&log), ["b init", "b observe"]);
    }
}

#[tokio::test]
async fn an_older_state_is_migrated_and_stored_anew_when_it_changes() {
    let log = Log::default();
    let layers = list([RecordingLayer::new("a", &log).with(|spec| spec.version = 2)]);
    let mut states = layers.restore_states([(id("a"), stored(0, "\"four\""))]);
    assert!(written(&layers, &states).is_empty(), "reading is no change");
    assert_eq!(layers.export_state(&states, "a").unwrap().get(), "4");
    layers.observe(&mut states, SEEN, &context()).await.unwrap();
    let changed = layers.changed_states(&states);
    assert_eq!(changed[0].current, stored(2, "5"));
    assert_eq!(changed[0].previous, Some(stored(0, "\"four\"")));
}

#[tokio::test]
async fn a_state_the_layer_refuses_is_not_kept() {
    let log = Log::default();
    let layers = list([RecordingLayer::new("a", &log)]);
    let mut states = begun(&layers).await;
    let thousand = contexture_ir::Raw::parse("1000").unwrap();
    let error = layers
        .call_function(&mut states, "a_set", &thousand, &context())
        .await
        .unwrap_err();
    assert_eq!(error.to_string(), "a thousand is too many");
    assert!(written(&layers, &states).is_empty());
}

/// A layer whose state is one long text.
struct Long;

#[async_trait::async_trait]
impl contexture_layers::Layer for Long {
    type State = String;

    fn spec(&self) -> contexture_layers::LayerSpec {
        contexture_layers::LayerSpec::new(id("long"))
    }

    async fn recall(
        &self,
        _: &String,
        _: &contexture_layers::RecallInput<'_>,
    ) -> Result<Vec<contexture_compile::Contribution>, contexture_layers::LayerError> {
        Ok(Vec::new())
    }

    async fn observe(
        &self,
        state: &mut String,
        seen: &ObservedItems<'_>,
        context: &contexture_layers::HookContext,
    ) -> Result<(), contexture_layers::LayerError> {
        let bytes = usize::try_from(context.turns).unwrap_or_default();
        *state = "x".repeat(bytes);
        context.emit(&id("long"), "grown", contexture_ir::Raw::null());
        let _ = seen;
        Ok(())
    }
}

#[tokio::test]
async fn a_state_larger_than_a_value_may_be_is_refused_by_its_size() {
    let layers = contexture_layers::Layers::new().with_layer(Long).unwrap();
    let mut states = layers.restore_states([]);
    layers.init_states(&mut states, &context()).await.unwrap();
    states.mark_committed();
    // The two quotes count.
    for (bytes, fits) in [(STATE_BYTES - 2, true), (STATE_BYTES - 1, false)] {
        let mut context = context();
        context.turns = bytes as u64;
        let outcomes = layers.observe(&mut states, SEEN, &context).await.unwrap();
        assert_eq!(outcomes[0].status.is_ok(), fits);
        assert_eq!(context.drain_events().is_empty(), !fits);
        let size = layers.changed_states(&states)[0].current.bytes.len();
        assert_eq!(size, STATE_BYTES, "the last that could be kept");
        if !fits {
            let reason = format!("{:?}", outcomes[0].status);
            assert!(
                reason.contains("1048577 bytes, the limit is 1048576"),
                "{reason}"
            );
        }
    }
}

#[tokio::test]
async fn a_child_begins_with_what_its_parents_layers_give_it() {
    let log = Log::default();
    let layers = list([
        RecordingLayer::new("a", &log),
        RecordingLayer::new("out", &log).on(Hook::OnSpawn, Act::LeaveOut),
        RecordingLayer::new("own", &log),
        RecordingLayer::new("out-own", &log).on(Hook::OnSpawn, Act::LeaveOut),
        RecordingLayer::new("bad-own", &log).on(Hook::OnSpawn, Act::Fail),
        RecordingLayer::new("bad", &log).on(Hook::OnSpawn, Act::Fail),
        RecordingLayer::new("unread", &log),
    ]);
    let parent = begun(&layers).await;
    let unreadable = stored(1, "{");
    let mut child = layers.restore_states([
        (id("own"), stored(1, "7")),
        (id("out-own"), stored(1, "7")),
        (id("bad-own"), stored(1, "7")),
        (id("unread"), unreadable.clone()),
    ]);
    taken(&log);
    layers
        .on_spawn(&parent, &mut child, &context())
        .await
        .unwrap();
    let asked = ["a", "out", "own", "out-own", "bad-own", "bad"];
    assert_eq!(taken(&log), asked.map(|id| format!("{id} on_spawn")));
    layers.init_states(&mut child, &context()).await.unwrap();
    assert_eq!(taken(&log), [""; 0], "a child begins once");
    assert_eq!(written(&layers, &child), [("a".into(), "101".into())]);
    for own in ["own", "bad-own"] {
        assert_eq!(layers.export_state(&child, own).unwrap().get(), "7");
    }
    for gone in ["out", "out-own", "bad", "unread"] {
        assert!(layers.export_state(&child, gone).is_err(), "{gone}");
    }
}

proptest! {
    /// To rewind is to give the old bytes back: what follows is what followed then.
    #[test]
    fn states_given_back_go_on_as_they_did(before in 0_usize..5, after in 0_usize..5) {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let log = Log::default();
            let probe = RecordingLayer::new("a", &log).with(|spec| spec.timeouts.observe = None);
            let layers = list([probe]);
            let mut states = begun_without_time(&layers).await;
            for _ in 0..before {
                layers.observe(&mut states, SEEN, &context()).await.unwrap();
            }
            let then = layers.export_state(&states, "a").unwrap();
            for _ in 0..after {
                layers.observe(&mut states, SEEN, &context()).await.unwrap();
            }
            let first = written(&layers, &states);
            let mut again = layers.restore_states([(id("a"), stored(1, then.get()))]);
            for _ in 0..after {
                layers.observe(&mut again, SEEN, &context()).await.unwrap();
            }
            let second = layers.export_state(&again, "a").unwrap();
            assert_eq!(first, [("a".to_owned(), second.get().to_owned())]);
        });
    }
}

async fn begun_without_time(layers: &contexture_layers::Layers) -> contexture_layers::LayerStates {
    let mut states = layers.restore_states([(id("a"), stored(1, "99"))]);
    layers.observe(&mut states, SEEN, &context()).await.unwrap();
    states
}
