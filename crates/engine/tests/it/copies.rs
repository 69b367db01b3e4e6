//! Copies of long outputs, put outside the database as the outputs are stored.

use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use bytes::Bytes;
use contexture_engine::{Conversation, CopyReport, Engine, EngineEventKind, Events, MessageView};
use contexture_ir::{ContentHash, FunctionCall, FunctionCallOutput, Output, user};
use contexture_offload::{
    CopyKey, CopyKind, CopyMetadata, CopyScope, MemoryOffloadStore, OffloadError, OffloadStore,
    PutOutcome, Reconciled,
};
use contexture_store::{PathEnd, ReadRequest};

use crate::support::engine;

const LONG: &str = "a line of the output\n";

/// A place that fails when told to.
#[derive(Debug, Default)]
struct Place {
    texts: MemoryOffloadStore,
    fails: AtomicBool,
}

#[async_trait]
impl OffloadStore for Place {
    async fn put_copy(
        &self,
        key: &CopyKey,
        text: Bytes,
        holding: CopyKind,
        at_ms: i64,
    ) -> Result<PutOutcome, OffloadError> {
        if self.fails.load(Ordering::SeqCst) {
            return Err(OffloadError::storage_error("write", key, "no space"));
        }
        self.texts.put_copy(key, text, holding, at_ms).await
    }

    async fn read_copy(
        &self,
        key: &CopyKey,
        range: Option<Range<u64>>,
        at_ms: i64,
    ) -> Result<Bytes, OffloadError> {
        self.texts.read_copy(key, range, at_ms).await
    }

    async fn stat(&self, key: &CopyKey) -> Result<CopyMetadata, OffloadError> {
        self.texts.stat(key).await
    }

    async fn list_copies(&self, scope: &CopyScope) -> Result<Vec<CopyMetadata>, OffloadError> {
        self.texts.list_copies(scope).await
    }

    async fn evict_copy(&self, key: &CopyKey, at_ms: i64) -> Result<bool, OffloadError> {
        self.texts.evict_copy(key, at_ms).await
    }

    async fn clear_scope(&self, scope: &CopyScope) -> Result<u64, OffloadError> {
        self.texts.clear_scope(scope).await
    }

    async fn reconcile(&self, at_ms: i64) -> Result<Reconciled, OffloadError> {
        self.texts.reconcile(at_ms).await
    }
}

async fn opened(engine: &Engine) -> Conversation {
    engine.conversation("c").open().await.unwrap()
}

/// Stores a call and its output, and gives the name of the output's copy.
async fn used(chat: &Conversation, call: &str, text: &str) -> CopyKey {
    let mut draft = chat.draft();
    draft.push_item(FunctionCall::new(call, "list", "{}"));
    draft.push_item(FunctionCallOutput::new(call, Output::Text(text.to_owned())));
    draft.commit().await.unwrap();
    let request = ReadRequest::last_nodes(PathEnd::Branch(chat.branch()), 1);
    let store = chat.engine().store();
    let page = store
        .read_path(chat.owner(), chat.id(), request)
        .await
        .unwrap();
    let content: ContentHash = page.nodes[0].content_hash;
    CopyKey::new(chat.owner(), chat.id(), content)
}

fn told(events: &Events) -> Vec<CopyReport> {
    let all = std::iter::from_fn(|| events.try_next());
    all.filter_map(|event| match event.kind {
        EngineEventKind::Copied { report } => Some(report),
        _ => None,
    })
    .collect()
}

fn report(put: u64, failed: u64, evicted: u64) -> CopyReport {
    CopyReport {
        put,
        failed,
        evicted,
    }
}

#[tokio::test]
async fn outputs_over_the_threshold_are_copied_as_they_are_stored() {
    let place = Arc::new(Place::default());
    let engine = engine().with_offload(Arc::<Place>::clone(&place), 100);
    let (chat, events) = (opened(&engine).await, engine.subscribe());
    let long = LONG.repeat(10);
    let key = used(&chat, "long", &long).await;
    let short = used(&chat, "short", LONG).await;
    chat.save([user(long.as_str())]).await.unwrap();
    assert_eq!(
        place.read_copy(&key, None, 0).await.unwrap(),
        long.as_bytes()
    );
    assert!(place.read_copy(&short, None, 0).await.is_err());
    assert_eq!(place.list_copies(&CopyScope::All).await.unwrap().len(), 1);
    assert_eq!(told(&events), [report(1, 0, 0)]);
}

#[tokio::test]
async fn failed_copy_keeps_the_output_and_reconcile_copies_it() {
    let place = Arc::new(Place::default());
    let with = engine().with_offload(Arc::<Place>::clone(&place), 100);
    let (chat, events) = (opened(&with).await, with.subscribe());
    place.fails.store(true, Ordering::SeqCst);
    let key = used(&chat, "c1", &LONG.repeat(10)).await;
    assert_eq!(told(&events), [report(0, 1, 0)]);
    // On a branch of its own, and still failing.
    let asked = chat.save([user("again")]).await.unwrap();
    chat.save([user("more")]).await.unwrap();
    chat.rewind(&asked.messages[0]).await.unwrap();
    let other = used(&chat, "c2", &LONG.repeat(20)).await;
    assert_eq!(chat.reconcile_copies().await.unwrap(), report(0, 2, 0));
    place.fails.store(false, Ordering::SeqCst);
    assert_eq!(chat.reconcile_copies().await.unwrap(), report(2, 0, 0));
    assert_eq!(chat.reconcile_copies().await.unwrap(), report(0, 0, 0));
    for key in [key, other] {
        assert!(place.stat(&key).await.is_ok());
    }
    let plain = opened(&engine()).await;
    assert_eq!(plain.reconcile_copies().await.unwrap(), report(0, 0, 0));
}

#[tokio::test]
async fn evicted_copy_is_not_restored_and_tree_keeps_the_text() {
    let place = Arc::new(Place::default());
    let engine = engine().with_offload(Arc::<Place>::clone(&place), 100);
    let chat = opened(&engine).await;
    let text = LONG.repeat(10);
    let key = used(&chat, "c1", &text).await;
    assert!(place.evict_copy(&key, 5_000).await.unwrap());
    assert_eq!(chat.reconcile_copies().await.unwrap(), report(0, 0, 1));
    let error = place.read_copy(&key, None, 6_000).await.unwrap_err();
    assert!(matches!(error, OffloadError::Evicted { .. }), "{error}");
    let link = contexture_compile::Link::new(key.content_hash());
    let linked = chat.resolve_link(link, MessageView::Model).await.unwrap();
    assert_eq!(linked.text, text);
}
