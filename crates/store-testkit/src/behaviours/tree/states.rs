//! State of nodes.

use std::sync::Arc;

use contexture_ir::ContentHash;
use contexture_store::{
    Activation, AppendRequest, Appended, Error, PathEnd, StateChange, StateExpectation, StateKey,
    StatePatch, StateRequest, StateValues, Store,
};

use crate::chat::{Chat, NOW, branch_end, item, node};

type Tested = Arc<dyn Store>;

fn state_key(text: &str) -> StateKey {
    StateKey::new(text).unwrap()
}

fn put_change(name: &str, value: &str) -> StateChange {
    StateChange::put_entry(state_key(name), 1, value.as_bytes())
}

fn expected_state(entries: &[(&str, &str)]) -> Vec<(String, u32, String)> {
    let entries = entries.iter();
    entries
        .map(|(key, value)| ((*key).to_owned(), 1, (*value).to_owned()))
        .collect()
}

async fn append_with_changes(
    chat: &Chat,
    name: &str,
    words: &[&str],
    changes: Vec<StateChange>,
    from: usize,
) -> Result<Appended, Error> {
    let items = words.iter().map(|word| item(word)).collect();
    let request = AppendRequest {
        patch: StatePatch { changes, from },
        ..AppendRequest::new(Chat::at_tip(name), items, NOW)
    };
    chat.append_request(request).await
}

pub(in crate::behaviours) async fn rewind_with_the_head(store: Tested) {
    let chat = Chat::start(store).await;
    append_with_changes(&chat, "main", &["a"], vec![put_change("k", "1")], 0)
        .await
        .unwrap();
    append_with_changes(
        &chat,
        "main",
        &["b"],
        vec![put_change("k", "2"), put_change("l", "x")],
        0,
    )
    .await
    .unwrap();
    chat.append_messages("main", &["c"]).await;
    let now = expected_state(&[("k", "2"), ("l", "x")]);
    assert_eq!(chat.state_values(branch_end("main")).await, now);
    assert_eq!(
        chat.state_values(PathEnd::Node(node("a"))).await,
        expected_state(&[("k", "1")])
    );
    // From here on two branches change a common state separately.
    chat.rewind("main", "a", Activation::Activate).await;
    assert_eq!(
        chat.state_values(branch_end("main-v2")).await,
        expected_state(&[("k", "1")])
    );
    append_with_changes(&chat, "main-v2", &["d"], vec![put_change("m", "y")], 0)
        .await
        .unwrap();
    assert_eq!(
        chat.state_values(branch_end("main-v2")).await,
        expected_state(&[("k", "1"), ("m", "y")])
    );
    assert_eq!(chat.state_values(branch_end("main")).await, now);
}

pub(in crate::behaviours) async fn patches_can_start_late(store: Tested) {
    let chat = Chat::start(store).await;
    append_with_changes(&chat, "main", &["a"], vec![put_change("k", "1")], 0)
        .await
        .unwrap();
    append_with_changes(
        &chat,
        "main",
        &["b", "c", "d"],
        vec![put_change("k", "2")],
        1,
    )
    .await
    .unwrap();
    for (word, value) in [("a", "1"), ("b", "1"), ("c", "2"), ("d", "2")] {
        assert_eq!(
            chat.state_values(PathEnd::Node(node(word))).await,
            expected_state(&[("k", value)]),
            "{word}"
        );
    }
    // Only one item, so position 1 does not exist.
    let error = append_with_changes(&chat, "main", &["e"], vec![put_change("k", "3")], 1)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "patch", .. }));
}

pub(in crate::behaviours) async fn conditions_are_checked_against_the_current_head(store: Tested) {
    let chat = Chat::start(store).await;
    let absent = || vec![put_change("k", "1").with_condition(StateExpectation::Absent)];
    let append =
        async |word: &str, changes| append_with_changes(&chat, "main", &[word], changes, 0).await;
    append("a", absent()).await.unwrap();
    match append("b", absent()).await.unwrap_err() {
        Error::StateConflict {
            key: at,
            expected,
            actual,
        } => {
            assert_eq!((at, expected), (state_key("k"), StateExpectation::Absent));
            // The error says what is there, so that a caller need not read again to merge.
            assert_eq!(actual, Some(ContentHash::of(b"1")));
        }
        other => panic!("{other}"),
    }
    let swap = |from: &str, to: &str| {
        let expect = StateExpectation::Hash(ContentHash::of(from.as_bytes()));
        vec![put_change("k", to).with_condition(expect)]
    };
    append("c", swap("1", "2")).await.unwrap();
    // One failed condition among good changes leaves nothing of either.
    let mut mixed = swap("1", "3");
    mixed.insert(0, put_change("other", "x"));
    let error = append("d", mixed).await.unwrap_err();
    assert!(matches!(error, Error::StateConflict { .. }));
    assert_eq!(
        chat.state_values(branch_end("main")).await,
        expected_state(&[("k", "2")])
    );
    chat.expect_path("main", &["a", "c"]).await;
    let gone = vec![
        StateChange::remove_entry(state_key("never"))
            .with_condition(StateExpectation::Hash(ContentHash::of(b"1"))),
    ];
    let error = append("e", gone).await.unwrap_err();
    assert!(matches!(error, Error::StateConflict { actual: None, .. }));
}

