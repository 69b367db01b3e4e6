//! The index of histories: which places a hash leads to.

use std::sync::Arc;

use contexture_ir::PathHash;
use contexture_store::{
    Activation, AppendRequest, BranchLabel, EraseScope, Error, PathIndex, PathMark, PathPlace,
    PathQuery, RefChange, Store, erase_all,
};

use super::limits::expect_limit;
use crate::chat::{Chat, NOW, branch, item, new_branch, node};

type Tested = Arc<dyn Store>;

fn hash(word: &str) -> PathHash {
    PathHash::derive("testkit", &[word.as_bytes()])
}

pub(super) fn mark(version: u32, word: &str, of: &str) -> PathMark {
    PathMark {
        version,
        hash: hash(word),
        node: node(of),
    }
}

fn marked(name: &str, words: &[&str], marks: &[(&str, &str)], at_ms: i64) -> AppendRequest {
    let items = words.iter().map(|word| item(word)).collect();
    AppendRequest {
        paths: marks.iter().map(|(word, of)| mark(1, word, of)).collect(),
        ..AppendRequest::new(Chat::at_tip(name), items, at_ms)
    }
}

fn ask(words: &[&str]) -> PathQuery {
    PathQuery {
        version: 1,
        hashes: words.iter().map(|word| hash(word)).collect(),
        conversation: None,
        each: 10,
    }
}

fn index(chat: &Chat) -> Option<&dyn PathIndex> {
    chat.store.paths()
}

async fn find(chat: &Chat, query: PathQuery) -> Vec<PathPlace> {
    let found = index(chat).unwrap().find_paths(&chat.owner, query);
    found.await.unwrap()
}

/// What was found, a line each: hash, conversation, node, depth, heads.
async fn found(chat: &Chat, query: PathQuery, words: &[&str]) -> Vec<String> {
    let name = |places: &PathPlace| {
        let known = |made: &dyn Fn(&str) -> bool| {
            let word = words.iter().find(|word| made(word));
            word.copied().unwrap_or("?").to_owned()
        };
        let heads: Vec<&str> = places.heads.iter().map(|head| head.as_str()).collect();
        format!(
            "{} {} {} {} {}",
            known(&|word| hash(word) == places.hash),
            places.conversation,
            known(&|word| node(word) == places.node),
            places.depth,
            heads.join(",")
        )
    };
    find(chat, query).await.iter().map(name).collect()
}

pub(super) async fn marks_come_with_their_nodes(store: Tested) {
    let chat = Chat::start(store).await;
    if index(&chat).is_none() {
        chat.append(marked("main", &["a"], &[("h", "a")], NOW))
            .await
            .unwrap();
        return;
    }
    let first = marked(
        "main",
        &["a", "b"],
        &[("h", "a"), ("i", "b"), ("j", "b")],
        NOW,
    );
    chat.append(first.clone()).await.unwrap();
    let words = ["a", "b", "h", "i", "j"];
    assert_eq!(
        found(&chat, ask(&["j", "never", "h", "i"]), &words).await,
        ["j chat b 2 main", "h chat a 1 ", "i chat b 2 main"]
    );
    // A repetition changes nothing, a refused append neither.
    chat.append(first).await.unwrap();
    let refused = AppendRequest {
        paths: vec![mark(1, "h", "c")],
        ..AppendRequest::new(Chat::at_head("main", None), vec![item("c")], NOW)
    };
    chat.append(refused).await.unwrap_err();
    assert_eq!(found(&chat, ask(&["h"]), &words).await, ["h chat a 1 "]);
    // Nodes of a long path, on segments of their own.
    for number in 0..70 {
        chat.say("main", &[&format!("n{number}")]).await;
    }
    let name = chat.rewind("main", "a", Activation::Keep).await;
    chat.append(marked(&name, &["x", "y"], &[("k", "x")], NOW))
        .await
        .unwrap();
    chat.append(marked("main", &["z"], &[("k", "z")], NOW))
        .await
        .unwrap();
    assert_eq!(
        found(&chat, ask(&["k"]), &["k", "x", "z"]).await,
        ["k chat z 73 main", "k chat x 2 "]
    );
}

pub(super) async fn heads_come_first_and_then_the_latest(store: Tested) {
    let chat = Chat::start(Arc::clone(&store)).await;
    if index(&chat).is_none() {
        return;
    }
    for (name, later) in [("one", 10), ("two", 30), ("three", 20), ("four", 40)] {
        let other = Chat::start_as(Arc::clone(&store), "ada", name).await;
        let begin = marked("main", &["a"], &[("h", "a")], NOW);
        other.append(begin).await.unwrap();
        // The first two go on, so that the place is no head of theirs.
        let goes_on = later > 25;
        if goes_on {
            other
                .append(marked("main", &["b"], &[], NOW + later))
                .await
                .unwrap();
        } else {
            other
                .append(marked(
                    &other.rewind("main", "a", Activation::Keep).await,
                    &["c"],
                    &[],
                    NOW + later,
                ))
                .await
                .unwrap();
        }
    }
    let words = ["h", "a"];
    let all = [
        "h three a 1 main",
        "h one a 1 main",
        "h four a 1 ",
        "h two a 1 ",
    ];
    assert_eq!(found(&chat, ask(&["h"]), &words).await, all);
    let two = PathQuery {
        each: 2,
        ..ask(&["h", "h"])
    };
    assert_eq!(
        found(&chat, two, &words).await,
        [&all[..2], &all[..2]].concat()
    );
    // All branches that end there, in order of creation.
    let other = Chat {
        id: "two".parse().unwrap(),
        ..chat.clone()
    };
    for label in ["z", "b"] {
        let label = BranchLabel::Named(branch(label));
        let new = new_branch(Some("a"), label, Activation::Keep);
        other.change(RefChange::CreateBranch(new)).await.unwrap();
    }
    let one = PathQuery {
        conversation: Some(other.id.clone()),
        ..ask(&["h"])
    };
    assert_eq!(found(&chat, one.clone(), &words).await, ["h two a 1 z,b"]);
    other
        .change(RefChange::DeleteBranch(branch("z")))
        .await
        .unwrap();
    assert_eq!(found(&chat, one, &words).await, ["h two a 1 b"]);
}

