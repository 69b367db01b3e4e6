//! Branches and checkpoints.

use std::sync::Arc;

use contexture_ir::CheckpointName;
use contexture_store::{
    Activation, BranchLabel, EntityKind, Error, EventKind, PathEnd, ReadRequest, RefChange,
    RefChanged, Store,
};

use crate::chat::{Chat, branch, branch_end, claim_of, new_branch, node};

type Tested = Arc<dyn Store>;

pub(in crate::behaviours) async fn automatic_names_follow_the_formula(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    // Rewind, rewind, back to main, to main-v2, to main: a branch of a branch counts on in the same line.
    for (from, expected) in [
        ("main", "main-v2"),
        ("main-v2", "main-v3"),
        ("main", "main-v4"),
        ("main-v2", "main-v5"),
        ("main", "main-v6"),
    ] {
        assert_eq!(chat.rewind(from, "a", Activation::Activate).await, expected);
        assert!(chat.branch_record(expected).await.active);
    }
    // A name that somebody chose is not generated, and one that only looks similar is not counted.
    for name in ["other-v3", "other", "otherwise"] {
        let label = BranchLabel::Named(branch(name));
        let new = new_branch(Some("a"), label, Activation::Keep);
        chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
    }
    assert_eq!(
        chat.rewind("other", "a", Activation::Keep).await,
        "other-v4"
    );
    assert_eq!(
        chat.rewind("otherwise", "a", Activation::Keep).await,
        "otherwise-v2"
    );
}

pub(in crate::behaviours) async fn asides_count_on(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    for expected in ["main-v2", "main-v3", "main-v4"] {
        assert_eq!(chat.rewind("main", "a", Activation::Keep).await, expected);
    }
    assert!(chat.branch_record("main").await.active);
    let order = ["main", "main-v2", "main-v3", "main-v4"];
    assert_eq!(chat.branch_names().await, order);
}

pub(in crate::behaviours) async fn rewinds_in_a_row_count_on(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let mut from = "main".to_owned();
    for number in 2..12 {
        from = chat.rewind(&from, "a", Activation::Activate).await;
        assert_eq!(from, format!("main-v{number}"));
    }
}

pub(in crate::behaviours) async fn names_never_outgrow_their_rule(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    // Each is as long as a name may be, so that a number behind it would pass the limit.
    let long = "x".repeat(255);
    let label = BranchLabel::Named(branch(&long));
    let new = new_branch(Some("a"), label, Activation::Keep);
    chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
    for _ in 0..20 {
        let name = chat.rewind(&long, "a", Activation::Keep).await;
        assert!(name.starts_with("xxx") && name.len() <= 255, "{name}");
    }
    assert_eq!(chat.branch_names().await.len(), 22);
}

pub(in crate::behaviours) async fn both_sides_of_a_fork_grow(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    chat.rewind("main", "b", Activation::Keep).await;
    // Both start at one head, and both continue from it.
    chat.append_messages("main-v2", &["x"]).await;
    chat.append_messages("main", &["c"]).await;
    chat.append_messages("main-v2", &["y"]).await;
    chat.append_messages("main", &["d"]).await;
    chat.expect_path("main", &["a", "b", "c", "d"]).await;
    chat.expect_path("main-v2", &["a", "b", "x", "y"]).await;
}

pub(in crate::behaviours) async fn a_fork_at_a_fork(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b", "c"]).await;
    assert_eq!(chat.rewind("main", "b", Activation::Keep).await, "main-v2");
    chat.append_messages("main-v2", &["x", "y"]).await;
    // At the last shared node, at the first own node, at the root.
    for (base, name, word, path) in [
        ("b", "p", "1", vec!["a", "b", "1"]),
        ("x", "q", "2", vec!["a", "b", "x", "2"]),
        ("a", "r", "3", vec!["a", "3"]),
    ] {
        let label = BranchLabel::Named(branch(name));
        let new = new_branch(Some(base), label, Activation::Keep);
        chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
        chat.append_messages(name, &[word]).await;
        chat.expect_path(name, &path).await;
    }
    chat.expect_path("main", &["a", "b", "c"]).await;
    chat.expect_path("main-v2", &["a", "b", "x", "y"]).await;
}

