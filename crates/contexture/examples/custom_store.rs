//! A store of one's own: it keeps an audit of what is appended and leaves everything else to another store.
//!
//! A store on another database implements the same traits and proves itself with `contexture-store-testkit`.
//! Run it with `cargo run -p contexture --example custom_store`.

#![expect(clippy::print_stdout, reason = "an example shows what it does")]

use std::error::Error as StdError;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use contexture::ir::{ConversationId, ResponseId};
use contexture::store::{
    AppendRequest, Appended, BlobId, Calls, Capabilities, Conversation, ConversationPage,
    ConversationUpdate, EntryPage, EraseScope, Erased, Error, Event, KeyScope, KeyValueEntry,
    KeyValues, Limits, ListConversations, ListEntries, Maintenance, MemoryStore, NewConversation,
    Node, NodeQuery, NodeState, PathIndex, PathPage, Processes, PutEntry, ReadRequest,
    RedactRequest, Redacted, RefChange, RefChanged, Refs, ResponseRecord, Search, StateRequest,
    StreamSignal, Streams,
};
use contexture::{Engine, Owner, Store, user};

/// Notes each append that succeeded.
#[derive(Debug)]
struct AuditedStore {
    inner: Arc<dyn Store>,
    audit: Mutex<Vec<String>>,
}

#[async_trait]
impl Store for AuditedStore {
    async fn append_items(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: AppendRequest,
    ) -> Result<Appended, Error> {
        let items = request.items.len();
        let appended = self.inner.append_items(owner, id, request).await?;
        // Only what is stored is noted: an append that another writer won leaves nothing.
        if let Ok(mut audit) = self.audit.lock() {
            audit.push(format!("{owner} appended {items} to {id}"));
        }
        Ok(appended)
    }

    fn capabilities(&self) -> Capabilities {
        self.inner.capabilities()
    }
    fn limits(&self) -> &Limits {
        self.inner.limits()
    }
    async fn check_connection(&self) -> Result<(), Error> {
        self.inner.check_connection().await
    }
    async fn create_conversation(
        &self,
        owner: &Owner,
        new: NewConversation,
    ) -> Result<Conversation, Error> {
        self.inner.create_conversation(owner, new).await
    }
    async fn load_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Conversation, Error> {
        self.inner.load_conversation(owner, id).await
    }
    async fn list_conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, Error> {
        self.inner.list_conversations(owner, list).await
    }
    async fn update_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
        update: ConversationUpdate,
    ) -> Result<Conversation, Error> {
        self.inner.update_conversation(owner, id, update).await
    }
    async fn delete_conversation(&self, owner: &Owner, id: &ConversationId) -> Result<(), Error> {
        self.inner.delete_conversation(owner, id).await
    }
    async fn read_path(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<PathPage, Error> {
        self.inner.read_path(owner, id, request).await
    }
    async fn find_nodes(
        &self,
        owner: &Owner,
        id: &ConversationId,
        query: NodeQuery,
    ) -> Result<Vec<Arc<Node>>, Error> {
        self.inner.find_nodes(owner, id, query).await
    }
    async fn read_state(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: StateRequest,
    ) -> Result<NodeState, Error> {
        self.inner.read_state(owner, id, request).await
    }
    async fn list_refs(&self, owner: &Owner, id: &ConversationId) -> Result<Refs, Error> {
        self.inner.list_refs(owner, id).await
    }
    async fn change_ref(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: RefChange,
        at_ms: i64,
    ) -> Result<RefChanged, Error> {
        self.inner.change_ref(owner, id, change, at_ms).await
    }
    async fn put_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        bytes: Arc<[u8]>,
    ) -> Result<BlobId, Error> {
        self.inner.put_blob(owner, id, bytes).await
    }
    async fn read_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        blob: BlobId,
    ) -> Result<Arc<[u8]>, Error> {
        self.inner.read_blob(owner, id, blob).await
    }
    async fn load_response(
        &self,
        owner: &Owner,
        id: &ConversationId,
        response: ResponseId,
    ) -> Result<ResponseRecord, Error> {
        self.inner.load_response(owner, id, response).await
    }
    async fn redact_content(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: RedactRequest,
    ) -> Result<Redacted, Error> {
        self.inner.redact_content(owner, id, request).await
    }
    async fn erase_step(&self, owner: &Owner, scope: &EraseScope) -> Result<Erased, Error> {
        self.inner.erase_step(owner, scope).await
    }
    async fn list_events(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        self.inner.list_events(owner, id, after, limit).await
    }
    fn event_signal(&self, owner: &Owner, id: &ConversationId) -> StreamSignal {
        self.inner.event_signal(owner, id)
    }
    fn maintenance(&self) -> Option<&dyn Maintenance> {
        self.inner.maintenance()
    }
    fn search(&self) -> Option<&dyn Search> {
        self.inner.search()
    }
    fn path_index(&self) -> Option<&dyn PathIndex> {
        self.inner.path_index()
    }
    fn processes(&self) -> Option<&dyn Processes> {
        self.inner.processes()
    }
    fn calls(&self) -> Option<&dyn Calls> {
        self.inner.calls()
    }
    fn streams(&self) -> Option<&dyn Streams> {
        self.inner.streams()
    }
}

#[async_trait]
impl KeyValues for AuditedStore {
    async fn get_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Result<Option<KeyValueEntry>, Error> {
        self.inner.get_entry(owner, scope, key).await
    }
    async fn list_entries(&self, owner: &Owner, list: ListEntries) -> Result<EntryPage, Error> {
        self.inner.list_entries(owner, list).await
    }
    async fn put_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        put: PutEntry,
    ) -> Result<u64, Error> {
        self.inner.put_entry(owner, scope, put).await
    }
}

/// Runs the example.
#[tokio::main]
pub(crate) async fn main() -> Result<(), Box<dyn StdError>> {
    let store = Arc::new(AuditedStore {
        inner: Arc::new(MemoryStore::new()),
        audit: Mutex::new(Vec::new()),
    });
    let engine = Engine::new(Arc::clone(&store) as Arc<dyn Store>);
    let chat = engine.conversation("trip").owner("ada").open().await?;
    let mut draft = chat.draft();
    draft.push(user("Hello"));
    draft.commit().await?;
    let audit = store.audit.lock().map_err(|_| "the audit is damaged")?;
    println!("{}", audit.join("\n"));
    assert_eq!(*audit, ["ada appended 1 to trip"]);
    Ok(())
}
