//! One conversation in memory: an arena of nodes and the names that point into it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use contexture_ir::{
    BranchName, CheckpointName, ContentHash, MessageId, NodeId, Owner, ResponseId,
};
use foldhash::fast::RandomState;

use super::stream_log::Logs;
use crate::blob::BlobId;
use crate::conversation::{Conversation, ConversationUpdate, NewConversation, TitleChange};
use crate::error::{Error, Thing};
use crate::event::{Event, EventKind};
use crate::limits::Limits;
use crate::node::Node;
use crate::read::{At, NodeQuery, Page, ReadRequest};
use crate::refs::{
    Activation, Branch, BranchLabel, Checkpoint, Fence, NewBranch, RefChange, RefChanged, Refs,
};
use crate::response::ResponseRecord;
use crate::rules::{self, Counters};
use crate::state::{State, StateRequest, StateRoot, StateValues};

/// A conversation.
#[derive(Debug)]
pub(super) struct Tree {
    /// `nodes`, `branches`, `messages` and `active` are filled in by [`Tree::record`].
    pub(super) record: Conversation,
    pub(super) arena: Vec<Placed>,
    pub(super) by_id: HashMap<NodeId, usize, RandomState>,
    pub(super) by_message: BTreeMap<MessageId, Vec<usize>>,
    /// In order of creation.
    pub(super) branches: Vec<Named>,
    pub(super) checkpoints: BTreeMap<CheckpointName, Checkpoint>,
    /// Number 0 is the empty root.
    pub(super) roots: Vec<StateRoot>,
    pub(super) values: BTreeMap<ContentHash, Arc<[u8]>>,
    pub(super) blobs: BTreeMap<BlobId, Arc<[u8]>>,
    pub(super) responses: BTreeMap<ResponseId, ResponseRecord>,
    pub(super) events: Vec<Event>,
    pub(super) streams: Logs,
}

/// A node, where it stands and what state it has.
#[derive(Debug)]
pub(super) struct Placed {
    pub(super) node: Arc<Node>,
    pub(super) parent: Option<usize>,
    pub(super) root: usize,
}

/// A branch.
#[derive(Debug)]
pub(super) struct Named {
    pub(super) name: BranchName,
    pub(super) head: Option<usize>,
    pub(super) fence: Fence,
    pub(super) created_ms: i64,
}

impl Tree {
    pub(super) fn new(owner: &Owner, new: NewConversation) -> Self {
        let at_ms = new.created_ms;
        let mut tree = Self {
            record: Conversation {
                owner: owner.clone(),
                id: new.id,
                title: new.title,
                resource: new.resource,
                metadata: new.metadata,
                active: BranchName::main(),
                version: 1,
                nodes: 0,
                branches: 1,
                messages: 0,
                events: 0,
                created_ms: at_ms,
                updated_ms: at_ms,
            },
            arena: Vec::new(),
            by_id: HashMap::default(),
            by_message: BTreeMap::new(),
            branches: vec![Named {
                name: BranchName::main(),
                head: None,
                fence: Fence(0),
                created_ms: at_ms,
            }],
            checkpoints: BTreeMap::new(),
            roots: vec![StateRoot::new()],
            values: BTreeMap::new(),
            blobs: BTreeMap::new(),
            responses: BTreeMap::new(),
            events: Vec::new(),
            streams: Logs::default(),
        };
        tree.event(at_ms, EventKind::Created);
        tree
    }

    pub(super) fn record(&self) -> Conversation {
        let active = self.branch(&self.record.active);
        Conversation {
            nodes: self.arena.len() as u64,
            branches: self.branches.len() as u64,
            messages: active.map_or(0, |branch| self.counters(branch.head).messages),
            events: self.events.len() as u64,
            ..self.record.clone()
        }
    }

    pub(super) fn update(
        &mut self,
        update: ConversationUpdate,
        limits: &Limits,
    ) -> Result<Conversation, Error> {
        let record = &mut self.record;
        rules::check_update(&record.id, record.version, &update, limits)?;
        record.metadata = rules::merge_metadata(&record.metadata, update.metadata, limits)?;
        if let TitleChange::Set(title) = update.title {
            record.title = title;
        }
        record.version += 1;
        self.event(update.at_ms, EventKind::Updated);
        Ok(self.record())
    }