pub(in crate::behaviours) async fn alternating_growth_reads_back(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["root"]).await;
    for name in ["p", "q", "r"] {
        let label = BranchLabel::Named(branch(name));
        let new = new_branch(Some("root"), label, Activation::Keep);
        chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
    }
    let words = |name: &str| -> Vec<String> {
        let own = (0..150).map(|n| format!("{name}{n}"));
        std::iter::once("root".to_owned()).chain(own).collect()
    };
    // Alternating, so that the nodes of a branch are not stored next to each other.
    for n in 0..150 {
        for name in ["p", "q", "r"] {
            chat.append_messages(name, &[&format!("{name}{n}")]).await;
        }
    }
    for name in ["p", "q", "r"] {
        let words = words(name);
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        chat.expect_path(name, &words).await;
        // A sample of places: reading back from a node must give the same path as reading the
        // branch.
        for (depth, word) in words.iter().enumerate().step_by(37) {
            let part = chat
                .read_path(ReadRequest::last_nodes(PathEnd::Node(node(word)), 3))
                .await
                .unwrap();
            let got: Vec<_> = part.nodes.iter().map(|node| node.id).collect();
            let from = (depth + 1).saturating_sub(3);
            let wanted: Vec<_> = words[from..=depth].iter().map(|word| node(word)).collect();
            assert_eq!(got, wanted);
        }
    }
}

pub(in crate::behaviours) async fn deletion_frees_the_name_only(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    chat.rewind("main", "a", Activation::Keep).await;
    chat.append_messages("main-v2", &["x"]).await;
    let deleted = chat
        .change_ref(RefChange::DeleteBranch(branch("main-v2")))
        .await;
    assert_eq!(deleted.unwrap(), RefChanged::Deleted);
    assert_eq!(chat.branch_names().await, ["main"]);
    assert!(matches!(
        chat.read_path(ReadRequest::whole_path(branch_end("main-v2")))
            .await
            .unwrap_err(),
        Error::NotFound {
            what: EntityKind::Branch,
            ..
        }
    ));
    // The node is still found by its id: only the name is gone.
    let path = chat.path_nodes(PathEnd::Node(node("x"))).await;
    assert_eq!(path.len(), 2);
    // A replay onto it is still one, on no branch.
    let label = BranchLabel::Named(branch("main-v2"));
    let new = new_branch(Some("x"), label, Activation::Keep);
    let replayed = chat.append_messages("main", &["x"]).await;
    assert_eq!((replayed.replayed, replayed.branch), (true, None));
    // The name is free, and nodes can be appended after the old ones, whose segment has no branch.
    chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
    chat.append_messages("main-v2", &["y"]).await;
    chat.expect_path("main-v2", &["a", "x", "y"]).await;
}

pub(in crate::behaviours) async fn the_active_branch_stays(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let error = chat
        .change_ref(RefChange::DeleteBranch(branch("main")))
        .await;
    assert!(matches!(error.unwrap_err(), Error::Invalid { .. }));
    let name = chat.rewind("main", "a", Activation::Activate).await;
    // No longer active, it can be deleted: even the first branch is not special.
    chat.change_ref(RefChange::DeleteBranch(branch("main")))
        .await
        .unwrap();
    let refs = chat.store.list_refs(&chat.owner, &chat.id).await.unwrap();
    assert_eq!(refs.active_branch().unwrap().name, branch(&name));
    let record = chat
        .store
        .load_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!((record.active, record.branches), (branch(&name), 1));
}

pub(in crate::behaviours) async fn unknown_names_are_not_found(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a"]).await;
    let never = CheckpointName::new("never").unwrap();
    for change in [
        RefChange::Activate(branch("never")),
        RefChange::DeleteBranch(branch("never")),
        claim_of("never"),
        move_to("never", None, None),
        RefChange::DeleteCheckpoint(never.clone()),
        RefChange::SetCheckpoint {
            name: never,
            node: node("never"),
        },
        RefChange::CreateBranch(new_branch(
            Some("never"),
            BranchLabel::After(branch("main")),
            Activation::Activate,
        )),
    ] {
        let error = chat.change_ref(change.clone()).await.unwrap_err();
        assert!(
            matches!(error, Error::NotFound { .. }),
            "{change:?}: {error}"
        );
    }
    // None of the refused changes may have left a name.
    let refs = chat.store.list_refs(&chat.owner, &chat.id).await.unwrap();
    assert_eq!((refs.branches.len(), refs.checkpoints.len()), (1, 0));
}

