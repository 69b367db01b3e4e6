//! The path index: which nodes a hash leads to.

use std::sync::Arc;

use contexture_ir::PathHash;
use contexture_store::{
    Activation, AppendRequest, BranchLabel, EraseScope, Error, PathIndex, PathMark, PathMatch,
    PathQuery, RefChange, Store, erase_all,
};

use super::limits::expect_limit;
use crate::chat::{Chat, NOW, branch, item, new_branch, node};

type Tested = Arc<dyn Store>;

fn path_hash(word: &str) -> PathHash {
    PathHash::derive("testkit", &[word.as_bytes()])
}

pub(super) fn path_mark(version: u32, word: &str, of: &str) -> PathMark {
    PathMark {
        version,
        hash: path_hash(word),
        node: node(of),
    }
}

fn append_with_marks(
    name: &str,
    words: &[&str],
    marks: &[(&str, &str)],
    at_ms: i64,
) -> AppendRequest {
    let items = words.iter().map(|word| item(word)).collect();
    AppendRequest {
        paths: marks
            .iter()
            .map(|(word, of)| path_mark(1, word, of))
            .collect(),
        ..AppendRequest::new(Chat::at_tip(name), items, at_ms)
    }
}

fn path_query(words: &[&str]) -> PathQuery {
    PathQuery {
        version: 1,
        hashes: words.iter().map(|word| path_hash(word)).collect(),
        conversation: None,
        each: 10,
    }
}

fn path_index(chat: &Chat) -> Option<&dyn PathIndex> {
    chat.store.path_index()
}

async fn find_matches(chat: &Chat, query: PathQuery) -> Vec<PathMatch> {
    let found = path_index(chat)
        .unwrap()
        .find_path_hashes(&chat.owner, query);
    found.await.unwrap()
}

/// Formats matches, a line each: hash, conversation, node, depth, heads.
async fn found_lines(chat: &Chat, query: PathQuery, words: &[&str]) -> Vec<String> {
    let name = |places: &PathMatch| {
        let known = |made: &dyn Fn(&str) -> bool| {
            let word = words.iter().find(|word| made(word));
            word.copied().unwrap_or("?").to_owned()
        };
        let heads: Vec<&str> = places.heads.iter().map(|head| head.as_str()).collect();
        format!(
            "{} {} {} {} {}",
            known(&|word| path_hash(word) == places.hash),
            places.conversation,
            known(&|word| node(word) == places.node),
            places.depth,
            heads.join(",")
        )
    };
    find_matches(chat, query).await.iter().map(name).collect()
}

pub(super) async fn marks_come_with_their_nodes(store: Tested) {
    let chat = Chat::start(store).await;
    if path_index(&chat).is_none() {
        chat.append_request(append_with_marks("main", &["a"], &[("h", "a")], NOW))
            .await
            .unwrap();
        return;
    }
    let first = append_with_marks(
        "main",
        &["a", "b"],
        &[("h", "a"), ("i", "b"), ("j", "b")],
        NOW,
    );
    chat.append_request(first.clone()).await.unwrap();
    let words = ["a", "b", "h", "i", "j"];
    assert_eq!(
        found_lines(&chat, path_query(&["j", "never", "h", "i"]), &words).await,
        ["j chat b 2 main", "h chat a 1 ", "i chat b 2 main"]
    );
    // A repetition changes nothing, and neither does a refused append.
    chat.append_request(first).await.unwrap();
    let refused = AppendRequest {
        paths: vec![path_mark(1, "h", "c")],
        ..AppendRequest::new(Chat::at_head("main", None), vec![item("c")], NOW)
    };
    chat.append_request(refused).await.unwrap_err();
    assert_eq!(
        found_lines(&chat, path_query(&["h"]), &words).await,
        ["h chat a 1 "]
    );
    expect_marks_on_segments(&chat).await;
}