    /// Records an event; every write ends with one.
    pub(super) fn event(&mut self, at_ms: i64, kind: EventKind) {
        self.record.updated_ms = at_ms;
        self.events.push(Event {
            seq: self.events.len() as u64 + 1,
            at_ms,
            kind,
        });
    }

    pub(super) fn events(&self, after: u64, limit: usize) -> Vec<Event> {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        self.events
            .iter()
            .skip(after)
            .take(limit)
            .cloned()
            .collect()
    }

    pub(super) fn branch(&self, name: &BranchName) -> Option<&Named> {
        self.branches.iter().find(|branch| branch.name == *name)
    }

    fn branch_mut(&mut self, name: &BranchName) -> Result<&mut Named, Error> {
        self.branches
            .iter_mut()
            .find(|branch| branch.name == *name)
            .ok_or_else(|| Error::not_found(Thing::Branch, name))
    }

    pub(super) fn index(&self, id: NodeId) -> Result<usize, Error> {
        let index = self.by_id.get(&id).copied();
        index.ok_or_else(|| Error::not_found(Thing::Node, id))
    }

    pub(super) fn placed(&self, index: Option<usize>) -> Option<&Placed> {
        self.arena.get(index?)
    }

    pub(super) fn counters(&self, index: Option<usize>) -> Counters {
        self.placed(index)
            .map_or_else(Counters::default, |placed| (&*placed.node).into())
    }

    /// The node at `depth` on the path to `end`.
    pub(super) fn ancestor(&self, end: Option<usize>, depth: u64) -> Option<usize> {
        let mut index = end?;
        loop {
            let placed = self.arena.get(index)?;
            if placed.node.depth <= depth {
                return (placed.node.depth == depth).then_some(index);
            }
            index = placed.parent?;
        }
    }

    pub(super) fn end(&self, at: &At) -> Result<Option<usize>, Error> {
        match at {
            At::Branch(name) => match self.branch(name) {
                Some(branch) => Ok(branch.head),
                None => Err(Error::not_found(Thing::Branch, name)),
            },
            At::Checkpoint(name) => match self.checkpoints.get(name) {
                Some(checkpoint) => self.index(checkpoint.node).map(Some),
                None => Err(Error::not_found(Thing::Checkpoint, name)),
            },
            At::Node(id) => self.index(*id).map(Some),
        }
    }

    pub(super) fn read(&self, request: &ReadRequest) -> Result<Page, Error> {
        let end = self.end(&request.at)?;
        let depth = self.counters(end).depth;
        let extent = rules::extent(request, &self.counters(end));
        let mut nodes = Vec::new();
        let mut index = self.ancestor(end, extent.to.min(depth));
        while let Some(placed) = self.placed(index) {
            if placed.node.depth < extent.from {
                break;
            }
            nodes.push(Arc::clone(&placed.node));
            index = placed.parent;
        }
        nodes.reverse();
        Ok(Page {
            head: self.placed(end).map(|placed| placed.node.id),
            depth,
            nodes,
            next: extent.next,
        })
    }

