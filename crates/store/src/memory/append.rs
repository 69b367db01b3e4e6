//! Appends in memory: all checks that can fail come before the first change.

use std::collections::BTreeSet;
use std::sync::Arc;

use contexture_ir::{Audience, BranchName, ContentHash, MessageId, NodeId, Owner};

use super::key_values::KeyValueTable;
use super::tree::{NodeTree, StoredNode};
use crate::contract::{
    AppendPoint, AppendRequest, Appended, BlobId, EntityKind, Error, EventKind, Limits, NewBranch,
    NewItem, Node,
};
use crate::rules::{self, AppendTarget, BranchFacts, Counters, Merged, StoredItem};

/// Branch and position that the items go to, as the rules decided.
struct ResolvedTarget {
    branch: BranchName,
    parent: Option<usize>,
    open: Option<NewBranch>,
    sibling: bool,
}

impl NodeTree {
    /// Appends items; the caller has checked `request` against the limits.
    pub(super) fn append_items(
        &mut self,
        owner: &Owner,
        mut request: AppendRequest,
        entries: &mut KeyValueTable,
        limits: &Limits,
    ) -> Result<Appended, Error> {
        // Before all other checks: the first run of a repeated append has moved the head, so they
        // would refuse the repetition.
        if rules::detect_replay(&request.items, &self.stored_items(&request.items))? {
            return self.replay_result(owner, &request);
        }
        let target = self.resolve_target(&request)?;
        self.check_references(&request.items, target.parent)?;
        let root = self
            .stored_node(target.parent)
            .map_or(0, |stored| stored.root);
        let empty = Default::default();
        let merged = rules::merge_patch(
            self.roots.get(root).unwrap_or(&empty),
            &request.patch,
            limits,
        )?;
        let counters = rules::counters_after_each(
            self.counters_of(target.parent),
            &request.items,
            self.messages_on_path(&request.items, target.parent),
        );
        if let Some(response) = &request.response {
            // Here everything that can fail comes before the first change, since there is no
            // transaction to roll back.
            if self.responses.contains_key(&response.id) {
                return Err(Error::already_exists(EntityKind::Response, response.id));
            }
            response
                .base
                .map(|base| self.node_index(base))
                .transpose()?;
        }
        if let Some(claim) = request.ends_stream {
            self.streams.check_end(claim)?;
        }
        // The last call that can fail; it changes all values or none.
        let versions = entries.put_all(owner, std::mem::take(&mut request.entries))?;
        Ok(Appended {
            versions,
            ..self.write_append(owner, request, target, root, merged, &counters)
        })
    }

    fn stored_items(&self, items: &[NewItem]) -> Vec<Option<StoredItem>> {
        let stored = |item: &NewItem| {
            let stored = self.stored_node(self.by_id.get(&item.id).copied())?;
            Some(StoredItem {
                content_hash: stored.node.content_hash,
                parent: stored.node.parent,
                redacted: stored.node.redacted_ms.is_some(),
            })
        };
        items.iter().map(stored).collect()
    }

    fn replay_result(&self, owner: &Owner, request: &AppendRequest) -> Result<Appended, Error> {
        let last = request.items.last().map(|item| self.node_index(item.id));
        let last = last.transpose()?;
        let counters = self.counters_of(last);
        // The oldest branch that has the items on its path.
        let branch = self.branches.iter().find(|branch| {
            last.is_some() && self.ancestor_at_depth(branch.head, counters.depth) == last
        });
        Ok(Appended {
            head: self.stored_node(last).map(|stored| stored.node.id),
            first: counters.depth + 1 - request.items.len() as u64,
            depth: counters.depth,
            messages: counters.messages,
            turns: counters.turns,
            nodes: request.items.iter().map(|item| item.id).collect(),
            branch: branch.map(|branch| branch.name.clone()),
            on_sibling_branch: false,
            replayed: true,
            blobs: blob_ids(owner, request),
            versions: Vec::new(),
        })
    }

    fn resolve_target(&self, request: &AppendRequest) -> Result<ResolvedTarget, Error> {
        let branch_state = match &request.at {
            AppendPoint::Head { branch, .. } | AppendPoint::Tip { branch } => {
                self.find_branch(branch)
            }
            AppendPoint::New(_) => None,
        };
        let facts = branch_state.map(|branch_state| BranchFacts {
            head: self
                .stored_node(branch_state.head)
                .map(|stored| stored.node.id),
            fence: branch_state.fence,
        });
        let (new, sibling) = match (rules::append_target(request, facts)?, branch_state) {
            (AppendTarget::Extend, Some(branch_state)) => {
                return Ok(ResolvedTarget {
                    branch: branch_state.name.clone(),
                    parent: branch_state.head,
                    open: None,
                    sibling: false,
                });
            }
            (AppendTarget::Extend, None) => return Err(Error::not_found(EntityKind::Branch, "")),
            (AppendTarget::Open(new), _) => (new, false),
            (AppendTarget::Sibling(new), _) => (new, true),
        };
        Ok(ResolvedTarget {
            branch: self.resolve_label(&new.label)?,
            parent: new.base.map(|id| self.node_index(id)).transpose()?,
            open: Some(new),
            sibling,
        })
    }

