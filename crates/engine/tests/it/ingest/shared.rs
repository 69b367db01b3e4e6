//! Requests whose last answer another process is about to record, on a store that both use.

use std::sync::Arc;
use std::time::Duration;

use contexture_engine::{Engine, Ingested};
use contexture_ir::{Item, ProcessId, Transcript};
use contexture_store::{
    ExchangeChange, ExchangeMark, MemoryStore, PendingExchange, ProcessBeat, Store,
};
use contexture_store_testkit::{Faulty, Method};
use futures_util::future::join;

use super::client::{Named, answer, call, conversations, ingest, model, output, owner, user};

/// Two engines over one store, each as a process of its own.
struct Pair {
    store: Arc<MemoryStore>,
    one: Engine,
    two: Engine,
}

impl Pair {
    fn new() -> Self {
        let store = Arc::new(MemoryStore::new());
        let [one, two] = [(); 2].map(|()| process(&store));
        Self { store, one, two }
    }

    async fn marks(&self) -> Vec<PendingExchange> {
        let processes = self.store.processes().unwrap();
        processes.find_exchanges(&owner(), None).await.unwrap()
    }

    async fn rows(&self) -> Vec<ProcessBeat> {
        let processes = self.store.processes().unwrap();
        processes.list_processes().await.unwrap()
    }
}

fn process(store: &Arc<MemoryStore>) -> Engine {
    Engine::new(Arc::new(
        Faulty::never(Arc::clone(store) as Arc<dyn Store>).as_shared(),
    ))
}

/// A client asks one process, and with its answer another one; only then the first records it.
async fn asks_on_elsewhere(
    pair: &Pair,
    (first, answered, next): (&[Item], &Transcript, &[Item]),
    (named, later): (Named<'_>, Named<'_>),
) -> (Ingested, Ingested) {
    let exchange = pair.one.begin_exchange(&owner());
    let asked = ingest(&pair.one, &exchange, first, named).await.unwrap();
    assert_eq!(pair.marks().await.len(), 1);
    let elsewhere = pair.two.begin_exchange(&owner());
    let record = async {
        tokio::time::sleep(Duration::from_millis(7)).await;
        asked.record(answered).await.unwrap();
        drop(exchange);
    };
    let sent = ingest(&pair.two, &elsewhere, next, later);
    let (sent, ()) = join(sent, record).await;
    (asked, sent.unwrap())
}

async fn check_one_branch(pair: &Pair, asked: &Ingested, sent: &Ingested) {
    assert_eq!(sent.chat.id(), asked.chat.id());
    assert_eq!((sent.appended.len(), &sent.opened_branch), (1, &None));
    assert!(!sent.raced && sent.waited >= Duration::from_millis(7));
    assert_eq!(conversations(&pair.two, &owner()).await.len(), 1);
}

#[tokio::test(start_paused = true)]
async fn request_waits_for_an_answer_of_another_process() {
    let first = [user("list it")];
    let answered = answer(&[call("c1", "/")]);
    let next = [user("list it"), call("c1", "/"), output("c1", "a b")];
    let named = Named {
        conversation: Some("n"),
        ..Named::default()
    };
    let of_user = Named {
        partition: Some("p"),
        ..Named::default()
    };
    for named in [Named::default(), named, of_user] {
        let pair = Pair::new();
        let turns = (&first[..], &answered, &next[..]);
        let (asked, sent) = asks_on_elsewhere(&pair, turns, (named, named)).await;
        check_one_branch(&pair, &asked, &sent).await;
        // The first exchange's mark went with its record, the second's is there.
        assert_eq!(pair.marks().await.len(), 1);
    }
}

#[tokio::test(start_paused = true)]
async fn named_answer_of_another_process_is_waited_for() {
    let mut answered = answer(&[model("a b")]);
    answered.response.as_mut().unwrap().id = Some("resp_1".to_owned());
    let later = Named {
        previous: Some("resp_1"),
        ..Named::default()
    };
    let pair = Pair::new();
    let (first, next) = ([user("list it")], [user("thanks")]);
    let turns = (&first[..], &answered, &next[..]);
    let (asked, sent) = asks_on_elsewhere(&pair, turns, (Named::default(), later)).await;
    check_one_branch(&pair, &asked, &sent).await;
}

#[tokio::test(start_paused = true)]
async fn window_waits_for_an_answer_of_another_process() {
    let named = Named {
        conversation: Some("n"),
        ..Named::default()
    };
    let pair = Pair::new();
    let first = [user("one"), model("1"), user("list it")];
    let next = [model("a b"), user("thanks")];
    let answered = answer(&[model("a b")]);
    let turns = (&first[..], &answered, &next[..]);
    let (asked, sent) = asks_on_elsewhere(&pair, turns, (named, named)).await;
    check_one_branch(&pair, &asked, &sent).await;
}

