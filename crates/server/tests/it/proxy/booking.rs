//! The ledger under load, and where a store fails: what is entered adds up.

use std::sync::Arc;

use contexture::ir::ConversationId;
use contexture::store::{
    ExpectedVersion, KeyScope, KeyValueEntry, ListEntries, MemoryStore, PutEntry, Store,
};
use contexture::{Engine, Owner};
use contexture_store_testkit::{Chances, Faulty, InjectedFault};
use contexture_upstream_testkit::ScriptedProvider;
use futures_util::future::join_all;
use serde_json::{Value, json};

use super::policies::all;
use super::{Proxied, chat, says};
use crate::test_support::Stand;

const CHAT: &str = "/v1/chat/completions";
const NAMED: &str = "x-contexture-conversation";
/// It changes nothing, and has all the time there is.
const POLICY: &str = "limit_tokens = 100000\ningest_timeout_ms = 600000\n";

async fn over(store: Arc<dyn Store>) -> Proxied {
    let (provider, engine) = (ScriptedProvider::default(), Engine::new(store));
    Proxied::to(provider, engine, &all(POLICY)).await
}

/// The numbers of calls in what is stored under these keys.
async fn calls(store: &dyn Store, scope: KeyScope, prefix: &str) -> Vec<u64> {
    let list = ListEntries::in_scope(scope, prefix);
    let page = store.list_entries(&owner(), list).await.unwrap();
    let number = |entry: &KeyValueEntry| -> u64 {
        let document: Value = serde_json::from_slice(&entry.value).unwrap();
        document["calls"].as_u64().unwrap_or(1)
    };
    page.entries
        .iter()
        .map(|(_, entry)| number(entry))
        .collect()
}

/// A conversation's entries and its sum.
async fn ledger(stand: &Stand, conversation: &str) -> (usize, u64) {
    let query = [("conversation", conversation), ("limit", "500")];
    let ledger = stand.find("/api/v1/ledger", &query).await.ok();
    let entries = ledger["entries"].as_array().unwrap().len();
    (entries, ledger["total"]["calls"].as_u64().unwrap())
}

#[tokio::test]
async fn calls_at_the_same_time_are_all_in_the_sums() {
    const CALLS: usize = 24;
    // Whoever asks the store often has to wait, while another goes on.
    let chances = Chances {
        delay: 700,
        ..Chances::default()
    };
    let store = Arc::new(Faulty::with_seed(Arc::new(MemoryStore::new()), 7, chances));
    let proxied = over(store).await;
    let ask = async |call: usize| {
        // Half of them in one conversation.
        let name = match call % 2 {
            0 => "one".to_owned(),
            _ => format!("c-{call}"),
        };
        let body = chat(&[says(&format!("question {call}"))]);
        let answer = proxied.ask_with(CHAT, &body, &[(NAMED, &name)]).await;
        let outcome = proxied.outcome(&answer).await;
        assert_eq!(outcome["failed"], Value::Null, "{outcome}");
    };
    join_all((0..CALLS).map(ask)).await;
    assert_eq!(
        ledger(&proxied.stand, "one").await,
        (CALLS / 2, CALLS as u64 / 2)
    );
    let all = proxied.stand.get("/api/v1/ledger").await.ok();
    assert_eq!(all["total"]["calls"], CALLS, "{all}");
}

#[tokio::test]
async fn ledger_sum_equals_entries_after_any_store_fault() {
    for fault in [InjectedFault::Before, InjectedFault::After] {
        for call in 1.. {
            let inner = Arc::new(MemoryStore::new());
            let store = Arc::new(Faulty::failing_call(inner.clone(), call, fault));
            let proxied = over(store.clone()).await;
            let body = chat(&[says("Hello")]);
            let answer = proxied.ask_with(CHAT, &body, &[(NAMED, "mine")]).await;
            answer.ok();
            let outcome = proxied.outcome(&answer).await;
            if store.fault_count() == 0 {
                assert!(call > 5, "{call} calls of the store");
                break;
            }
            let kept = inner.load_conversation(&owner(), &mine()).await;
            let Ok(kept) = kept else {
                continue;
            };
            let scope = || KeyScope::Conversation(mine());
            let entries = calls(&*inner, scope(), "ledger/call/").await.len() as u64;
            let sum = calls(&*inner, scope(), "ledger/sum").await.pop();
            let sum = sum.unwrap_or(0);
            assert_eq!(entries, sum, "{fault:?} at {call}: {outcome}");
            // What was not kept, or not entered, is told.
            let days = calls(&*inner, KeyScope::Owner, "ledger/day/").await;
            if (kept.nodes, sum, &days[..]) != (2, 1, &[1]) {
                assert!(
                    outcome["failed"].is_string(),
                    "{fault:?} at {call}: {outcome}"
                );
            }
        }
    }
}

fn owner() -> Owner {
    Owner::new("local").unwrap()
}

fn mine() -> ConversationId {
    ConversationId::new("mine").unwrap()
}

#[tokio::test]
async fn unreadable_ledger_sum_is_left_and_answer_still_stored() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let proxied = over(store.clone()).await;
    let ask = async |words: &str| {
        let body = chat(&[says(words)]);
        let answer = proxied.ask_with(CHAT, &body, &[(NAMED, "mine")]).await;
        proxied.outcome(&answer).await
    };
    ask("Hello").await;
    let scope = KeyScope::Conversation(mine());
    let garbage = PutEntry {
        key: "ledger/sum".to_owned(),
        value: Some(b"no sum".to_vec().into()),
        expect: ExpectedVersion::Any,
        at_ms: 0,
    };
    store.put_entry(&owner(), &scope, garbage).await.unwrap();
    let outcome = ask("And now?").await;
    assert_eq!(outcome["failed"], "ledger", "{outcome}");
    assert!(outcome["answer"]["head"].is_string(), "{outcome}");
    let known = store
        .get_entry(&owner(), &scope, "ledger/sum")
        .await
        .unwrap();
    assert_eq!(&*known.unwrap().value, b"no sum");
    // The owner's is another one.
    let all = proxied.stand.get("/api/v1/ledger").await.ok();
    assert_eq!(all["total"]["calls"], 2, "{all}");
    // One of an older form is gone on from.
    let older = PutEntry {
        key: "ledger/sum".to_owned(),
        value: Some(json!({"calls": 5}).to_string().into_bytes().into()),
        expect: ExpectedVersion::Any,
        at_ms: 0,
    };
    store.put_entry(&owner(), &scope, older).await.unwrap();
    ask("And then?").await;
    let (_, sum) = ledger(&proxied.stand, "mine").await;
    assert_eq!(sum, 6);
}
