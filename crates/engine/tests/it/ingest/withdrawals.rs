//! Requests that no model answered.

use contexture_engine::{Engine, Ingested, MatchKind, Withdrawal};
use contexture_ir::{ConversationId, Item};
use contexture_store::{Conversation as Record, PathEnd};

use super::client::{answer, call, conversations, model, output, owner, path, send, send_to, user};

async fn record_of(engine: &Engine, id: &ConversationId) -> Record {
    engine.conversation_info(&owner(), id).await.unwrap()
}

/// Sends a history, named or not.
async fn ask(engine: &Engine, name: Option<&str>, items: &[Item]) -> Ingested {
    match name {
        Some(name) => send_to(engine, name, items).await,
        None => send(engine, items).await,
    }
}

#[tokio::test]
async fn branch_ends_where_it_ended_before() {
    let history = [user("a"), call("c1", "/"), output("c1", "b")];
    for name in [None, Some("n")] {
        for more in [&history[2..], &[output("c1", "b"), user("and?")]] {
            let engine = Engine::in_memory();
            let first = ask(&engine, name, &history[..1]).await;
            first.record(&answer(&history[1..2])).await.unwrap();
            let id = first.chat.id();
            let before = first.chat.refs().await.unwrap();
            let items = [&history[..2], more].concat();
            for _ in 0..3 {
                let refused = ask(&engine, name, &items).await;
                assert_eq!((refused.chat.id(), &refused.opened_branch), (id, &None));
                assert_eq!(refused.appended.len(), more.len());
                let withdrawn = refused.withdraw().await.unwrap();
                assert_eq!(withdrawn, Withdrawal::BranchRestored);
                assert_eq!(first.chat.refs().await.unwrap(), before);
            }
            // Sent once more and answered, it is as if nothing had been.
            let sent = ask(&engine, name, &items).await;
            sent.record(&answer(&[model("c")])).await.unwrap();
            let main = PathEnd::Branch("main".parse().unwrap());
            assert_eq!(
                path(&sent, main).await,
                [&items[..], &[model("c")]].concat()
            );
            let record = record_of(&engine, id).await;
            assert_eq!((record.branches, record.nodes), (1, items.len() as u64 + 1));
            assert_eq!(conversations(&engine, &owner()).await.len(), 1);
        }
    }
}

#[tokio::test]
async fn another_history_leaves_the_active_branch() {
    let engine = Engine::in_memory();
    let first = send_to(&engine, "n", &[user("a")]).await;
    first.record(&answer(&[model("b")])).await.unwrap();
    let before = first.chat.refs().await.unwrap();
    let edits = [
        vec![user("x")],
        vec![user("a"), model("z"), user("c")],
        vec![user("a"), model("b"), model("z"), user("c")],
    ];
    for edited in &edits {
        for _ in 0..2 {
            let refused = send_to(&engine, "n", edited).await;
            refused.withdraw().await.unwrap();
            assert_eq!(first.chat.refs().await.unwrap(), before, "{edited:?}");
        }
    }
    // Answered at last, it is active, as it would have been at first.
    let sent = send_to(&engine, "n", &edits[0]).await;
    sent.record(&answer(&[model("y")])).await.unwrap();
    let refs = first.chat.refs().await.unwrap();
    let active = refs.active_branch().unwrap();
    assert_eq!((active.name.as_str(), active.messages), ("main-v2", 2));
    assert_eq!(refs.branches.len(), 2);
}

#[tokio::test]
async fn a_conversation_that_began_with_it_stays_only_with_a_name() {
    let engine = Engine::in_memory();
    let refused = send(&engine, &[user("a")]).await;
    assert_eq!(refused.matched, MatchKind::New);
    let withdrawn = refused.withdraw().await.unwrap();
    assert_eq!(withdrawn, Withdrawal::ConversationDeleted);
    assert!(conversations(&engine, &owner()).await.is_empty());
    for _ in 0..2 {
        let refused = send_to(&engine, "n", &[user("a")]).await;
        let withdrawn = refused.withdraw().await.unwrap();
        assert_eq!(withdrawn, Withdrawal::BranchRestored);
        let record = record_of(&engine, refused.chat.id()).await;
        assert_eq!((record.branches, record.messages), (1, 0));
    }
    let sent = send_to(&engine, "n", &[user("a")]).await;
    sent.record(&answer(&[model("b")])).await.unwrap();
    let record = record_of(&engine, sent.chat.id()).await;
    assert_eq!((record.branches, record.messages, record.nodes), (1, 2, 2));
}

#[tokio::test]
async fn what_others_put_behind_it_keeps_the_branch() {
    let engine = Engine::in_memory();
    let first = send_to(&engine, "n", &[user("a")]).await;
    first.record(&answer(&[model("b")])).await.unwrap();
    let items = [user("a"), model("b"), user("c")];
    let refused = send_to(&engine, "n", &items).await;
    let twin = send_to(&engine, "n", &items).await;
    twin.record(&answer(&[model("d")])).await.unwrap();
    assert_eq!(refused.withdraw().await.unwrap(), Withdrawal::Kept);
    let record = record_of(&engine, first.chat.id()).await;
    assert_eq!((record.branches, record.messages), (1, 4));
    // What added nothing takes nothing back.
    assert_eq!(twin.withdraw().await.unwrap(), Withdrawal::Kept);
}

#[tokio::test]
async fn who_keeps_the_question_asks_on_from_the_branch() {
    let engine = Engine::in_memory();
    let first = send_to(&engine, "n", &[user("a")]).await;
    first.record(&answer(&[model("b")])).await.unwrap();
    let mut items = vec![user("a"), model("b"), user("c")];
    let refused = send_to(&engine, "n", &items).await;
    refused.withdraw().await.unwrap();
    items.push(user("are you there?"));
    let sent = send_to(&engine, "n", &items).await;
    assert_eq!((&sent.opened_branch, sent.appended.len()), (&None, 2));
    sent.record(&answer(&[model("d")])).await.unwrap();
    let record = record_of(&engine, first.chat.id()).await;
    assert_eq!((record.branches, record.messages), (1, 5));
}