/// Marks nodes on a long path and on a branch beside it.
async fn expect_marks_on_segments(chat: &Chat) {
    for number in 0..70 {
        chat.append_messages("main", &[&format!("n{number}")]).await;
    }
    let name = chat.rewind("main", "a", Activation::Keep).await;
    chat.append_request(append_with_marks(&name, &["x", "y"], &[("k", "x")], NOW))
        .await
        .unwrap();
    chat.append_request(append_with_marks("main", &["z"], &[("k", "z")], NOW))
        .await
        .unwrap();
    assert_eq!(
        found_lines(chat, path_query(&["k"]), &["k", "x", "z"]).await,
        ["k chat z 73 main", "k chat x 2 "]
    );
}

pub(super) async fn heads_come_first_and_then_the_latest(store: Tested) {
    let chat = Chat::start(Arc::clone(&store)).await;
    if path_index(&chat).is_none() {
        return;
    }
    for (name, later) in [("one", 10), ("two", 30), ("three", 20), ("four", 40)] {
        start_marked_chat(&store, name, later).await;
    }
    let words = ["h", "a"];
    let all = [
        "h three a 1 main",
        "h one a 1 main",
        "h four a 1 ",
        "h two a 1 ",
    ];
    assert_eq!(found_lines(&chat, path_query(&["h"]), &words).await, all);
    let two = PathQuery {
        each: 2,
        ..path_query(&["h", "h"])
    };
    assert_eq!(
        found_lines(&chat, two, &words).await,
        [&all[..2], &all[..2]].concat()
    );
    let other = Chat {
        id: "two".parse().unwrap(),
        ..chat
    };
    expect_heads_by_creation(&other).await;
}

/// A conversation with a marked node that was last written to `later`. Where that is late, its
/// branch has grown beyond the node; else another branch has.
async fn start_marked_chat(store: &Tested, name: &str, later: i64) {
    let chat = Chat::start_as(Arc::clone(store), "ada", name).await;
    let marked = append_with_marks("main", &["a"], &[("h", "a")], NOW);
    chat.append_request(marked).await.unwrap();
    let (branch, word) = match later > 25 {
        true => ("main".to_owned(), "b"),
        false => (chat.rewind("main", "a", Activation::Keep).await, "c"),
    };
    let next = append_with_marks(&branch, &[word], &[], NOW + later);
    chat.append_request(next).await.unwrap();
}

/// All branches that end at a node are named, in order of creation.
async fn expect_heads_by_creation(chat: &Chat) {
    for label in ["z", "b"] {
        let label = BranchLabel::Named(branch(label));
        let new = new_branch(Some("a"), label, Activation::Keep);
        chat.change_ref(RefChange::CreateBranch(new)).await.unwrap();
    }
    let one = PathQuery {
        conversation: Some(chat.id.clone()),
        ..path_query(&["h"])
    };
    assert_eq!(
        found_lines(chat, one.clone(), &["h", "a"]).await,
        ["h two a 1 z,b"]
    );
    chat.change_ref(RefChange::DeleteBranch(branch("z")))
        .await
        .unwrap();
    assert_eq!(found_lines(chat, one, &["h", "a"]).await, ["h two a 1 b"]);
}

pub(super) async fn a_conversation_may_be_asked_for(store: Tested) {
    let chat = Chat::start(Arc::clone(&store)).await;
    if path_index(&chat).is_none() {
        return;
    }
    let other = Chat::start_as(store, "ada", "other").await;
    for chat in [&chat, &other] {
        chat.append_request(append_with_marks("main", &["a"], &[("h", "a")], NOW))
            .await
            .unwrap();
    }
    for chat in [&chat, &other] {
        let query = PathQuery {
            conversation: Some(chat.id.clone()),
            ..path_query(&["h"])
        };
        let expected = format!("h {} a 1 main", chat.id);
        assert_eq!(found_lines(chat, query, &["h", "a"]).await, [expected]);
    }
    let unknown = PathQuery {
        conversation: Some("nobody".parse().unwrap()),
        ..path_query(&["h"])
    };
    assert_eq!(find_matches(&chat, unknown).await, []);
}