    pub(super) fn find(&self, query: &NodeQuery) -> Result<Vec<Arc<Node>>, Error> {
        let nodes = |indices: &[usize]| -> Vec<Arc<Node>> {
            let placed = indices.iter().filter_map(|index| self.arena.get(*index));
            placed.map(|placed| Arc::clone(&placed.node)).collect()
        };
        match query {
            NodeQuery::Id(id) => Ok(nodes(&[self.index(*id)?])),
            NodeQuery::Prefix(prefix) => {
                let (low, high) = rules::check_prefix(prefix)?;
                let range = NodeId::from_bytes(low)..=NodeId::from_bytes(high);
                // People type prefixes; whatever is asked often has the whole id.
                let mut found: Vec<_> = self
                    .by_id
                    .iter()
                    .filter(|(id, _)| range.contains(id))
                    .collect();
                found.sort_unstable();
                found.truncate(5);
                match found.as_slice() {
                    [] => Err(Error::not_found(Thing::Node, prefix)),
                    [(_, index)] => Ok(nodes(&[**index])),
                    several => Err(Error::Ambiguous {
                        what: Thing::Node,
                        name: prefix.clone(),
                        candidates: several.iter().map(|(id, _)| id.to_string()).collect(),
                    }),
                }
            }
            NodeQuery::Message(message) => {
                let mut found = self.by_message.get(message).cloned().unwrap_or_default();
                // A node without a message id is a message of its own.
                let own = message.as_str().parse::<NodeId>().ok();
                let own = own.and_then(|id| self.by_id.get(&id).copied());
                found.extend(own.filter(|index| {
                    self.placed(Some(*index))
                        .is_some_and(|placed| placed.node.message_id.is_none())
                }));
                if found.is_empty() {
                    return Err(Error::not_found(Thing::Message, message));
                }
                Ok(by_depth(nodes(&found)))
            }
            NodeQuery::CopiesOf(source) => {
                self.index(*source)?;
                Ok(self.all(|node| node.copied_from == Some(*source)))
            }
            NodeQuery::Kind(kind) => Ok(self.all(|node| node.kind == *kind)),
        }
    }

    fn all(&self, which: impl Fn(&Node) -> bool) -> Vec<Arc<Node>> {
        let nodes = self.arena.iter().map(|placed| &placed.node);
        by_depth(nodes.filter(|node| which(node)).cloned().collect())
    }

    pub(super) fn state(&self, request: &StateRequest) -> Result<State, Error> {
        let end = self.end(&request.at)?;
        let number = self.placed(end).map_or(0, |placed| placed.root);
        let root: StateRoot = self
            .roots
            .get(number)
            .into_iter()
            .flatten()
            .filter(|(key, _)| key.as_str().starts_with(&request.prefix))
            .map(|(key, entry)| (key.clone(), *entry))
            .collect();
        let values = match request.values {
            StateValues::Skip => BTreeMap::new(),
            StateValues::Load => root
                .values()
                .filter_map(|entry| Some((entry.hash, Arc::clone(self.values.get(&entry.hash)?))))
                .collect(),
        };
        Ok(State { root, values })
    }

    pub(super) fn refs(&self) -> Refs {
        Refs {
            branches: self
                .branches
                .iter()
                .map(|named| self.shown(named))
                .collect(),
            checkpoints: self.checkpoints.values().cloned().collect(),
        }
    }

    fn shown(&self, named: &Named) -> Branch {
        let counters = self.counters(named.head);
        Branch {
            name: named.name.clone(),
            head: self.placed(named.head).map(|placed| placed.node.id),
            nodes: counters.depth,
            messages: counters.messages,
            turns: counters.turns,
            active: named.name == self.record.active,
            fence: named.fence,
            compacted: counters.compacted,
            created_ms: named.created_ms,
        }
    }