pub(super) async fn a_conversation_may_be_asked_for(store: Tested) {
    let chat = Chat::start(Arc::clone(&store)).await;
    if index(&chat).is_none() {
        return;
    }
    let other = Chat::start_as(store, "ada", "other").await;
    for chat in [&chat, &other] {
        chat.append(marked("main", &["a"], &[("h", "a")], NOW))
            .await
            .unwrap();
    }
    for chat in [&chat, &other] {
        let query = PathQuery {
            conversation: Some(chat.id.clone()),
            ..ask(&["h"])
        };
        let expected = format!("h {} a 1 main", chat.id);
        assert_eq!(found(chat, query, &["h", "a"]).await, [expected]);
    }
    let unknown = PathQuery {
        conversation: Some("nobody".parse().unwrap()),
        ..ask(&["h"])
    };
    assert_eq!(find(&chat, unknown).await, []);
}

pub(super) async fn marks_are_added_and_other_versions_go(store: Tested) {
    let chat = Chat::start(store).await;
    let Some(paths) = index(&chat) else { return };
    let append = marked("main", &["a", "b"], &[("h", "a")], NOW);
    chat.append(append).await.unwrap();
    let put = async |version, marks| paths.put_paths(&chat.owner, &chat.id, version, marks).await;
    let words = ["h", "i", "a", "b"];
    put(1, vec![mark(1, "i", "b"), mark(1, "h", "a")])
        .await
        .unwrap();
    let both = ["h chat a 1 ", "i chat b 2 main"];
    assert_eq!(found(&chat, ask(&["h", "i"]), &words).await, both);
    let strange = put(2, vec![mark(2, "h", "b"), mark(2, "h", "never")]).await;
    assert_eq!(strange.unwrap_err().kind(), "not_found");
    assert_eq!(found(&chat, ask(&["h", "i"]), &words).await, both);
    put(2, vec![mark(2, "h", "b")]).await.unwrap();
    assert_eq!(find(&chat, ask(&["h", "i"])).await, []);
    let second = PathQuery {
        version: 2,
        ..ask(&["h", "i"])
    };
    assert_eq!(found(&chat, second, &words).await, ["h chat b 2 main"]);
}

pub(super) async fn marks_go_with_their_conversation(store: Tested) {
    let chat = Chat::start(Arc::clone(&store)).await;
    if index(&chat).is_none() {
        return;
    }
    let stays = Chat::start_as(Arc::clone(&store), "ada", "stays").await;
    for chat in [&chat, &stays] {
        chat.append(marked("main", &["a"], &[("h", "a")], NOW))
            .await
            .unwrap();
    }
    store
        .delete_conversation(&chat.owner, &chat.id)
        .await
        .unwrap();
    assert_eq!(
        found(&chat, ask(&["h"]), &["h", "a"]).await,
        ["h stays a 1 main"]
    );
    let chat = Chat::start(Arc::clone(&store)).await;
    chat.say("main", &["a"]).await;
    assert_eq!(find(&chat, ask(&["h"])).await.len(), 1);
    erase_all(&*store, &chat.owner, &EraseScope::Owner)
        .await
        .unwrap();
    assert_eq!(find(&chat, ask(&["h"])).await, []);
}

pub(super) async fn owners_never_meet(store: Tested) {
    let ada = Chat::start(Arc::clone(&store)).await;
    if index(&ada).is_none() {
        return;
    }
    let bob = Chat::start_as(store, "bob", "chat").await;
    ada.append(marked("main", &["a"], &[("h", "a")], NOW))
        .await
        .unwrap();
    bob.say("main", &["a"]).await;
    assert_eq!(find(&bob, ask(&["h"])).await, []);
    bob.append(marked("main", &["b"], &[("h", "b")], NOW))
        .await
        .unwrap();
    assert_eq!(
        found(&ada, ask(&["h"]), &["h", "a", "b"]).await,
        ["h chat a 1 main"]
    );
    assert_eq!(
        found(&bob, ask(&["h"]), &["h", "a", "b"]).await,
        ["h chat b 2 main"]
    );
}

pub(super) async fn limits_and_strange_marks_are_refused(store: Tested) {
    let chat = Chat::start(store).await;
    let most = chat.store.limits().path_hashes;
    let stranger = marked("main", &["a"], &[("h", "b")], NOW);
    let refused = chat.append(stranger).await.unwrap_err();
    assert!(
        matches!(refused, Error::Invalid { what: "paths", .. }),
        "{refused}"
    );
    let many = AppendRequest {
        paths: vec![mark(1, "h", "a"); most + 1],
        ..marked("main", &["a"], &[], NOW)
    };
    expect_limit(chat.append(many).await, "path_hashes");
    assert_eq!(chat.events().await.len(), 1, "nothing was stored");
    let Some(paths) = index(&chat) else { return };
    let query = PathQuery {
        hashes: vec![hash("h"); most + 1],
        ..ask(&[])
    };
    expect_limit(paths.find_paths(&chat.owner, query).await, "path_hashes");
    let marks = vec![mark(1, "h", "a"); most + 1];
    let put = paths.put_paths(&chat.owner, &chat.id, 1, marks);
    expect_limit(put.await, "path_hashes");
}
