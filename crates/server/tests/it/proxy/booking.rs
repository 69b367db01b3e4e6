//! The ledger under load, and after an upgrade: what is entered adds up.

use std::sync::Arc;

use contexture::ir::ConversationId;
use contexture::store::{ExpectedVersion, KeyScope, MemoryStore, PutEntry, Store};
use contexture::{Engine, Owner};
use contexture_store_testkit::{Chances, Faulty};
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

fn owner() -> Owner {
    Owner::new("local").unwrap()
}

fn mine() -> ConversationId {
    ConversationId::new("mine").unwrap()
}

/// Sums that earlier versions kept are part of the ledger; one that cannot be read hides no other.
#[tokio::test]
async fn sums_of_earlier_versions_are_added() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
    let proxied = over(store.clone()).await;
    let body = chat(&[says("Hello")]);
    let answer = proxied.ask_with(CHAT, &body, &[(NAMED, "mine")]).await;
    proxied.outcome(&answer).await;
    let put = async |scope: KeyScope, key: &str, value: Value| {
        let put = PutEntry {
            key: key.to_owned(),
            value: Some(value.to_string().into_bytes().into()),
            expect: ExpectedVersion::Any,
            at_ms: 0,
        };
        store.put_entry(&owner(), &scope, put).await.unwrap();
    };
    put(
        KeyScope::Owner,
        "ledger/day/2020-01-01",
        json!({"calls": 7}),
    )
    .await;
    put(KeyScope::Owner, "ledger/day/2020-01-02", json!("no sum")).await;
    put(
        KeyScope::Conversation(mine()),
        "ledger/sum",
        json!({"calls": 5}),
    )
    .await;
    assert_eq!(ledger(&proxied.stand, "mine").await, (1, 6));
    let all = proxied.stand.get("/api/v1/ledger").await.ok();
    assert_eq!(all["total"]["calls"], 8, "{all}");
    assert_eq!(all["days"][0]["day"], "2020-01-01");
    assert_eq!(all["days"].as_array().unwrap().len(), 3, "{all}");
}
