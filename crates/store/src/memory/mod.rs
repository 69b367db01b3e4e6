//! The in-memory store: plain data behind one lock.
//!
//! Every operation checks everything before it changes anything, so an error leaves no trace. The
//! lock is held for one operation and never across an await.

mod append;
mod calls;
mod key_values;
mod path_hashes;
mod path_index;
mod processes;
mod redact;
mod search;
mod stream_log;
mod streams;
mod tree;

use std::cmp::Reverse;
use std::collections::btree_map::Entry as Slot;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, ResponseId};

use crate::contract::{
    AppendRequest, Appended, BlobId, Calls, Capabilities, Conversation, ConversationCursor,
    ConversationPage, ConversationUpdate, EntityKind, EntryPage, EraseScope, Erased, Error, Event,
    KeyScope, KeyValueEntry, KeyValues, Limits, ListConversations, ListEntries, NewConversation,
    Node, NodeQuery, NodeState, PathIndex, PathPage, Processes, PutEntry, ReadRequest,
    RedactRequest, Redacted, RefChange, RefChanged, Refs, ResponseRecord, Search, StateRequest,
    Store, Streams,
};
use crate::rules;
use crate::wake::{StreamSignal, StreamSignals, WakeScope};
use calls::CallTable;
use key_values::KeyValueTable;
use path_hashes::PathHashTable;
use processes::ProcessTable;
use tree::NodeTree;

/// A store that keeps its data in memory for as long as the value lives.
#[derive(Debug, Default)]
pub struct MemoryStore {
    limits: Limits,
    tables: Mutex<Tables>,
    signals: StreamSignals,
}

type Trees = BTreeMap<Owner, BTreeMap<ConversationId, NodeTree>>;

#[derive(Debug, Default)]
struct Tables {
    trees: Trees,
    entries: KeyValueTable,
    paths: PathHashTable,
    processes: ProcessTable,
    calls: CallTable,
}

impl MemoryStore {
    /// Creates an empty store with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Creates an empty store with other limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            limits,
            ..Self::default()
        }
    }

    fn lock_tables(&self) -> MutexGuard<'_, Tables> {
        // No operation leaves a partial change, so the data is consistent even after a panic.
        self.tables.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with_tree<T>(
        &self,
        owner: &Owner,
        id: &ConversationId,
        f: impl FnOnce(&mut NodeTree) -> Result<T, Error>,
    ) -> Result<T, Error> {
        f(self.lock_tables().conversation_tree(owner, id)?)
    }
}

impl Tables {
    fn conversation_tree(
        &mut self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<&mut NodeTree, Error> {
        find_tree(&mut self.trees, owner, id)
    }

    fn append_items(
        &mut self,
        owner: &Owner,
        id: &ConversationId,
        request: AppendRequest,
        limits: &Limits,
    ) -> Result<Appended, Error> {
        // Cloned before the request is consumed; marks are added only after the append has
        // succeeded.
        let marks = request.paths.clone();
        let exchange = request.exchange;
        let call = request.call.clone();
        let tree = find_tree(&mut self.trees, owner, id)?;
        let appended = tree.append_items(owner, request, &mut self.entries, limits)?;
        // The first run of a repetition has stored its marks, or they were removed since.
        if !appended.replayed {
            self.paths.add_marks(owner, id, &marks);
        }
        if let Some(change) = exchange {
            self.processes.change_exchange(owner, id, change);
        }
        if let Some(call) = call {
            self.calls.record_call(owner, *call);
        }
        Ok(appended)
    }

    fn owner_trees(&self, owner: &Owner) -> impl Iterator<Item = &NodeTree> {
        self.trees.get(owner).into_iter().flat_map(BTreeMap::values)
    }

    /// Erases everything in one step: without other writers to wait, it need not be bounded.
    fn erase_scope(&mut self, owner: &Owner, scope: &EraseScope) -> Erased {
        let mut erased = BTreeSet::new();
        if let Some(own) = self.trees.get_mut(owner) {
            // Conversations first: which values are erased depends on which conversations are.
            own.retain(|id, tree| {
                let is_in_scope = match scope {
                    EraseScope::Owner => true,
                    EraseScope::Resource(name) => tree.record.resource.as_ref() == Some(name),
                };
                if is_in_scope {
                    erased.insert(KeyScope::Conversation(id.clone()));
                }
                !is_in_scope
            });
        }
        let is_erased = |id: &ConversationId| erased.contains(&KeyScope::Conversation(id.clone()));
        // Marks belong to conversations and are erased with them.
        self.paths.retain_marks(owner, |id, _| !is_erased(id));
        self.processes
            .retain_exchanges(|of, id| of != owner || !is_erased(id));
        match scope {
            EraseScope::Owner => self.calls.erase_owner(owner),
            EraseScope::Resource(_) => {
                for scope in &erased {
                    if let KeyScope::Conversation(id) = scope {
                        self.calls.forget_conversation(owner, id);
                    }
                }
            }
        }
        let entries = self.entries.remove_scopes(|entry_owner, entry_scope| {
            let is_in_scope = match (scope, entry_scope) {
                (EraseScope::Owner, _) => true,
                (EraseScope::Resource(name), KeyScope::Resource(resource)) => name == resource,
                (EraseScope::Resource(_), _) => erased.contains(entry_scope),
            };
            entry_owner == owner && is_in_scope
        });
        Erased {
            conversations: erased.len() as u64,
            entries,
            more: false,
        }
    }

    fn check_scope(&mut self, owner: &Owner, scope: &KeyScope) -> Result<(), Error> {
        if let KeyScope::Conversation(id) = scope {
            self.conversation_tree(owner, id)?;
        }
        Ok(())
    }
}

fn find_tree<'a>(
    trees: &'a mut Trees,
    owner: &Owner,
    id: &ConversationId,
) -> Result<&'a mut NodeTree, Error> {
    let tree = trees.get_mut(owner).and_then(|own| own.get_mut(id));
    tree.ok_or_else(|| Error::not_found(EntityKind::Conversation, id))
}

