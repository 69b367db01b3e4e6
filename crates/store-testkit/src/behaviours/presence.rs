//! Presence of processes, and the marks of their exchanges.

use std::sync::Arc;

use contexture_ir::{PathHash, ProcessId};
use contexture_store::{
    AppendRequest, EraseScope, Error, ExchangeChange, ExchangeMark, Export, ListEntries,
    PendingExchange, ProcessBeat, Processes, Store, erase_all,
};

use crate::chat::{Chat, NOW, item};
use crate::faulty::until_done;

type Tested = Arc<dyn Store>;

fn process(word: &str) -> ProcessId {
    ProcessId::derive("testkit", &[word.as_bytes()])
}

fn question(word: &str) -> PathHash {
    PathHash::derive("testkit", &[word.as_bytes()])
}

pub(super) fn exchange_mark(asks: &str, of: &str, number: u64) -> ExchangeMark {
    ExchangeMark {
        hash: question(asks),
        process: process(of),
        number,
    }
}

fn append_with_exchange(word: &str, change: ExchangeChange) -> AppendRequest {
    AppendRequest {
        exchange: Some(change),
        ..AppendRequest::new(Chat::at_tip("main"), vec![item(word)], NOW)
    }
}

async fn find_marks(chat: &Chat, asks: &[&str]) -> Vec<ExchangeMark> {
    let hashes: Vec<PathHash> = asks.iter().map(|word| question(word)).collect();
    let found = chat.store.processes().unwrap();
    let found = found.find_exchanges(&chat.owner, Some(&hashes)).await;
    let marks = found.unwrap().into_iter().map(|found| found.mark);
    marks.collect()
}

async fn list_beats(processes: &dyn Processes) -> Vec<(ProcessId, u64)> {
    let all = processes.list_processes().await.unwrap();
    all.iter().map(|one| (one.process, one.beat)).collect()
}

/// Makes every kind of write about processes that leaves nothing behind.
pub(super) async fn write_everything(chat: &Chat) {
    let Some(processes) = chat.store.processes() else {
        return;
    };
    let mark = exchange_mark("question", "ada", 1);
    for change in [ExchangeChange::Begin(mark), ExchangeChange::End(mark)] {
        until_done(&[], || {
            processes.change_exchange(&chat.owner, &chat.id, change)
        })
        .await;
    }
    until_done(&[], || processes.beat(process("ada"))).await;
    let dead = until_done(&[], || processes.list_processes()).await;
    let dead = dead.unwrap_or_default();
    until_done(&[], || processes.remove_processes(&dead)).await;
}

pub(super) async fn a_process_raises_its_own_number(store: Tested) {
    let Some(processes) = store.processes() else {
        return;
    };
    let (ada, bob, nobody) = (process("ada"), process("bob"), process("nobody"));
    for beat in 1..=3 {
        assert_eq!(processes.beat(ada).await.unwrap(), beat);
    }
    assert_eq!(processes.beat(bob).await.unwrap(), 1);
    let read = processes.beats(&[bob, nobody, ada]).await.unwrap();
    let mut read: Vec<(ProcessId, u64, bool)> = read
        .iter()
        .map(|one| (one.process, one.beat, one.is_gone))
        .collect();
    read.sort_unstable();
    let mut wanted = vec![(ada, 3, false), (bob, 1, false)];
    wanted.sort_unstable();
    assert_eq!(read, wanted);
    assert!(processes.beats(&[]).await.unwrap().is_empty());
    let all: Vec<(ProcessId, u64)> = wanted.iter().map(|(id, beat, _)| (*id, *beat)).collect();
    assert_eq!(list_beats(processes).await, all);
}

pub(super) async fn a_dead_process_goes_with_its_exchanges(store: Tested) {
    let chat = Chat::start(store).await;
    let Some(processes) = chat.store.processes() else {
        return;
    };
    for word in ["ada", "bob", "eve"] {
        processes.beat(process(word)).await.unwrap();
        let begin = ExchangeChange::Begin(exchange_mark("question", word, 1));
        let changed = processes.change_exchange(&chat.owner, &chat.id, begin);
        changed.await.unwrap();
    }
    let seen = |word: &str, beat: u64| ProcessBeat {
        process: process(word),
        beat,
        is_gone: false,
    };
    // Bob's number has moved on, so he lives; nobody was never there.
    processes.beat(process("bob")).await.unwrap();
    let dead = [seen("ada", 1), seen("bob", 1), seen("nobody", 1)];
    assert_eq!(processes.remove_processes(&dead).await.unwrap(), 1);
    let mut left = [(process("bob"), 2), (process("eve"), 1)];
    left.sort_unstable();
    assert_eq!(list_beats(processes).await, left);
    let mut marks = vec![
        exchange_mark("question", "bob", 1),
        exchange_mark("question", "eve", 1),
    ];
    marks.sort_unstable();
    assert_eq!(find_marks(&chat, &["question"]).await, marks);
    // Whoever was taken for dead begins anew.
    assert_eq!(processes.beat(process("ada")).await.unwrap(), 1);
}

