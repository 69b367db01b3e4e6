//! What happens to a conversation is followed, whatever keeps it.

use std::sync::Arc;

use contexture_engine::{
    Conversation, Engine, EngineError, FollowFrom, FollowOwner, OwnerTail, TestClock,
};
use contexture_ir::{Owner, user};
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

/// The conversations and numbers of the events that are there, and the place behind them.
async fn caught_up(engine: &Engine, from: FollowFrom) -> (Vec<(String, u64)>, i64) {
    let options = FollowOwner { from, poll: None };
    let owner = Owner::local();
    let tail = OwnerTail::open(engine, &owner, options);
    let mut tail = tail.await.unwrap();
    let mut told = Vec::new();
    while let Some(one) = tail.next().await {
        let one = one.unwrap();
        told.push((one.conversation.to_string(), one.event.seq));
    }
    (told, tail.place_ms())
}

fn numbered(id: &str, numbers: impl IntoIterator<Item = u64>) -> Vec<(String, u64)> {
    let numbers = numbers.into_iter();
    numbers.map(|seq| (id.to_owned(), seq)).collect()
}

async fn owner_is_followed(engine: Engine) {
    // It moves a millisecond each time it is asked, so that ten seconds and a minute take no time.
    let engine = engine.with_clock(TestClock::new(1_000_000));
    let long = engine.conversation("long").open().await.unwrap();
    save(&long, "a", 600).await;
    let store = Arc::clone(engine.store());
    let info = store.load_conversation(long.owner(), long.id());
    let last = info.await.unwrap().events;
    assert!(
        last > 600,
        "more than two pages, or this shows nothing: {last}"
    );

    let owner = Owner::local();
    let live = OwnerTail::open(&engine, &owner, FollowOwner::default());
    let mut live = live.await.unwrap();
    let (all, place) = caught_up(&engine, FollowFrom::Since(0)).await;
    assert_eq!(all, numbered("long", 1..=last));
    assert_eq!(caught_up(&engine, FollowFrom::Now).await.0, []);

    // A minute later all of that is behind whoever comes back, but not what was written in the meantime.
    for _ in 0..60_000 {
        let _ = engine.now_ms();
    }
    save(&long, "b", 1).await;
    let short = engine.conversation("short").open().await.unwrap();
    save(&short, "b", 2).await;
    let mut wanted = numbered("long", [last + 1]);
    wanted.extend(numbered("short", 1..=3));
    let from = FollowFrom::Place(place.max(1_030_000));
    assert_eq!(caught_up(&engine, from).await.0, wanted);
    for one in &wanted {
        let told = live.next().await.unwrap().unwrap();
        assert_eq!(&(told.conversation.to_string(), told.event.seq), one);
    }

    // A conversation that is made again under its id begins again; what is another owner's is not told.
    store
        .delete_conversation(short.owner(), short.id())
        .await
        .unwrap();
    engine.conversation("short").open().await.unwrap();
    let other = engine.conversation("other").owner("acme/bob");
    save(&other.open().await.unwrap(), "c", 1).await;
    save(&long, "d", 1).await;
    for wanted in [("short", 1), ("long", last + 2)] {
        let told = live.next().await.unwrap().unwrap();
        assert_eq!((told.conversation.as_str(), told.event.seq), wanted);
    }
}

#[tokio::test(start_paused = true)]
async fn all_of_an_owner_is_followed_in_memory() {
    owner_is_followed(Engine::in_memory()).await;
}

#[tokio::test]
async fn all_of_an_owner_is_followed_in_a_file() {
    let dir = tempfile::tempdir().unwrap();
    owner_is_followed(open_file(&dir.path().join("c.db"))).await;
}