pub(in crate::behaviours) async fn removal_and_no_change(store: Tested) {
    let chat = Chat::start(store).await;
    let append = async |word: &str, changes| {
        append_with_changes(&chat, "main", &[word], changes, 0)
            .await
            .unwrap();
    };
    let remove = |key: &str| StateChange::remove_entry(state_key(key));
    append("a", vec![put_change("k", "1"), put_change("l", "1")]).await;
    append("b", vec![remove("k")]).await;
    let only_l = expected_state(&[("l", "1")]);
    assert_eq!(chat.state_values(branch_end("main")).await, only_l);
    // Equal values and removals of what is not there leave the state as it is.
    append("c", vec![put_change("l", "1"), remove("never")]).await;
    assert_eq!(chat.state_values(branch_end("main")).await, only_l);
    // The same value under another schema version is a change.
    let raised = StateChange::put_entry(state_key("l"), 2, *b"1");
    append("d", vec![raised]).await;
    let got = chat.state_values(branch_end("main")).await;
    assert_eq!(got, [("l".to_owned(), 2, "1".to_owned())]);
    append("e", vec![remove("l")]).await;
    assert!(chat.state_values(branch_end("main")).await.is_empty());
    // A value that is removed at the head can still be read after a rewind.
    assert_eq!(
        chat.state_values(PathEnd::Node(node("a"))).await,
        expected_state(&[("k", "1"), ("l", "1")])
    );
}

pub(in crate::behaviours) async fn parts_can_be_read(store: Tested) {
    let chat = Chat::start(store).await;
    let changes = vec![
        put_change("path/a/1", "x"),
        put_change("path/a/2", "y"),
        put_change("path/b", "x"),
        put_change("run/1", ""),
    ];
    append_with_changes(&chat, "main", &["a"], changes, 0)
        .await
        .unwrap();
    for (prefix, count) in [
        ("", 4),
        ("path/", 3),
        ("path/a/", 2),
        ("run/1", 1),
        ("z", 0),
    ] {
        for values in [StateValues::Load, StateValues::Skip] {
            let request = StateRequest {
                at: branch_end("main"),
                prefix: prefix.to_owned(),
                values,
            };
            let got = chat
                .store
                .read_state(&chat.owner, &chat.id, request)
                .await
                .unwrap();
            assert_eq!(got.root.len(), count, "{prefix}");
            let all = got.root.keys().all(|key| got.loaded_value(key).is_some());
            assert_eq!(all, values == StateValues::Load || count == 0);
        }
    }
}

pub(in crate::behaviours) async fn patches_that_contradict_themselves(store: Tested) {
    let chat = Chat::start(store).await;
    let twice = vec![put_change("k", "1"), put_change("k", "2")];
    let error = append_with_changes(&chat, "main", &["a"], twice, 0)
        .await
        .unwrap_err();
    assert!(matches!(error, Error::Invalid { what: "patch", .. }));
    chat.expect_path("main", &[]).await;
    for bad in ["", "a\nb", &"k".repeat(256)] {
        assert!(StateKey::new(bad).is_err(), "{bad:?}");
    }
}

pub(in crate::behaviours) async fn long_histories_stay_readable(store: Tested) {
    let chat = Chat::start(store).await;
    // Five layers take turns: at each node every layer has the value of its last turn.
    let value = |n: usize, layer: usize| format!("{}", (n.saturating_sub(layer)) / 5);
    for n in 0..200 {
        let layer = n % 5;
        let name = format!("path/layer {layer}");
        let changes = vec![put_change(&name, &value(n, layer))];
        append_with_changes(&chat, "main", &[&n.to_string()], changes, 0)
            .await
            .unwrap();
    }
    for n in (4..200_usize).step_by(13) {
        let got = chat.state_values(PathEnd::Node(node(&n.to_string()))).await;
        assert_eq!(got.len(), 5);
        for (layer, (_, _, got)) in got.iter().enumerate() {
            assert_eq!(*got, value(n, layer), "layer {layer} at {n}");
        }
    }
}
