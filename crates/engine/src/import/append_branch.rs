//! Storing the part of a branch that is new.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use contexture_ir::{BranchName, Item, MessageId, NodeId, meaning_hash};
use contexture_store::{
    Activation, AppendPoint, AppendRequest, BranchLabel, Error as StoreError, NewBranch, NewItem,
    NodeQuery, NodeState, OnMoved, PathEnd, StateChange, StatePatch, StateRequest,
};
use contexture_wire::partner_indices;

use super::job::ImportJob;
use super::names::branch_name;
use super::options::DivergedSession;
use crate::append::{append, split_by_limits, state_node};
use crate::error::EngineError;
use crate::state::{INSTRUCTIONS_PREFIX, messages_change, settings_change};

/// The part of a branch that is not stored.
pub(super) struct UnstoredBranch<'a> {
    pub(super) order: usize,
    /// What the session calls the branch.
    pub(super) name: &'a str,
    /// How many nodes stand before.
    pub(super) shared: usize,
    pub(super) base: Option<NodeId>,
    /// Whether an earlier import, or somebody else, stored the branch up to `base`.
    pub(super) continues: bool,
    pub(super) nodes: &'a [usize],
}

impl ImportJob<'_> {
    /// The call that each output of a path answers. A call of the same id on another branch is
    /// another call.
    pub(super) fn pair_outputs(&self, path: &[usize]) -> BTreeMap<usize, usize> {
        let nodes: Vec<_> = path
            .iter()
            .filter_map(|index| self.session.tree.get(*index))
            .collect();
        let calls = partner_indices(nodes.iter().map(|node| &node.item));
        let calls = calls
            .into_iter()
            .map(|call| call.and_then(|call| path.get(call)));
        path.iter()
            .zip(calls)
            .filter_map(|(index, call)| Some((*index, *call?)))
            .collect()
    }

    /// How many nodes of a path are stored, and the node its rest goes after. `known` are known to be.
    pub(super) async fn find_stored_prefix(
        &self,
        order: usize,
        path: &[usize],
        known: usize,
    ) -> Result<(usize, Option<NodeId>), EngineError> {
        let before = |count: usize| {
            let last = count.checked_sub(1).and_then(|last| path.get(last));
            last.and_then(|index| self.node_id(*index))
        };
        if let Some(laid) = self.alignments.get(order) {
            return Ok(if laid.nodes.len() > known || known == 0 {
                (laid.nodes.len(), laid.base)
            } else {
                (known, before(known))
            });
        }
        // What an earlier import stored of a path is its beginning.
        // A binary search: one look-up per step instead of one per node.
        let (mut low, mut high) = (known, if self.existed { path.len() } else { known });
        while low < high {
            let middle = low + (high - low) / 2;
            let Some(index) = path.get(middle) else {
                break;
            };
            let query = NodeQuery::Id(self.derived_node_id(&self.key, *index));
            match self
                .engine
                .store()
                .find_nodes(self.owner, &self.id, query)
                .await
            {
                Ok(_) => low = middle + 1,
                Err(StoreError::NotFound { .. }) => high = middle,
                Err(error) => return Err(error.into()),
            }
        }
        Ok((low, before(low)))
    }

    /// The node that carries changed instructions after `base`.
    pub(super) fn state_node_id(&self, base: Option<NodeId>) -> NodeId {
        let base = base.as_ref().map_or(&[][..], |base| base.as_bytes());
        NodeId::derive("state", &[&self.key, base])
    }

    /// `base`, or what an import put behind it that is no item.
    pub(super) fn after_state_node(&self, mut base: Option<NodeId>) -> Option<NodeId> {
        loop {
            let state = Some(self.state_node_id(base));
            if !self.branches.iter().any(|(_, head)| *head == state) {
                return base;
            }
            base = state;
        }
    }

    /// The changes of what stands before the history and of the request's settings, where there are any.
    pub(super) async fn head_changes(
        &self,
        chain: &UnstoredBranch<'_>,
    ) -> Result<Vec<StateChange>, EngineError> {
        let said = &self.session.instructions;
        let settings = self.session.request_settings();
        let begins = chain.base.is_none() && !chain.nodes.is_empty();
        let is_bare = said.is_empty() && settings.is_none();
        if is_bare || !(begins || chain.order == 0) {
            return Ok(Vec::new());
        }
        let mut changes = Vec::new();
        if !said.is_empty() {
            changes.push(messages_change(said)?);
        }
        if let Some(settings) = settings {
            let max_bytes = self.engine.store().limits().state_value_bytes;
            changes.push(settings_change(&settings, max_bytes)?);
        }
        let stored = match chain.base {
            Some(base) => self.load_head_state(base).await?,
            None => NodeState::default(),
        };
        changes.retain(|change| change.alters(&stored));
        // Where nothing else is new they are so at the end of a branch only: elsewhere the
        // conversation has gone on.
        let ends = self.branches.iter().any(|(_, head)| *head == chain.base);
        if chain.nodes.is_empty() && !ends {
            return Ok(Vec::new());
        }
        Ok(changes)
    }

    /// Reads what stands before the history at a node.
    async fn load_head_state(&self, base: NodeId) -> Result<NodeState, EngineError> {
        let request = StateRequest {
            prefix: INSTRUCTIONS_PREFIX.to_owned(),
            ..StateRequest::all_entries(PathEnd::Node(base))
        };
        let store = self.engine.store();
        Ok(store.read_state(self.owner, &self.id, request).await?)
    }

    pub(super) fn build_items(
        &self,
        path: &[usize],
        chain: &UnstoredBranch<'_>,
    ) -> Result<Vec<NewItem>, EngineError> {
        if chain.nodes.is_empty() {
            let id = self.state_node_id(chain.base);
            return Ok(vec![state_node(id, self.created_ms)?]);
        }
        let partners = self.pair_outputs(path);
        let nodes = chain.nodes.iter();
        nodes
            .map(|index| self.build_item(*index, &partners))
            .collect()
    }

    /// Stores what is new of one branch, in as many appends as the limits ask for.
    pub(super) async fn append_branch(
        &mut self,
        chain: &UnstoredBranch<'_>,
        items: Vec<NewItem>,
        changes: Vec<StateChange>,
        blob: Option<&Arc<[u8]>>,
    ) -> Result<(), EngineError> {
        // Each part continues at the head of the one before; the first may open a branch.
        let mut at = self.append_position(chain)?;
        let mut changes = changes;
        let parts = split_by_limits(items, self.engine.store().limits());
        for (number, part) in parts.into_iter().enumerate() {
            let opens = matches!(at, AppendPoint::New(_));
            let count = part.len() as u64;
            let mut request = AppendRequest::new(at, part, self.engine.now_ms());
            // Somebody may write to the conversation during an import: the session is kept beside it then.
            request.on_moved = OnMoved::Sibling;
            request.patch = StatePatch {
                changes: std::mem::take(&mut changes),
                from: 0,
            };
            request.blobs = blob
                .filter(|_| number == 0 && chain.order == 0)
                .cloned()
                .into_iter()
                .collect();
            let store = self.engine.store().as_ref();
            let appended = append(store, self.owner, &self.id, request).await?;
            self.stored_items.fetch_add(count, Ordering::Relaxed);
            // A branch whose name is gone was deleted by somebody: what follows finds its own.
            let Some(branch) = appended.branch else {
                at = self.new_branch_position(appended.head, chain)?;
                continue;
            };
            self.branches.retain(|(name, _)| *name != branch);
            self.branches.push((branch.clone(), appended.head));
            // Only a branch of a conversation that was there can have diverged, and only its main path is reported.
            if (opens || appended.on_sibling_branch) && self.existed && chain.order == 0 {
                let branch = branch.clone();
                let shared = chain.shared;
                self.diverged = Some(DivergedSession { branch, shared });
            }
            at = AppendPoint::Head {
                branch,
                head: appended.head,
            };
        }
        Ok(())
    }

    /// Where the new part of a branch goes: on the branch of its name if that ends where it begins,
    /// else on another one that does, else on one of its own.
    pub(super) fn append_position(
        &self,
        chain: &UnstoredBranch<'_>,
    ) -> Result<AppendPoint, EngineError> {
        let own = branch_name(chain.name)?;
        // A branch of another name may be continued by the main path, or by what an earlier import stored.
        let open = chain.order == 0 || chain.continues;
        let ends = self.branches.iter().filter(|(_, end)| *end == chain.base);
        let named = ends.clone().find(|(name, _)| *name == own);
        match named.or_else(|| ends.into_iter().find(|_| open)) {
            Some((branch, head)) => Ok(AppendPoint::Head {
                branch: branch.clone(),
                head: *head,
            }),
            None => self.new_branch_position(chain.base, chain),
        }
    }

    /// A branch of its own: under the session's name for it, and `import-2`, … for what the session
    /// has as its main one.
    pub(super) fn new_branch_position(
        &self,
        base: Option<NodeId>,
        chain: &UnstoredBranch<'_>,
    ) -> Result<AppendPoint, EngineError> {
        let taken = |name: &BranchName| self.branches.iter().any(|(known, _)| known == name);
        let (label, activate) = if chain.order == 0 {
            let mut number = 2;
            let mut name = BranchName::new("import-2")?;
            while taken(&name) {
                number += 1;
                name = BranchName::new(format!("import-{number}"))?;
            }
            (BranchLabel::Named(name), Activation::Activate)
        } else {
            let name = branch_name(chain.name)?;
            let label = if taken(&name) {
                BranchLabel::After(name)
            } else {
                BranchLabel::Named(name)
            };
            (label, Activation::Keep)
        };
        Ok(AppendPoint::New(NewBranch {
            base,
            label,
            activate,
        }))
    }

    pub(super) fn build_item(
        &self,
        index: usize,
        partners: &BTreeMap<usize, usize>,
    ) -> Result<NewItem, EngineError> {
        let missing = || EngineError::BrokenSession {
            source_id: self.session.source_id.clone(),
            index,
        };
        let node = self.session.tree.get(index).ok_or_else(missing)?;
        let call = partners.get(&index).copied();
        let answers = call.filter(|_| matches!(node.item, Item::FunctionCallOutput(_)));
        let message_id = node.message_id.as_deref().map(MessageId::new).transpose()?;
        Ok(NewItem {
            answers: answers.and_then(|call| self.node_id(call)),
            message_id,
            origin: node.origin,
            audience: node.audience,
            // Of the session as it came, so that a later copy is recognised.
            meaning_hash: (self.unredacted.tree.get(index))
                .and_then(|node| meaning_hash(&node.item)),
            ..NewItem::new(
                self.derived_node_id(&self.key, index),
                &node.item,
                node.item.to_json(),
                node.created_at.unwrap_or(self.created_ms),
            )
        })
    }
}
