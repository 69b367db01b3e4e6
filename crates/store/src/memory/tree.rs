//! One conversation in memory: an arena of nodes and the names that point into it.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use contexture_ir::{
    BranchName, CheckpointName, ContentHash, MessageId, NodeId, Owner, ResponseId,
};
use foldhash::fast::RandomState;

use super::stream_log::StreamLogs;
use crate::contract::{
    Activation, BlobId, Branch, BranchHolder, BranchLabel, Checkpoint, Conversation,
    ConversationUpdate, EntityKind, Error, Event, EventKind, Fence, Limits, NewBranch,
    NewConversation, Node, NodeQuery, NodeState, PathEnd, PathPage, ReadRequest, RefChange,
    RefChanged, Refs, ResponseRecord, StateRequest, StateRoot, StateValues, TitleChange,
};
use crate::rules::{self, Counters, PageBytes};

/// A conversation in memory: its tree, names, state, blobs and streams.
#[derive(Debug)]
pub(super) struct NodeTree {
    /// Stored record; [`NodeTree::conversation_record`] fills in `nodes`, `branches`, `messages` and `events`.
    pub(super) record: Conversation,
    pub(super) arena: Vec<StoredNode>,
    pub(super) by_id: HashMap<NodeId, usize, RandomState>,
    pub(super) by_message: BTreeMap<MessageId, Vec<usize>>,
    /// Branches, in order of creation.
    pub(super) branches: Vec<BranchState>,
    pub(super) checkpoints: BTreeMap<CheckpointName, Checkpoint>,
    /// State roots; number 0 is the empty one.
    pub(super) roots: Vec<StateRoot>,
    pub(super) values: BTreeMap<ContentHash, Arc<[u8]>>,
    pub(super) blobs: BTreeMap<BlobId, Arc<[u8]>>,
    pub(super) responses: BTreeMap<ResponseId, ResponseRecord>,
    pub(super) events: Vec<Event>,
    pub(super) streams: StreamLogs,
}

/// A node with the indices of its parent and its state root.
#[derive(Debug)]
pub(super) struct StoredNode {
    pub(super) node: Arc<Node>,
    pub(super) parent: Option<usize>,
    pub(super) root: usize,
}

/// A branch in memory: its name, and its head as an index into the arena.
#[derive(Debug)]
pub(super) struct BranchState {
    pub(super) name: BranchName,
    pub(super) head: Option<usize>,
    pub(super) fence: Fence,
    pub(super) holder: Option<BranchHolder>,
    pub(super) created_ms: i64,
}