#[async_trait]
impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn check_connection(&self) -> Result<(), Error> {
        Ok(())
    }

    async fn create_conversation(
        &self,
        owner: &Owner,
        new: NewConversation,
    ) -> Result<Conversation, Error> {
        rules::check_new_conversation(&new, &self.limits)?;
        let mut tables = self.lock_tables();
        let own = tables.trees.entry(owner.clone()).or_default();
        match own.entry(new.id.clone()) {
            Slot::Occupied(_) => Err(Error::already_exists(EntityKind::Conversation, &new.id)),
            Slot::Vacant(slot) => Ok(slot.insert(NodeTree::new(owner, new)).conversation_record()),
        }
    }

    async fn load_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Conversation, Error> {
        self.with_tree(owner, id, |tree| Ok(tree.conversation_record()))
    }

    async fn list_conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, Error> {
        rules::check_list(&list, &self.limits)?;
        let tables = self.lock_tables();
        let scanned = list.without_conditions();
        let mut all: Vec<Conversation> = tables
            .owner_trees(owner)
            .map(NodeTree::conversation_record)
            .filter(|one| rules::is_listed_by(&scanned, one))
            .filter(|one| match &list.after {
                None => true,
                Some(ConversationCursor { updated_ms, id }) => {
                    (Reverse(one.updated_ms), &one.id) > (Reverse(*updated_ms), id)
                }
            })
            .collect();
        // Ties are ordered by id, so that the order is total and a cursor is exact.
        all.sort_by(|a, b| (b.updated_ms, &a.id).cmp(&(a.updated_ms, &b.id)));
        let limit = list.limit.unwrap_or(100);
        // Only conditions make a page look at more than it shows.
        let scan = match list.has_conditions() {
            true => self.limits.list_scan.max(1),
            false => usize::MAX,
        };
        let mut stop = None;
        if all.len() > scan {
            all.truncate(scan);
            stop = ConversationCursor::after_last(&all);
        }
        all.retain(|one| rules::is_listed_by(&list, one));
        Ok(ConversationPage::new(all, limit, stop))
    }

    async fn update_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
        update: ConversationUpdate,
    ) -> Result<Conversation, Error> {
        let _wake = self.signals.wake_conversation(owner, id);
        self.with_tree(owner, id, |tree| {
            tree.update_conversation(update, &self.limits)
        })
    }

    async fn delete_conversation(&self, owner: &Owner, id: &ConversationId) -> Result<(), Error> {
        let _wake = self.signals.wake_conversation(owner, id);
        let mut tables = self.lock_tables();
        let own = tables.trees.get_mut(owner);
        let removed = own.and_then(|own| own.remove(id));
        removed.ok_or_else(|| Error::not_found(EntityKind::Conversation, id))?;
        tables.paths.retain_marks(owner, |of, _| of != id);
        tables
            .processes
            .retain_exchanges(|of, held| of != owner || held != id);
        tables.calls.forget_conversation(owner, id);
        let scope = KeyScope::Conversation(id.clone());
        tables
            .entries
            .remove_scopes(|of, stored_scope| of == owner && *stored_scope == scope);
        Ok(())
    }

    async fn append_items(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: AppendRequest,
    ) -> Result<Appended, Error> {
        rules::check_append(id, &request, &self.limits)?;
        let _wake = self.signals.wake_conversation(owner, id);
        self.lock_tables()
            .append_items(owner, id, request, &self.limits)
    }

    async fn read_path(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<PathPage, Error> {
        self.with_tree(owner, id, |tree| tree.read_path(&request, &self.limits))
    }

    async fn find_nodes(
        &self,
        owner: &Owner,
        id: &ConversationId,
        query: NodeQuery,
    ) -> Result<Vec<Arc<Node>>, Error> {
        self.with_tree(owner, id, |tree| tree.find_nodes(&query))
    }

    async fn read_state(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: StateRequest,
    ) -> Result<NodeState, Error> {
        self.with_tree(owner, id, |tree| tree.read_state(&request))
    }

    async fn list_refs(&self, owner: &Owner, id: &ConversationId) -> Result<Refs, Error> {
        self.with_tree(owner, id, |tree| Ok(tree.list_refs()))
    }

    async fn change_ref(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: RefChange,
        at_ms: i64,
    ) -> Result<RefChanged, Error> {
        let _wake = self.signals.wake_conversation(owner, id);
        self.with_tree(owner, id, |tree| tree.change_ref(change, at_ms))
    }

    async fn put_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        bytes: Arc<[u8]>,
    ) -> Result<BlobId, Error> {
        rules::check_blob(&bytes, &self.limits)?;
        self.with_tree(owner, id, |tree| Ok(tree.put_blob(owner, bytes)))
    }

    async fn read_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        blob: BlobId,
    ) -> Result<Arc<[u8]>, Error> {
        self.with_tree(owner, id, |tree| tree.find_blob(blob))
    }

    async fn load_response(
        &self,
        owner: &Owner,
        id: &ConversationId,
        response: ResponseId,
    ) -> Result<ResponseRecord, Error> {
        self.with_tree(owner, id, |tree| tree.find_response(response))
    }

    async fn redact_content(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: RedactRequest,
    ) -> Result<Redacted, Error> {
        rules::check_redact(&request, &self.limits)?;
        let _wake = self.signals.wake_conversation(owner, id);
        let done = self.with_tree(owner, id, |tree| tree.redact_content(&request))?;
        if done != Redacted::default() {
            // Nothing tells which of them have the text.
            let mut tables = self.lock_tables();
            tables.calls.remove_bodies(owner, id);
            let scope = KeyScope::Conversation(id.clone());
            tables.entries.remove_derived(owner, &scope, request.at_ms);
        }
        Ok(done)
    }

    async fn erase_step(&self, owner: &Owner, scope: &EraseScope) -> Result<Erased, Error> {
        let _wake = self.signals.wake_scope(WakeScope::Owner(owner.clone()));
        Ok(self.lock_tables().erase_scope(owner, scope))
    }

    async fn list_events(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        self.with_tree(owner, id, |tree| Ok(tree.list_events(after, limit)))
    }

    fn event_signal(&self, owner: &Owner, id: &ConversationId) -> StreamSignal {
        self.signals.listen_events(owner, id)
    }

    fn search(&self) -> Option<&dyn Search> {
        Some(self)
    }

    fn path_index(&self) -> Option<&dyn PathIndex> {
        Some(self)
    }

    fn processes(&self) -> Option<&dyn Processes> {
        Some(self)
    }

    fn calls(&self) -> Option<&dyn Calls> {
        Some(self)
    }

    fn streams(&self) -> Option<&dyn Streams> {
        Some(self)
    }
}

#[async_trait]
impl KeyValues for MemoryStore {
    async fn get_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Result<Option<KeyValueEntry>, Error> {
        let mut tables = self.lock_tables();
        tables.check_scope(owner, scope)?;
        Ok(tables.entries.get_entry(owner, scope, key))
    }

    async fn list_entries(&self, owner: &Owner, list: ListEntries) -> Result<EntryPage, Error> {
        let mut tables = self.lock_tables();
        if let Some(scope) = &list.scope {
            tables.check_scope(owner, scope)?;
        }
        let page_bytes = self.limits.page_bytes;
        Ok(tables.entries.list_entries(owner, &list, page_bytes))
    }

    async fn put_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        put: PutEntry,
    ) -> Result<u64, Error> {
        rules::check_put_entry(scope, &put, &self.limits)?;
        let mut tables = self.lock_tables();
        tables.check_scope(owner, scope)?;
        tables.entries.put_entry(owner, scope, put)
    }
}