pub(in crate::behaviours) async fn checkpoints_are_set_moved_and_deleted(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b", "c"]).await;
    let set = async |name: &str, at: &str| {
        let change = RefChange::SetCheckpoint {
            name: CheckpointName::new(name).unwrap(),
            node: node(at),
        };
        let changed = chat.change_ref(change).await.unwrap();
        let RefChanged::Checkpoint {
            checkpoint,
            replaced,
        } = changed
        else {
            panic!("{changed:?}");
        };
        assert_eq!(checkpoint.node, node(at));
        replaced
    };
    assert_eq!(set("z: vor der Änderung", "b").await, None);
    set("a", "c").await;
    // Set again under the same name: the checkpoint moves, there are not two.
    assert_eq!(set("z: vor der Änderung", "a").await, Some(node("b")));
    let refs = chat.store.list_refs(&chat.owner, &chat.id).await.unwrap();
    let got = refs.checkpoints.iter();
    let got: Vec<_> = got.map(|one| (one.name.as_str(), one.node)).collect();
    assert_eq!(got, [("a", node("c")), ("z: vor der Änderung", node("a"))]);
    let name = CheckpointName::new("a").unwrap();
    // A checkpoint names a node and not a branch, so growth does not move it.
    chat.append_messages("main", &["d"]).await;
    let path = chat.path_nodes(PathEnd::Checkpoint(name.clone())).await;
    assert_eq!(path.len(), 3);
    let delete = RefChange::DeleteCheckpoint(name.clone());
    chat.change_ref(delete).await.unwrap();
    let gone = chat
        .read_path(ReadRequest::whole_path(PathEnd::Checkpoint(name)))
        .await;
    let what = EntityKind::Checkpoint;
    assert!(matches!(gone, Err(Error::NotFound { what: found, .. }) if found == what));
}

pub(in crate::behaviours) async fn names_of_checkpoints_are_given_once(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    let create = async |at: &str| {
        let (name, node) = (CheckpointName::new("here").unwrap(), node(at));
        chat.change_ref(RefChange::CreateCheckpoint { name, node })
            .await
    };
    create("a").await.unwrap();
    let taken = create("b").await;
    let what = EntityKind::Checkpoint;
    assert!(matches!(taken, Err(Error::AlreadyExists { what: found, .. }) if found == what));
    // The node that has the name may be given it again, so that a request can be repeated.
    let again = create("a").await.unwrap();
    assert!(
        matches!(again, RefChanged::Checkpoint { replaced, .. } if replaced == Some(node("a")))
    );
    let unknown = create("never").await.unwrap_err();
    assert!(matches!(
        unknown,
        Error::AlreadyExists { .. } | Error::NotFound { .. }
    ));
    let refs = chat.store.list_refs(&chat.owner, &chat.id).await.unwrap();
    assert_eq!(refs.checkpoints[0].node, node("a"));
}

pub(in crate::behaviours) async fn a_renamed_branch_is_the_same_branch(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    // Claimed, to show that the fence is kept under the new name.
    chat.change_ref(claim_of("main")).await.unwrap();
    let side = chat.rewind("main", "a", Activation::Keep).await;
    let rename = |from: &str, to: &str| RefChange::RenameBranch {
        from: branch(from),
        to: branch(to),
    };
    let before = chat.branch_record("main").await;
    let changed = chat.change_ref(rename("main", "trunk")).await.unwrap();
    let mut expected = before;
    expected.name = branch("trunk");
    assert_eq!(changed, RefChanged::Branch(expected));
    assert_eq!(chat.branch_names().await, ["trunk", &*side]);
    chat.append_messages("trunk", &["c"]).await;
    chat.expect_path("trunk", &["a", "b", "c"]).await;
    let record = chat.store.load_conversation(&chat.owner, &chat.id).await;
    assert_eq!(record.unwrap().active, branch("trunk"));
    let told = EventKind::BranchRenamed {
        from: branch("main"),
        to: branch("trunk"),
    };
    assert!(chat.event_kinds().await.contains(&told));

    let seen = chat.snapshot_text().await;
    for (from, to, kind) in [
        ("main", "other", "not_found"),
        ("never", "trunk", "not_found"),
        ("trunk", &*side, "already_exists"),
        // Its own name is taken as well, by the branch itself.
        ("trunk", "trunk", "already_exists"),
    ] {
        let refused = chat.change_ref(rename(from, to)).await.unwrap_err();
        assert_eq!(refused.kind(), kind, "{from} to {to}");
    }
    assert_eq!(chat.snapshot_text().await, seen);
    // The old name is free.
    let label = BranchLabel::Named(branch("main"));
    let new = new_branch(Some("a"), label, Activation::Keep);
    chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
    chat.change_ref(rename("main", "main-v2x")).await.unwrap();
}

