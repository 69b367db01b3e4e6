//! The in-memory store: plain data, one lock, the strictest reading of the contract.
//!
//! Every operation checks everything before it changes anything, so an error leaves no trace. The
//! lock is held for one operation and never across an await.

mod append;
mod tree;

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};

use crate::append::{AppendRequest, Appended};
use crate::blob::BlobId;
use crate::conversation::{
    Conversation, ConversationPage, ConversationUpdate, Cursor, ListConversations, NewConversation,
};
use crate::error::{Error, Thing};
use crate::event::Event;
use crate::key_value::{Entry, KeyScope, KeyValues, PutEntry};
use crate::limits::Limits;
use crate::node::Node;
use crate::read::{NodeQuery, Page, ReadRequest};
use crate::refs::{RefChange, RefChanged, Refs};
use crate::rules;
use crate::state::{State, StateRequest};
use crate::store::{Capabilities, Store};
use tree::Tree;

/// A store that lives as long as its value.
#[derive(Debug, Default)]
pub struct MemoryStore {
    limits: Limits,
    world: Mutex<World>,
}

#[derive(Debug, Default)]
struct World {
    trees: BTreeMap<(Owner, ConversationId), Tree>,
    entries: BTreeMap<(Owner, KeyScope), BTreeMap<String, Slot>>,
}

/// A key that was ever written; deleted keys keep their version.
#[derive(Debug)]
struct Slot {
    value: Option<Arc<[u8]>>,
    version: u64,
    at_ms: i64,
}

impl MemoryStore {
    /// An empty store with the default limits.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// An empty store with other limits.
    #[must_use]
    pub fn with_limits(limits: Limits) -> Self {
        Self {
            limits,
            world: Mutex::default(),
        }
    }

    fn world(&self) -> MutexGuard<'_, World> {
        // No operation leaves half a change, so a panic elsewhere has not spoilt the data.
        self.world.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn tree<T>(
        &self,
        owner: &Owner,
        id: &ConversationId,
        f: impl FnOnce(&mut Tree) -> Result<T, Error>,
    ) -> Result<T, Error> {
        f(self.world().tree(owner, id)?)
    }
}

impl World {
    fn tree(&mut self, owner: &Owner, id: &ConversationId) -> Result<&mut Tree, Error> {
        self.trees
            .get_mut(&(owner.clone(), id.clone()))
            .ok_or_else(|| Error::not_found(Thing::Conversation, id))
    }

    fn check_scope(&mut self, owner: &Owner, scope: &KeyScope) -> Result<(), Error> {
        if let KeyScope::Conversation(id) = scope {
            self.tree(owner, id)?;
        }
        Ok(())
    }
}

#[async_trait]
impl Store for MemoryStore {
    fn capabilities(&self) -> Capabilities {
        Capabilities::default()
    }

    fn limits(&self) -> &Limits {
        &self.limits
    }

    async fn create_conversation(
        &self,
        owner: &Owner,
        new: NewConversation,
    ) -> Result<Conversation, Error> {
        rules::check_new_conversation(&new, &self.limits)?;
        let mut world = self.world();
        let key = (owner.clone(), new.id.clone());
        if world.trees.contains_key(&key) {
            return Err(Error::already_exists(Thing::Conversation, &new.id));
        }
        let tree = world.trees.entry(key).or_insert(Tree::new(owner, new));
        Ok(tree.record())
    }

    async fn conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Conversation, Error> {
        self.tree(owner, id, |tree| Ok(tree.record()))
    }

    async fn conversations(
        &self,
        owner: &Owner,
        list: ListConversations,
    ) -> Result<ConversationPage, Error> {
        let world = self.world();
        let mut all: Vec<Conversation> = world
            .trees
            .iter()
            .filter(|((of, _), _)| of == owner)
            .map(|(_, tree)| tree.record())
            .filter(|one| list.resource.is_none() || one.resource == list.resource)
            .filter(|one| match &list.after {
                None => true,
                Some(Cursor { updated_ms, id }) => (-one.updated_ms, &one.id) > (-updated_ms, id),
            })
            .collect();
        all.sort_by(|a, b| (-a.updated_ms, &a.id).cmp(&(-b.updated_ms, &b.id)));
        let limit = list.limit.unwrap_or(100);
        let more = all.len() > limit;
        all.truncate(limit);
        let next = all.last().filter(|_| more).map(|last| Cursor {
            updated_ms: last.updated_ms,
            id: last.id.clone(),
        });
        Ok(ConversationPage {
            conversations: all,
            next,
        })
    }