    /// Checks that `answers` names an earlier item or a node on the path, and `copied_from` any
    /// node.
    fn check_references(&self, items: &[NewItem], parent: Option<usize>) -> Result<(), Error> {
        let mut before = BTreeSet::new();
        let answers = items.iter().any(|item| item.answers.is_some());
        for item in items {
            if let Some(call) = item.answers
                && !before.contains(&call)
            {
                let index = self.node_index(call)?;
                let depth = self.counters_of(Some(index)).depth;
                if self.ancestor_at_depth(parent, depth) != Some(index) {
                    return Err(Error::not_found(EntityKind::Node, call));
                }
            }
            if let Some(source) = item.copied_from {
                self.node_index(source)?;
            }
            // The set is only built if an item answers something.
            if answers {
                before.insert(item.id);
            }
        }
        Ok(())
    }

    fn messages_on_path(&self, items: &[NewItem], parent: Option<usize>) -> BTreeSet<MessageId> {
        let on_path = |index: &usize| {
            let stored = self.stored_node(Some(*index));
            stored.is_some_and(|stored| {
                stored.node.audience != Audience::NONE
                    && self.ancestor_at_depth(parent, stored.node.depth) == Some(*index)
            })
        };
        let named = items.iter().filter_map(|item| item.message_id.as_ref());
        named
            .filter(|id| {
                let nodes = self.by_message.get(*id);
                nodes.is_some_and(|nodes| nodes.iter().any(on_path))
            })
            .cloned()
            .collect()
    }

    /// Writes the append that was checked; nothing here can fail.
    fn write_append(
        &mut self,
        owner: &Owner,
        request: AppendRequest,
        target: ResolvedTarget,
        root: usize,
        merged: Option<Merged>,
        counters: &[Counters],
    ) -> Appended {
        let blobs = blob_ids(owner, &request);
        if let Some(claim) = request.ends_stream {
            self.streams.complete_stream(claim, request.at_ms);
        }
        if let Some(response) = request.response {
            self.responses.insert(response.id, response);
        }
        for bytes in &request.blobs {
            self.put_blob(owner, Arc::clone(bytes));
        }
        let new_root = self.write_root(root, merged);
        if let Some(new) = &target.open {
            self.create_branch(target.branch.clone(), target.parent, new, request.at_ms);
        }
        let nodes: Vec<NodeId> = request.items.iter().map(|item| item.id).collect();
        let mut parent = target.parent;
        let count = request.items.len() as u64;
        for (at, (item, counters)) in request.items.into_iter().zip(counters).enumerate() {
            // Items before `from` keep the earlier state, so that a rewind to one of them does not
            // see the change.
            let root = if at < request.patch.from {
                root
            } else {
                new_root
            };
            parent = Some(self.insert_node(item, *counters, parent, root));
        }
        for branch in &mut self.branches {
            if branch.name == target.branch {
                branch.head = parent;
            }
        }
        let head = self.stored_node(parent).map(|stored| stored.node.id);
        if let (Some(head), false) = (head, nodes.is_empty()) {
            let kind = EventKind::Appended {
                branch: target.branch.clone(),
                head,
                count,
            };
            self.record_event(request.at_ms, kind);
        }
        let counters = self.counters_of(parent);
        Appended {
            head,
            first: counters.depth + 1 - count,
            depth: counters.depth,
            messages: counters.messages,
            turns: counters.turns,
            nodes,
            branch: Some(target.branch),
            on_sibling_branch: target.sibling,
            replayed: false,
            blobs,
            versions: Vec::new(),
        }
    }

    fn write_root(&mut self, root: usize, merged: Option<Merged>) -> usize {
        let Some(merged) = merged else { return root };
        self.values.extend(merged.values);
        self.roots.push(merged.root);
        self.roots.len() - 1
    }

    fn insert_node(
        &mut self,
        item: NewItem,
        counters: Counters,
        parent: Option<usize>,
        root: usize,
    ) -> usize {
        let index = self.arena.len();
        self.by_id.insert(item.id, index);
        if let Some(id) = &item.message_id {
            self.by_message.entry(id.clone()).or_default().push(index);
        }
        let node = Node {
            id: item.id,
            parent: self.stored_node(parent).map(|stored| stored.node.id),
            depth: counters.depth,
            messages: counters.messages,
            turns: counters.turns,
            compacted: counters.compacted,
            content_hash: ContentHash::of(item.json.as_bytes()),
            json: item.json,
            kind: item.kind,
            answers: item.answers,
            message_id: item.message_id,
            run: item.run,
            step: item.step,
            response: item.response,
            origin: item.origin,
            audience: item.audience,
            copied_from: item.copied_from,
            meaning_hash: item.meaning_hash,
            created_ms: item.created_ms,
            redacted_ms: None,
        };
        self.arena.push(StoredNode {
            node: Arc::new(node),
            parent,
            root,
        });
        index
    }
}

fn blob_ids(owner: &Owner, request: &AppendRequest) -> Vec<BlobId> {
    let ids = request.blobs.iter();
    ids.map(|bytes| BlobId::of(owner, bytes)).collect()
}
