//! What happens to a conversation is followed, whatever keeps it.

use std::sync::Arc;

use contexture_engine::{Conversation, Engine, EngineError};
use contexture_ir::user;
use contexture_store::Event;
use futures_util::stream::BoxStream;
use futures_util::{FutureExt as _, StreamExt as _};

use crate::support::open_file;

type Followed = BoxStream<'static, Result<Event, EngineError>>;

async fn numbers(events: &mut Followed, count: usize) -> Vec<u64> {
    let events = events.by_ref().take(count);
    events.map(|event| event.unwrap().seq).collect().await
}

async fn save(chat: &Conversation, writer: &str, count: u64) {
    for n in 0..count {
        chat.save([user(format!("{writer} {n}"))]).await.unwrap();
    }
}

async fn is_followed(engine: Engine) {
    let chat = engine.conversation("c").open().await.unwrap();
    let other = engine.conversation("c").open().await.unwrap();
    let mut early = chat.follow(0);
    let (seen, ..) = tokio::join!(
        numbers(&mut early, 41),
        save(&chat, "one", 20),
        save(&other, "two", 20)
    );
    // Two writers that collide make branches, and events of their own.
    let store = Arc::clone(engine.store());
    let all = store.list_events(chat.owner(), chat.id(), 0, 1_000);
    let all: Vec<u64> = all.await.unwrap().iter().map(|event| event.seq).collect();
    let last = all.len() as u64;
    assert_eq!(all, (1..=last).collect::<Vec<_>>());
    assert_eq!(seen, all[..41]);
    assert_eq!(numbers(&mut early, all.len() - 41).await, all[41..]);
    assert!(early.next().now_or_never().is_none());

    // One that was away goes on where it was.
    let mut late = chat.follow(30);
    assert_eq!(numbers(&mut late, all.len() - 30).await, all[30..]);
    let (event, ()) = tokio::join!(late.next(), save(&chat, "one", 1));
    assert_eq!(event.unwrap().unwrap().seq, last + 1);

    store
        .delete_conversation(chat.owner(), chat.id())
        .await
        .unwrap();
    assert!(late.next().await.is_none());
    // What was not read by then is gone with the conversation.
    assert!(early.next().await.is_none());
}

#[tokio::test]
async fn in_memory() {
    is_followed(Engine::in_memory()).await;
}

#[tokio::test]
async fn in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.db");
    is_followed(open_file(&path)).await;
}

#[tokio::test]
async fn what_another_process_writes_is_seen() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("c.db");
    let (here, there) = (open_file(&path), open_file(&path));
    let chat = here.conversation("c").open().await.unwrap();
    let other = there.conversation("c").open().await.unwrap();
    let mut events = chat.follow(1);
    let (seen, ()) = tokio::join!(numbers(&mut events, 3), save(&other, "there", 3));
    assert_eq!(seen, [2, 3, 4]);
}
