//! What providers report of usage narrows later counts.

use std::sync::Arc;

use contexture_compile::Target;
use contexture_engine::{CompiledCall, Conversation, Engine, Recorded};
use contexture_ir::{Owner, hint, user};
use contexture_store::{KeyScope, KeyValues, MemoryStore, Store};
use contexture_store_testkit::{Faulty, InjectedFault, Method};
use serde_json::json;

const KEY: &str = "calibration/anthropic/claude-sonnet-4-5";

fn target() -> Target {
    Target::anthropic("claude-sonnet-4-5").window(50_000)
}

async fn open(store: &Arc<dyn Store>, owner: &str, name: &str) -> Conversation {
    let engine = Engine::new(Arc::clone(store));
    engine.conversation(name).owner(owner).open().await.unwrap()
}

/// Says something, compiles, and records an answer that reports a fifth of the counted range.
async fn call(chat: &Conversation, at: usize) -> (CompiledCall, Recorded) {
    let text = format!("question {at}: {}", "what about this? ".repeat(10 + at));
    chat.save([user(text.as_str())]).await.unwrap();
    let call = chat.compile(&target()).await.unwrap();
    let counted = &call.report.totals.counted;
    let reported = counted.low + (counted.high - counted.low) / 5;
    let answer = json!({
        "id": format!("msg_{at}"), "type": "message", "role": "assistant",
        "model": "claude-sonnet-4-5",
        "content": [{"type": "text", "text": "yes"}],
        "stop_reason": "end_turn", "stop_sequence": null,
        "usage": {"input_tokens": reported, "output_tokens": 3},
    });
    let recorded = chat.record(&call, &answer.to_string()).await.unwrap();
    (call, recorded)
}

fn is_narrowed(call: &CompiledCall) -> bool {
    call.calibrated_range().is_some()
}

#[tokio::test]
async fn calibration_is_per_owner_and_applies_when_an_epoch_begins() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let chat = open(&store, "ada", "a").await;
    for at in 0..12 {
        let (call, recorded) = call(&chat, at).await;
        assert!(!is_narrowed(&call), "the epoch began with nothing known");
        assert!(chat.replay(recorded.response).await.unwrap().is_equal());
    }
    // Another conversation, another handle, another engine.
    let other = open(&store, "ada", "b").await;
    for at in 0..3 {
        let (call, recorded) = call(&other, at).await;
        assert!(is_narrowed(&call));
        let replayed = other.replay(recorded.response).await.unwrap();
        assert!(replayed.is_equal());
        assert_eq!(replayed.payload.to_json(), call.payload.to_json());
    }
    // Where an epoch begins, the newest counts.
    chat.set([hint("Be brief.")]).unwrap();
    let (began, _) = call(&chat, 12).await;
    assert!(began.report.epoch.opened && is_narrowed(&began));
    let (next, _) = call(&chat, 13).await;
    assert!(!next.report.epoch.opened && is_narrowed(&next));

    let stranger = open(&store, "bob", "a").await;
    assert!(!is_narrowed(&call(&stranger, 0).await.0));
    let engine = Engine::new(Arc::clone(&store)).without_calibration();
    let chat = engine.conversation("b").owner("ada").open().await.unwrap();
    assert!(!is_narrowed(&call(&chat, 3).await.0));
    let ada = Owner::new("ada").unwrap();
    let kept = store.get_entry(&ada, &KeyScope::Owner, KEY).await.unwrap();
    assert_eq!(
        kept.unwrap().version,
        17,
        "one for each answer but the last"
    );
}

#[tokio::test]
async fn two_handles_lose_nothing_of_each_other() {
    let store: Arc<dyn Store> = Arc::new(MemoryStore::default());
    let (one, two) = (
        open(&store, "ada", "a").await,
        open(&store, "ada", "b").await,
    );
    for at in 0..4 {
        call(&one, at).await;
        call(&two, at).await;
    }
    let ada = Owner::new("ada").unwrap();
    let kept = store.get_entry(&ada, &KeyScope::Owner, KEY).await.unwrap();
    let kept: serde_json::Value = serde_json::from_slice(&kept.unwrap().value).unwrap();
    let places = kept["models"]["anthropic/claude-sonnet-4-5"].as_array();
    assert_eq!(places.unwrap().len(), 8);
}

#[tokio::test]
async fn what_cannot_be_learned_fails_no_record() {
    let run = async |faulty: Faulty| {
        let faulty = Arc::new(faulty);
        let store: Arc<dyn Store> = faulty.clone();
        let chat = open(&store, "ada", "a").await;
        let (_, recorded) = call(&chat, 0).await;
        assert_eq!(recorded.nodes.len(), 1);
        let calls: u64 = faulty.call_counts().values().sum();
        (faulty, calls)
    };
    let (store, last) = run(Faulty::never(Arc::new(MemoryStore::default()))).await;
    assert_eq!(store.call_counts().get(&Method::PutEntry), Some(&1));
    let ada = Owner::new("ada").unwrap();
    for (fault, kept) in [(InjectedFault::Before, false), (InjectedFault::After, true)] {
        let inner = Arc::new(MemoryStore::default());
        let (store, _) = run(Faulty::failing_call(inner.clone(), last, fault)).await;
        assert_eq!(store.fault_count(), 1);
        let entry = inner.get_entry(&ada, &KeyScope::Owner, KEY).await.unwrap();
        assert_eq!(entry.is_some(), kept);
    }
    // What is stored by something else is learned anew.
    let inner = Arc::new(MemoryStore::default());
    let put = contexture_store::PutEntry {
        key: KEY.to_owned(),
        value: Some(b"no JSON".as_slice().into()),
        expect: contexture_store::ExpectedVersion::Absent,
        at_ms: 0,
    };
    inner.put_entry(&ada, &KeyScope::Owner, put).await.unwrap();
    run(Faulty::never(inner.clone())).await;
    let entry = inner.get_entry(&ada, &KeyScope::Owner, KEY).await.unwrap();
    assert!(entry.unwrap().value.starts_with(b"{"));
}