impl NodeTree {
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
            branches: vec![BranchState {
                name: BranchName::main(),
                head: None,
                fence: Fence(0),
                holder: None,
                created_ms: at_ms,
            }],
            checkpoints: BTreeMap::new(),
            // A node without state needs no special case: it points at root 0.
            roots: vec![StateRoot::new()],
            values: BTreeMap::new(),
            blobs: BTreeMap::new(),
            responses: BTreeMap::new(),
            events: Vec::new(),
            streams: StreamLogs::default(),
        };
        tree.record_event(at_ms, EventKind::Created);
        tree
    }

    pub(super) fn conversation_record(&self) -> Conversation {
        // Computed on demand, so that writes need not keep the counts up to date.
        let active = self.find_branch(&self.record.active);
        Conversation {
            nodes: self.arena.len() as u64,
            branches: self.branches.len() as u64,
            messages: active.map_or(0, |branch| self.counters_of(branch.head).messages),
            events: self.events.len() as u64,
            ..self.record.clone()
        }
    }

    pub(super) fn update_conversation(
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
        self.record_event(update.at_ms, EventKind::Updated);
        Ok(self.conversation_record())
    }

    /// Records an event, and the time of the write.
    pub(super) fn record_event(&mut self, at_ms: i64, kind: EventKind) {
        // Writes without an event (blobs, streams, values outside the tree) do not touch this time.
        self.record.updated_ms = at_ms;
        self.events.push(Event {
            seq: self.events.len() as u64 + 1,
            at_ms,
            kind,
        });
    }

    pub(super) fn list_events(&self, after: u64, limit: usize) -> Vec<Event> {
        let after = usize::try_from(after).unwrap_or(usize::MAX);
        self.events
            .iter()
            .skip(after)
            .take(limit)
            .cloned()
            .collect()
    }

    pub(super) fn find_branch(&self, name: &BranchName) -> Option<&BranchState> {
        self.branches.iter().find(|branch| branch.name == *name)
    }

    fn branch_mut(&mut self, name: &BranchName) -> Result<&mut BranchState, Error> {
        self.branches
            .iter_mut()
            .find(|branch| branch.name == *name)
            .ok_or_else(|| Error::not_found(EntityKind::Branch, name))
    }

    pub(super) fn node_index(&self, id: NodeId) -> Result<usize, Error> {
        let index = self.by_id.get(&id).copied();
        index.ok_or_else(|| Error::not_found(EntityKind::Node, id))
    }

    pub(super) fn stored_node(&self, index: Option<usize>) -> Option<&StoredNode> {
        self.arena.get(index?)
    }

    pub(super) fn counters_of(&self, index: Option<usize>) -> Counters {
        self.stored_node(index)
            .map_or_else(Counters::default, |stored| (&*stored.node).into())
    }

    /// Returns the node at `depth` on the path to `end`.
    pub(super) fn ancestor_at_depth(&self, end: Option<usize>, depth: u64) -> Option<usize> {
        let mut index = end?;
        loop {
            let stored = self.arena.get(index)?;
            if stored.node.depth <= depth {
                return (stored.node.depth == depth).then_some(index);
            }
            index = stored.parent?;
        }
    }

    pub(super) fn resolve_end(&self, at: &PathEnd) -> Result<Option<usize>, Error> {
        match at {
            PathEnd::Branch(name) => match self.find_branch(name) {
                Some(branch) => Ok(branch.head),
                None => Err(Error::not_found(EntityKind::Branch, name)),
            },
            PathEnd::Checkpoint(name) => match self.checkpoints.get(name) {
                Some(checkpoint) => self.node_index(checkpoint.node).map(Some),
                None => Err(Error::not_found(EntityKind::Checkpoint, name)),
            },
            PathEnd::Node(id) => self.node_index(*id).map(Some),
        }
    }

    pub(super) fn read_path(
        &self,
        request: &ReadRequest,
        limits: &Limits,
    ) -> Result<PathPage, Error> {
        let end = self.resolve_end(&request.at)?;
        let depth = self.counters_of(end).depth;
        let extent = rules::depth_range(request, &self.counters_of(end));
        let mut nodes = Vec::new();
        // From the end to the beginning, since a node knows only its parent; reversed afterwards.
        let mut index = self.ancestor_at_depth(end, extent.to.min(depth));
        while let Some(stored) = self.stored_node(index) {
            if stored.node.depth < extent.from {
                break;
            }
            nodes.push(Arc::clone(&stored.node));
            index = stored.parent;
        }
        nodes.reverse();
        let mut bytes = PageBytes::new(limits.page_bytes);
        let cut = nodes.iter().position(|node| !bytes.take(node.json.len()));
        let next = cut.and_then(|cut| nodes.get(cut)).map(|node| node.depth);
        nodes.truncate(cut.unwrap_or(nodes.len()));
        Ok(PathPage {
            head: self.stored_node(end).map(|stored| stored.node.id),
            depth,
            nodes,
            next: next.or(extent.next),
        })
    }

    pub(super) fn find_nodes(&self, query: &NodeQuery) -> Result<Vec<Arc<Node>>, Error> {
        let nodes = |indices: &[usize]| -> Vec<Arc<Node>> {
            let stored = indices.iter().filter_map(|index| self.arena.get(*index));
            stored.map(|stored| Arc::clone(&stored.node)).collect()
        };
        match query {
            NodeQuery::Id(id) => Ok(nodes(&[self.node_index(*id)?])),
            NodeQuery::Prefix(prefix) => Ok(nodes(&[self.find_by_prefix(prefix)?])),
            NodeQuery::Message(message) => Ok(by_depth(nodes(&self.find_by_message(message)?))),
            NodeQuery::CopiesOf(source) => {
                // An unknown source is an error and not an empty list.
                self.node_index(*source)?;
                Ok(self.filter_nodes(|node| node.copied_from == Some(*source)))
            }
            NodeQuery::Kind(kind) => Ok(self.filter_nodes(|node| node.kind == *kind)),
        }
    }

    fn find_by_prefix(&self, prefix: &str) -> Result<usize, Error> {
        let (low, high) = rules::check_prefix(prefix)?;
        let range = NodeId::from_bytes(low)..=NodeId::from_bytes(high);
        // A linear scan is fine: prefixes are typed by people, programs use whole ids.
        let ids = self.by_id.keys().copied();
        let mut found: Vec<NodeId> = ids.filter(|id| range.contains(id)).collect();
        found.sort_unstable();
        self.node_index(rules::select_by_prefix(prefix, &found)?)
    }

    fn find_by_message(&self, message: &MessageId) -> Result<Vec<usize>, Error> {
        let mut found = self.by_message.get(message).cloned().unwrap_or_default();
        // A node without a message id is a message of its own.
        let own = message.as_str().parse::<NodeId>().ok();
        let own = own.and_then(|id| self.by_id.get(&id).copied());
        found.extend(own.filter(|index| {
            self.stored_node(Some(*index))
                .is_some_and(|stored| stored.node.message_id.is_none())
        }));
        match found.is_empty() {
            true => Err(Error::not_found(EntityKind::Message, message)),
            false => Ok(found),
        }
    }

    fn filter_nodes(&self, which: impl Fn(&Node) -> bool) -> Vec<Arc<Node>> {
        let nodes = self.arena.iter().map(|stored| &stored.node);
        by_depth(nodes.filter(|node| which(node)).cloned().collect())
    }

    pub(super) fn read_state(&self, request: &StateRequest) -> Result<NodeState, Error> {
        let end = self.resolve_end(&request.at)?;
        let number = self.stored_node(end).map_or(0, |stored| stored.root);
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
        Ok(NodeState { root, values })
    }

    pub(super) fn list_refs(&self) -> Refs {
        Refs {
            branches: self
                .branches
                .iter()
                .map(|named| self.branch_record(named))
                .collect(),
            checkpoints: self.checkpoints.values().cloned().collect(),
        }
    }

    fn branch_record(&self, named: &BranchState) -> Branch {
        let counters = self.counters_of(named.head);
        Branch {
            name: named.name.clone(),
            head: self.stored_node(named.head).map(|stored| stored.node.id),
            nodes: counters.depth,
            messages: counters.messages,
            turns: counters.turns,
            active: named.name == self.record.active,
            fence: named.fence,
            holder: named.holder,
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
                let name = self.resolve_label(&new.label)?;
                let base = new.base.map(|id| self.node_index(id)).transpose()?;
                self.create_branch(name.clone(), base, &new, at_ms);
                self.branch_result(&name)
            }
            RefChange::Activate(name) => {
                self.branch_mut(&name)?;
                self.record.active = name.clone();
                let branch = name.clone();
                self.record_event(at_ms, EventKind::BranchActivated { branch });
                self.branch_result(&name)
            }
            RefChange::RenameBranch { from, to } => {
                // An unknown branch is reported before a taken name, as in every backend.
                self.branch_mut(&from)?;
                self.resolve_label(&BranchLabel::Named(to.clone()))?;
                self.branch_mut(&from)?.name = to.clone();
                // The active branch is stored by name here, so it must follow; SQL backends store
                // its number.
                if self.record.active == from {
                    self.record.active = to.clone();
                }
                let result = self.branch_result(&to);
                self.record_event(at_ms, EventKind::BranchRenamed { from, to });
                result
            }
            RefChange::DeleteBranch(name) => {
                self.branch_mut(&name)?;
                rules::check_delete_branch(&name, &self.record.active)?;
                self.branches.retain(|branch| branch.name != name);
                self.record_event(at_ms, EventKind::BranchDeleted { branch: name });
                Ok(RefChanged::Deleted)
            }
            RefChange::Move { branch, expect, to } => {
                let actual = self.resolve_end(&PathEnd::Branch(branch.clone()))?;
                let actual = self.stored_node(actual).map(|stored| stored.node.id);
                rules::check_head(&branch, expect, actual)?;
                let index = to.map(|id| self.node_index(id)).transpose()?;
                self.branch_mut(&branch)?.head = index;
                let result = self.branch_result(&branch);
                self.record_event(at_ms, EventKind::BranchMoved { branch, head: to });
                result
            }
            RefChange::Claim {
                branch: name,
                over,
                holder,
            } => {
                let branch = self.branch_mut(&name)?;
                rules::check_claim_over(&name, over, branch.fence, branch.holder)?;
                // The fence only grows, so writers with an older one are refused.
                branch.fence = Fence(branch.fence.0 + 1);
                branch.holder = holder.map(|process| BranchHolder {
                    process,
                    since_ms: at_ms,
                });
                let (branch, fence) = (name.clone(), branch.fence);
                self.record_event(at_ms, EventKind::BranchClaimed { branch, fence });
                self.branch_result(&name)
            }
            RefChange::CreateCheckpoint { name, node } => {
                let existing = self.checkpoints.get(&name).map(|one| one.node);
                rules::check_new_checkpoint(&name, existing, node)?;
                self.set_checkpoint(name, node, at_ms)
            }
            RefChange::SetCheckpoint { name, node } => self.set_checkpoint(name, node, at_ms),
            RefChange::DeleteCheckpoint(name) => {
                let removed = self.checkpoints.remove(&name);
                removed.ok_or_else(|| Error::not_found(EntityKind::Checkpoint, &name))?;
                self.record_event(at_ms, EventKind::CheckpointDeleted { checkpoint: name });
                Ok(RefChanged::Deleted)
            }
        }
    }

    fn set_checkpoint(
        &mut self,
        name: CheckpointName,
        node: NodeId,
        at_ms: i64,
    ) -> Result<RefChanged, Error> {
        // A checkpoint always points to an existing node.
        self.node_index(node)?;
        let checkpoint = Checkpoint {
            name: name.clone(),
            node,
            at_ms,
        };
        let before = self.checkpoints.insert(name.clone(), checkpoint.clone());
        let kind = EventKind::CheckpointSet {
            checkpoint: name,
            node,
        };
        self.record_event(at_ms, kind);
        Ok(RefChanged::Checkpoint {
            checkpoint,
            replaced: before.map(|before| before.node),
        })
    }

    fn branch_result(&self, name: &BranchName) -> Result<RefChanged, Error> {
        let named = self.find_branch(name);
        let named = named.ok_or_else(|| Error::not_found(EntityKind::Branch, name))?;
        Ok(RefChanged::Branch(self.branch_record(named)))
    }

    /// Returns the name that a new branch gets.
    pub(super) fn resolve_label(&self, label: &BranchLabel) -> Result<BranchName, Error> {
        match label {
            BranchLabel::Named(name) => match self.find_branch(name) {
                Some(_) => Err(Error::already_exists(EntityKind::Branch, name)),
                None => Ok(name.clone()),
            },
            BranchLabel::After(from) => rules::automatic_name(
                from,
                |base| {
                    let prefix = format!("{base}-v");
                    let names = self.branches.iter().map(|branch| branch.name.as_str());
                    // Counts as the other backends do by an index range: the base itself and all
                    // names that begin with `<base>-v`.
                    let like = names.filter(|name| *name == base || name.starts_with(&prefix));
                    Ok(like.count() as u64)
                },
                |name| Ok(self.find_branch(name).is_some()),
            ),
        }
    }

    /// Creates a branch; the caller has checked that its name is free.
    pub(super) fn create_branch(
        &mut self,
        name: BranchName,
        head: Option<usize>,
        new: &NewBranch,
        at_ms: i64,
    ) {
        self.branches.push(BranchState {
            name: name.clone(),
            head,
            fence: Fence(0),
            holder: None,
            created_ms: at_ms,
        });
        let kind = EventKind::BranchCreated {
            branch: name.clone(),
            base: new.base,
        };
        self.record_event(at_ms, kind);
        if new.activate == Activation::Activate {
            self.record.active = name.clone();
            self.record_event(at_ms, EventKind::BranchActivated { branch: name });
        }
    }

    pub(super) fn put_blob(&mut self, owner: &Owner, bytes: Arc<[u8]>) -> BlobId {
        let id = BlobId::of(owner, &bytes);
        self.blobs.entry(id).or_insert(bytes);
        id
    }

    pub(super) fn find_blob(&self, id: BlobId) -> Result<Arc<[u8]>, Error> {
        let bytes = self.blobs.get(&id).cloned();
        bytes.ok_or_else(|| Error::not_found(EntityKind::Blob, id))
    }

    pub(super) fn find_response(&self, id: ResponseId) -> Result<ResponseRecord, Error> {
        let record = self.responses.get(&id).cloned();
        record.ok_or_else(|| Error::not_found(EntityKind::Response, id))
    }
}

fn by_depth(mut nodes: Vec<Arc<Node>>) -> Vec<Arc<Node>> {
    nodes.sort_by_key(|node| (node.depth, node.id));
    nodes
}