    async fn update_conversation(
        &self,
        owner: &Owner,
        id: &ConversationId,
        update: ConversationUpdate,
    ) -> Result<Conversation, Error> {
        self.tree(owner, id, |tree| tree.update(update, &self.limits))
    }

    async fn delete_conversation(&self, owner: &Owner, id: &ConversationId) -> Result<(), Error> {
        let mut world = self.world();
        let gone = world.trees.remove(&(owner.clone(), id.clone()));
        gone.ok_or_else(|| Error::not_found(Thing::Conversation, id))?;
        let scope = KeyScope::Conversation(id.clone());
        world.entries.remove(&(owner.clone(), scope));
        Ok(())
    }

    async fn append(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: AppendRequest,
    ) -> Result<Appended, Error> {
        rules::check_append(&request, &self.limits)?;
        self.tree(owner, id, |tree| tree.append(owner, request, &self.limits))
    }

    async fn read(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: ReadRequest,
    ) -> Result<Page, Error> {
        self.tree(owner, id, |tree| tree.read(&request))
    }

    async fn nodes(
        &self,
        owner: &Owner,
        id: &ConversationId,
        query: NodeQuery,
    ) -> Result<Vec<Arc<Node>>, Error> {
        self.tree(owner, id, |tree| tree.find(&query))
    }

    async fn state(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: StateRequest,
    ) -> Result<State, Error> {
        self.tree(owner, id, |tree| tree.state(&request))
    }

    async fn refs(&self, owner: &Owner, id: &ConversationId) -> Result<Refs, Error> {
        self.tree(owner, id, |tree| Ok(tree.refs()))
    }

    async fn change_ref(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: RefChange,
        at_ms: i64,
    ) -> Result<RefChanged, Error> {
        self.tree(owner, id, |tree| tree.change_ref(change, at_ms))
    }

    async fn put_blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        bytes: Arc<[u8]>,
    ) -> Result<BlobId, Error> {
        rules::check_blob(&bytes, &self.limits)?;
        self.tree(owner, id, |tree| Ok(tree.put_blob(owner, bytes)))
    }

    async fn blob(
        &self,
        owner: &Owner,
        id: &ConversationId,
        blob: BlobId,
    ) -> Result<Arc<[u8]>, Error> {
        self.tree(owner, id, |tree| tree.blob(blob))
    }

    async fn events(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: u64,
        limit: usize,
    ) -> Result<Vec<Event>, Error> {
        self.tree(owner, id, |tree| Ok(tree.events(after, limit)))
    }
}

#[async_trait]
impl KeyValues for MemoryStore {
    async fn entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Result<Option<Entry>, Error> {
        let mut world = self.world();
        world.check_scope(owner, scope)?;
        let slots = world.entries.get(&(owner.clone(), scope.clone()));
        Ok(slots.and_then(|slots| slots.get(key)?.entry(key)))
    }

    async fn entries(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        prefix: &str,
    ) -> Result<Vec<Entry>, Error> {
        let mut world = self.world();
        world.check_scope(owner, scope)?;
        let Some(slots) = world.entries.get(&(owner.clone(), scope.clone())) else {
            return Ok(Vec::new());
        };
        let from = (Bound::Included(prefix), Bound::Unbounded);
        Ok(slots
            .range::<str, _>(from)
            .take_while(|(key, _)| key.starts_with(prefix))
            .filter_map(|(key, slot)| slot.entry(key))
            .collect())
    }

    async fn put_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        put: PutEntry,
    ) -> Result<u64, Error> {
        rules::check_put_entry(scope, &put, &self.limits)?;
        let mut world = self.world();
        world.check_scope(owner, scope)?;
        let slots = world
            .entries
            .entry((owner.clone(), scope.clone()))
            .or_default();
        let slot = slots.get(&put.key);
        let present = slot.filter(|slot| slot.value.is_some());
        rules::check_version(&put, present.map(|slot| slot.version))?;
        let version = slot.map_or(0, |slot| slot.version) + 1;
        slots.insert(
            put.key,
            Slot {
                value: put.value,
                version,
                at_ms: put.at_ms,
            },
        );
        Ok(version)
    }
}

impl Slot {
    fn entry(&self, key: &str) -> Option<Entry> {
        Some(Entry {
            key: key.to_owned(),
            value: Arc::clone(self.value.as_ref()?),
            version: self.version,
            at_ms: self.at_ms,
        })
    }
}