    pub(super) fn change_ref(
        &mut self,
        change: RefChange,
        at_ms: i64,
    ) -> Result<RefChanged, Error> {
        match change {
            RefChange::CreateBranch(new) => {
                let name = self.label(&new.label)?;
                let base = new.base.map(|id| self.index(id)).transpose()?;
                self.open(name.clone(), base, &new, at_ms);
                self.branch_result(&name)
            }
            RefChange::Activate(name) => {
                self.branch_mut(&name)?;
                self.record.active = name.clone();
                let branch = name.clone();
                self.event(at_ms, EventKind::BranchActivated { branch });
                self.branch_result(&name)
            }
            RefChange::RenameBranch { from, to } => {
                self.branch_mut(&from)?;
                self.label(&BranchLabel::Named(to.clone()))?;
                self.branch_mut(&from)?.name = to.clone();
                if self.record.active == from {
                    self.record.active = to.clone();
                }
                let shown = self.branch_result(&to);
                self.event(at_ms, EventKind::BranchRenamed { from, to });
                shown
            }
            RefChange::DeleteBranch(name) => {
                self.branch_mut(&name)?;
                rules::check_delete_branch(&name, &self.record.active)?;
                self.branches.retain(|branch| branch.name != name);
                self.event(at_ms, EventKind::BranchDeleted { branch: name });
                Ok(RefChanged::Deleted)
            }
            RefChange::Claim(name) => {
                let branch = self.branch_mut(&name)?;
                branch.fence = Fence(branch.fence.0 + 1);
                let (branch, fence) = (name.clone(), branch.fence);
                self.event(at_ms, EventKind::BranchClaimed { branch, fence });
                self.branch_result(&name)
            }
            RefChange::SetCheckpoint { name, node } => {
                self.index(node)?;
                let checkpoint = Checkpoint {
                    name: name.clone(),
                    node,
                    at_ms,
                };
                self.checkpoints.insert(name.clone(), checkpoint.clone());
                let kind = EventKind::CheckpointSet {
                    checkpoint: name,
                    node,
                };
                self.event(at_ms, kind);
                Ok(RefChanged::Checkpoint(checkpoint))
            }
            RefChange::DeleteCheckpoint(name) => {
                let gone = self.checkpoints.remove(&name);
                gone.ok_or_else(|| Error::not_found(Thing::Checkpoint, &name))?;
                self.event(at_ms, EventKind::CheckpointDeleted { checkpoint: name });
                Ok(RefChanged::Deleted)
            }
        }
    }

    fn branch_result(&self, name: &BranchName) -> Result<RefChanged, Error> {
        let named = self.branch(name);
        let named = named.ok_or_else(|| Error::not_found(Thing::Branch, name))?;
        Ok(RefChanged::Branch(self.shown(named)))
    }

    /// The name a new branch gets.
    pub(super) fn label(&self, label: &BranchLabel) -> Result<BranchName, Error> {
        match label {
            BranchLabel::Named(name) => match self.branch(name) {
                Some(_) => Err(Error::already_exists(Thing::Branch, name)),
                None => Ok(name.clone()),
            },
            BranchLabel::After(from) => rules::automatic_name(
                from,
                |base| {
                    let prefix = format!("{base}-v");
                    let names = self.branches.iter().map(|branch| branch.name.as_str());
                    let like = names.filter(|name| *name == base || name.starts_with(&prefix));
                    Ok(like.count() as u64)
                },
                |name| Ok(self.branch(name).is_some()),
            ),
        }
    }

    /// Makes a branch whose name is free.
    pub(super) fn open(
        &mut self,
        name: BranchName,
        head: Option<usize>,
        new: &NewBranch,
        at_ms: i64,
    ) {
        self.branches.push(Named {
            name: name.clone(),
            head,
            fence: Fence(0),
            created_ms: at_ms,
        });
        let kind = EventKind::BranchCreated {
            branch: name.clone(),
            base: new.base,
        };
        self.event(at_ms, kind);
        if new.activate == Activation::Activate {
            self.record.active = name.clone();
            self.event(at_ms, EventKind::BranchActivated { branch: name });
        }
    }

    pub(super) fn put_blob(&mut self, owner: &Owner, bytes: Arc<[u8]>) -> BlobId {
        let id = BlobId::of(owner, &bytes);
        self.blobs.entry(id).or_insert(bytes);
        id
    }

    pub(super) fn blob(&self, id: BlobId) -> Result<Arc<[u8]>, Error> {
        let bytes = self.blobs.get(&id).cloned();
        bytes.ok_or_else(|| Error::not_found(Thing::Blob, id))
    }

    pub(super) fn response(&self, id: ResponseId) -> Result<ResponseRecord, Error> {
        let record = self.responses.get(&id).cloned();
        record.ok_or_else(|| Error::not_found(Thing::Response, id))
    }
}

fn by_depth(mut nodes: Vec<Arc<Node>>) -> Vec<Arc<Node>> {
    nodes.sort_by_key(|node| (node.depth, node.id));
    nodes
}