pub(super) async fn marks_are_added_and_other_versions_go(store: Tested) {
    let chat = Chat::start(store).await;
    let Some(paths) = path_index(&chat) else {
        return;
    };
    let append = append_with_marks("main", &["a", "b"], &[("h", "a")], NOW);
    chat.append_request(append).await.unwrap();
    let put = async |version, marks| paths.put_paths(&chat.owner, &chat.id, version, marks).await;
    let words = ["h", "i", "a", "b"];
    put(1, vec![path_mark(1, "i", "b"), path_mark(1, "h", "a")])
        .await
        .unwrap();
    let both = ["h chat a 1 ", "i chat b 2 main"];
    assert_eq!(
        found_lines(&chat, path_query(&["h", "i"]), &words).await,
        both
    );
    let strange = put(2, vec![path_mark(2, "h", "b"), path_mark(2, "h", "never")]).await;
    assert_eq!(strange.unwrap_err().kind(), "not_found");
    assert_eq!(
        found_lines(&chat, path_query(&["h", "i"]), &words).await,
        both
    );
    put(2, vec![path_mark(2, "h", "b")]).await.unwrap();
    assert_eq!(find_matches(&chat, path_query(&["h", "i"])).await, []);
    let second = PathQuery {
        version: 2,
        ..path_query(&["h", "i"])
    };
    assert_eq!(
        found_lines(&chat, second, &words).await,
        ["h chat b 2 main"]
    );
}

pub(super) async fn marks_go_with_their_conversation(store: Tested) {
    let chat = Chat::start(Arc::clone(&store)).await;
    if path_index(&chat).is_none() {
        return;
    }
    let stays = Chat::start_as(Arc::clone(&store), "ada", "stays").await;
    for chat in [&chat, &stays] {
        chat.append_request(append_with_marks("main", &["a"], &[("h", "a")], NOW))
            .await
            .unwrap();
    }
    store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(
        found_lines(&chat, path_query(&["h"]), &["h", "a"]).await,
        ["h stays a 1 main"]
    );
    let chat = Chat::start(Arc::clone(&store)).await;
    chat.append_messages("main", &["a"]).await;
    assert_eq!(find_matches(&chat, path_query(&["h"])).await.len(), 1);
    erase_all(&*store, &chat.owner, &EraseScope::Owner)
        .await
        .unwrap();
    assert_eq!(find_matches(&chat, path_query(&["h"])).await, []);
}

pub(super) async fn owners_are_isolated(store: Tested) {
    let ada = Chat::start(Arc::clone(&store)).await;
    if path_index(&ada).is_none() {
        return;
    }
    let bob = Chat::start_as(store, "bob", "chat").await;
    ada.append_request(append_with_marks("main", &["a"], &[("h", "a")], NOW))
        .await
        .unwrap();
    bob.append_messages("main", &["a"]).await;
    assert_eq!(find_matches(&bob, path_query(&["h"])).await, []);
    bob.append_request(append_with_marks("main", &["b"], &[("h", "b")], NOW))
        .await
        .unwrap();
    assert_eq!(
        found_lines(&ada, path_query(&["h"]), &["h", "a", "b"]).await,
        ["h chat a 1 main"]
    );
    assert_eq!(
        found_lines(&bob, path_query(&["h"]), &["h", "a", "b"]).await,
        ["h chat b 2 main"]
    );
}

pub(super) async fn limits_and_strange_marks_are_refused(store: Tested) {
    let chat = Chat::start(store).await;
    let most = chat.store.limits().path_hashes;
    let stranger = append_with_marks("main", &["a"], &[("h", "b")], NOW);
    let refused = chat.append_request(stranger).await.unwrap_err();
    assert!(
        matches!(refused, Error::Invalid { what: "paths", .. }),
        "{refused}"
    );
    let many = AppendRequest {
        paths: vec![path_mark(1, "h", "a"); most + 1],
        ..append_with_marks("main", &["a"], &[], NOW)
    };
    expect_limit(chat.append_request(many).await, "path_hashes");
    assert_eq!(chat.event_kinds().await.len(), 1, "nothing was stored");
    let Some(paths) = path_index(&chat) else {
        return;
    };
    let query = PathQuery {
        hashes: vec![path_hash("h"); most + 1],
        ..path_query(&[])
    };
    expect_limit(
        paths.find_path_hashes(&chat.owner, query).await,
        "path_hashes",
    );
    let marks = vec![path_mark(1, "h", "a"); most + 1];
    let put = paths.put_paths(&chat.owner, &chat.id, 1, marks);
    expect_limit(put.await, "path_hashes");
}