fn move_to(name: &str, expect: Option<&str>, to: Option<&str>) -> RefChange {
    RefChange::Move {
        branch: branch(name),
        expect: expect.map(node),
        to: to.map(node),
    }
}

pub(in crate::behaviours) async fn a_moved_branch_goes_on_from_its_new_head(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    let before = chat.branch_record("main").await;
    chat.append_messages("main", &["c", "d"]).await;
    // Back to an earlier node: all that is known of the branch is as it was then.
    let back = move_to("main", Some("d"), Some("b"));
    let changed = chat.change_ref(back).await.unwrap();
    assert_eq!(changed, RefChanged::Branch(before.clone()));
    assert_eq!(chat.branch_record("main").await, before);
    chat.expect_path("main", &["a", "b"]).await;
    // What it left is still there, on no branch.
    assert_eq!(chat.path_nodes(PathEnd::Node(node("d"))).await.len(), 4);
    let replayed = chat.append_messages("main", &["c", "d"]).await;
    assert_eq!((replayed.replayed, replayed.branch), (true, None));
    chat.expect_path("main", &["a", "b"]).await;
    // What follows stands behind the new head.
    chat.append_messages("main", &["x", "y"]).await;
    chat.expect_path("main", &["a", "b", "x", "y"]).await;
    // To what it had left, to the beginning, and on from there.
    chat.change_ref(move_to("main", Some("y"), Some("d")))
        .await
        .unwrap();
    chat.append_messages("main", &["e"]).await;
    chat.expect_path("main", &["a", "b", "c", "d", "e"]).await;
    chat.change_ref(move_to("main", Some("e"), None))
        .await
        .unwrap();
    assert_eq!(chat.branch_record("main").await.head, None);
    chat.append_messages("main", &["z"]).await;
    chat.expect_path("main", &["z"]).await;
    let told = EventKind::BranchMoved {
        branch: branch("main"),
        head: None,
    };
    assert!(chat.event_kinds().await.contains(&told));
    let record = chat.store.load_conversation(&chat.owner, &chat.id).await;
    let record = record.unwrap();
    assert_eq!((record.nodes, record.messages), (8, 1));
}

pub(in crate::behaviours) async fn a_branch_is_moved_from_the_expected_head_only(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    chat.rewind("main", "a", Activation::Keep).await;
    let seen = chat.snapshot_text().await;
    for (change, kind) in [
        (move_to("main", Some("a"), None), "head_moved"),
        (move_to("main", None, Some("a")), "head_moved"),
        (move_to("never", Some("b"), Some("a")), "not_found"),
        (move_to("main", Some("b"), Some("never")), "not_found"),
    ] {
        let refused = chat.change_ref(change.clone()).await.unwrap_err();
        assert_eq!(refused.kind(), kind, "{change:?}");
    }
    assert_eq!(chat.snapshot_text().await, seen);
    // A claim and other branches at the same nodes are not touched by it.
    chat.change_ref(claim_of("main")).await.unwrap();
    chat.change_ref(move_to("main", Some("b"), Some("a")))
        .await
        .unwrap();
    let main = chat.branch_record("main").await;
    assert_eq!((main.fence.0, main.active), (1, true));
    chat.append_messages("main-v2", &["x"]).await;
    chat.expect_path("main", &["a"]).await;
    chat.expect_path("main-v2", &["a", "x"]).await;
}

pub(in crate::behaviours) async fn of_concurrent_moves_one_succeeds(store: Tested) {
    let chat = Chat::start(store).await;
    chat.append_messages("main", &["a", "b"]).await;
    let moves = (0..8).map(|_| chat.change_ref(move_to("main", Some("b"), Some("a"))));
    let moved = futures_util::future::join_all(moves).await;
    let moved = moved.iter().filter(|moved| moved.is_ok());
    assert_eq!(moved.count(), 1);
    chat.expect_path("main", &["a"]).await;
}