#[tokio::test(start_paused = true)]
async fn recorded_twin_is_enough_for_another_process() {
    let pair = Pair::new();
    let question = [user("hello")];
    let history = [user("hello"), model("one"), user("and?")];
    let answered = pair.one.begin_exchange(&owner());
    let asked = ingest(&pair.one, &answered, &question, Named::default()).await;
    asked
        .unwrap()
        .record(&answer(&history[1..2]))
        .await
        .unwrap();
    // The same words, which the model still answers.
    let twin = pair.one.begin_exchange(&owner());
    let running = ingest(&pair.one, &twin, &question, Named::default()).await;
    for items in [&history[..], &question[..]] {
        let exchange = pair.two.begin_exchange(&owner());
        let sent = ingest(&pair.two, &exchange, items, Named::default()).await;
        assert_eq!(sent.unwrap().waited, Duration::ZERO);
    }
    drop(running);
}

/// Asks on with an answer that nobody ever records; returns whether it raced, and how long it waited.
async fn ask_on(pair: &Pair, named: Named<'_>) -> (bool, Duration) {
    let history = [user("hello"), model("one"), user("and?")];
    let exchange = pair.two.begin_exchange(&owner());
    let sent = ingest(&pair.two, &exchange, &history, named).await.unwrap();
    (sent.raced, sent.waited)
}

#[tokio::test(start_paused = true)]
async fn live_process_is_waited_for_until_the_bound() {
    let pair = Pair::new();
    let exchange = pair.one.begin_exchange(&owner());
    let asked = ingest(&pair.one, &exchange, &[user("hello")], Named::default()).await;
    for _ in 0..2 {
        let (raced, waited) = ask_on(&pair, Named::default()).await;
        assert!(raced && (2000..2100).contains(&waited.as_millis()));
        // However long it takes, it lives.
        tokio::time::sleep(Duration::from_secs(60)).await;
    }
    // Another partition asks something else.
    let elsewhere = Named {
        partition: Some("p"),
        ..Named::default()
    };
    assert_eq!(ask_on(&pair, elsewhere).await, (false, Duration::ZERO));
    drop(asked);
}

#[tokio::test(start_paused = true)]
async fn mark_of_a_dead_process_is_ignored_in_time() {
    let pair = Pair::new();
    let exchange = pair.one.begin_exchange(&owner());
    let asked = ingest(&pair.one, &exchange, &[user("hello")], Named::default()).await;
    // As `kill -9` leaves it: a mark, and a number that stands still.
    let processes = pair.store.processes().unwrap();
    let dead = ProcessId::derive("dead", &[]);
    processes.beat(dead).await.unwrap();
    let mark = pair.marks().await[0].mark;
    let left = ExchangeMark {
        process: dead,
        ..mark
    };
    let id = asked.as_ref().unwrap().chat.id();
    for change in [ExchangeChange::End(mark), ExchangeChange::Begin(left)] {
        let owner = owner();
        let changed = processes.change_exchange(&owner, id, change);
        changed.await.unwrap();
    }
    // It may live still.
    assert!(ask_on(&pair, Named::default()).await.0);
    tokio::time::sleep(Duration::from_secs(8)).await;
    assert_eq!(
        ask_on(&pair, Named::default()).await,
        (false, Duration::ZERO)
    );
    // Those that live remove it by and by, with what it had under way.
    tokio::time::sleep(Duration::from_secs(30)).await;
    assert_eq!(pair.rows().await.len(), 2);
    let marks = pair.marks().await;
    assert!(marks.iter().all(|found| found.mark.process != dead));
}

#[tokio::test(start_paused = true)]
async fn dropped_request_leaves_no_mark() {
    let pair = Pair::new();
    let exchange = pair.one.begin_exchange(&owner());
    let asked = ingest(&pair.one, &exchange, &[user("hello")], Named::default()).await;
    assert_eq!(pair.marks().await.len(), 1);
    drop(asked);
    tokio::time::sleep(Duration::from_secs(3)).await;
    assert!(pair.marks().await.is_empty());
    // One that is withdrawn goes at once, whether its conversation stays or not.
    let named = Named {
        conversation: Some("n"),
        ..Named::default()
    };
    for named in [Named::default(), named] {
        let exchange = pair.one.begin_exchange(&owner());
        let asked = ingest(&pair.one, &exchange, &[user("again")], named).await;
        asked.unwrap().withdraw().await.unwrap();
        assert!(pair.marks().await.is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn process_that_shares_nothing_pays_nothing() {
    let store = Arc::new(Faulty::never(Arc::new(MemoryStore::new())));
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Store>);
    let history = [user("hello"), model("one"), user("and?")];
    for items in [&history[..1], &history[..]] {
        let exchange = engine.begin_exchange(&owner());
        let asked = ingest(&engine, &exchange, items, Named::default()).await;
        asked
            .unwrap()
            .record(&answer(&history[1..2]))
            .await
            .unwrap();
    }
    tokio::time::sleep(Duration::from_secs(30)).await;
    let called = store.call_counts();
    let of_processes = [
        Method::Beat,
        Method::Beats,
        Method::ListProcesses,
        Method::ChangeExchange,
        Method::FindExchanges,
    ];
    assert!(
        of_processes
            .iter()
            .all(|method| !called.contains_key(method))
    );
    assert_eq!(called[&Method::AppendItems], 4);
}