pub(super) async fn marks_come_and_go_with_appends(store: Tested) {
    let chat = Chat::start(store).await;
    let Some(processes) = chat.store.processes() else {
        return;
    };
    let one = exchange_mark("question", "ada", 1);
    let twin = exchange_mark("question", "ada", 2);
    let other = exchange_mark("other", "ada", 3);
    for (word, mark) in [("a", one), ("b", twin), ("c", other)] {
        let begin = append_with_exchange(word, ExchangeChange::Begin(mark));
        chat.append_request(begin).await.unwrap();
    }
    assert_eq!(find_marks(&chat, &["question"]).await, [one, twin]);
    assert!(find_marks(&chat, &["unknown"]).await.is_empty());
    let all = processes.find_exchanges(&chat.owner, None).await.unwrap();
    assert_eq!(all.len(), 3);
    let here = |found: &PendingExchange| found.conversation == chat.id;
    assert!(all.iter().all(here));
    let end = append_with_exchange("d", ExchangeChange::End(one));
    chat.append_request(end).await.unwrap();
    assert_eq!(find_marks(&chat, &["question", "other"]).await.len(), 2);
    let end = ExchangeChange::End(twin);
    for _ in 0..2 {
        let changed = processes.change_exchange(&chat.owner, &chat.id, end);
        changed.await.unwrap();
    }
    assert_eq!(find_marks(&chat, &["question", "other"]).await, [other]);
}

pub(super) async fn a_replay_changes_its_mark(store: Tested) {
    let chat = Chat::start(store).await;
    if chat.store.processes().is_none() {
        return;
    }
    let mark = exchange_mark("question", "ada", 1);
    chat.append_messages("main", &["a"]).await;
    let again = append_with_exchange("a", ExchangeChange::Begin(mark));
    assert!(chat.append_request(again).await.unwrap().replayed);
    assert_eq!(find_marks(&chat, &["question"]).await, [mark]);
    let again = append_with_exchange("a", ExchangeChange::End(mark));
    assert!(chat.append_request(again).await.unwrap().replayed);
    assert!(find_marks(&chat, &["question"]).await.is_empty());
}

pub(super) async fn a_refused_append_marks_nothing(store: Tested) {
    let chat = Chat::start(store).await;
    if chat.store.processes().is_none() {
        return;
    }
    chat.append_messages("main", &["a"]).await;
    let mark = exchange_mark("question", "ada", 1);
    let refused = AppendRequest {
        at: Chat::at_head("main", None),
        ..append_with_exchange("b", ExchangeChange::Begin(mark))
    };
    let error = chat.append_request(refused).await.unwrap_err();
    assert!(matches!(error, Error::HeadMoved { .. }), "{error}");
    assert!(find_marks(&chat, &["question"]).await.is_empty());
}

pub(super) async fn marks_are_in_no_list_and_no_export(store: Tested) {
    let chat = Chat::start(store).await;
    if chat.store.processes().is_none() {
        return;
    }
    chat.append_messages("main", &["a"]).await;
    let before = (export_text(&chat).await, chat.snapshot_text().await);
    let mark = exchange_mark("question", "ada", 1);
    let processes = chat.store.processes().unwrap();
    let changed = processes.change_exchange(&chat.owner, &chat.id, ExchangeChange::Begin(mark));
    changed.await.unwrap();
    assert_eq!(
        (export_text(&chat).await, chat.snapshot_text().await),
        before
    );
    let listed = chat
        .store
        .list_entries(&chat.owner, ListEntries::default())
        .await;
    assert!(listed.unwrap().entries.is_empty());
}

async fn export_text(chat: &Chat) -> String {
    let export = Export::new(&*chat.store, &chat.owner, &chat.id).await;
    let mut export = export.unwrap();
    let mut text = String::new();
    while let Some(lines) = export.next_lines().await.unwrap() {
        text.push_str(&lines);
    }
    text
}

pub(super) async fn marks_go_with_a_deleted_conversation(store: Tested) {
    let chat = Chat::start(store).await;
    let Some(processes) = chat.store.processes() else {
        return;
    };
    let mark = exchange_mark("question", "ada", 1);
    let begin = append_with_exchange("a", ExchangeChange::Begin(mark));
    chat.append_request(begin).await.unwrap();
    let deleted = chat.store.delete_conversation(&chat.owner, &chat.id);
    deleted.await.unwrap();
    assert!(find_marks(&chat, &["question"]).await.is_empty());
    let late = processes.change_exchange(&chat.owner, &chat.id, ExchangeChange::Begin(mark));
    assert!(matches!(late.await, Err(Error::NotFound { .. })));
    // An erasure takes them too.
    let chat = Chat::start(Arc::clone(&chat.store)).await;
    let begin = append_with_exchange("a", ExchangeChange::Begin(mark));
    chat.append_request(begin).await.unwrap();
    erase_all(&*chat.store, &chat.owner, &EraseScope::Owner)
        .await
        .unwrap();
    let chat = Chat::start(Arc::clone(&chat.store)).await;
    assert!(find_marks(&chat, &["question"]).await.is_empty());
}

pub(super) async fn marks_of_owners_are_isolated(store: Tested) {
    let ada = Chat::start_as(Arc::clone(&store), "ada", "chat").await;
    let bob = Chat::start_as(store, "bob", "chat").await;
    let Some(processes) = ada.store.processes() else {
        return;
    };
    let mark = exchange_mark("question", "ada", 1);
    let begin = append_with_exchange("a", ExchangeChange::Begin(mark));
    ada.append_request(begin).await.unwrap();
    assert!(find_marks(&bob, &["question"]).await.is_empty());
    let all = processes.find_exchanges(&bob.owner, None).await.unwrap();
    assert!(all.is_empty());
    let end = processes.change_exchange(&bob.owner, &bob.id, ExchangeChange::End(mark));
    end.await.unwrap();
    assert_eq!(find_marks(&ada, &["question"]).await, [mark]);
}
