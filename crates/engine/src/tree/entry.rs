//! Nodes gathered to messages.
//!
//! An entry is a stretch of nodes of one message, one after the other, in whose inside nothing
//! branches and no name points. So a message that was branched in its middle shows as two entries.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

use contexture_ir::NodeId;
use contexture_store::{Node, NodeKind};

use super::load::ConversationTree;
use crate::append::is_state_node;
use crate::path::parse_node_item;

/// One line of the drawing.
#[derive(Debug)]
pub struct TreeEntry {
    /// Its nodes, oldest first; never empty.
    pub nodes: Vec<Arc<Node>>,
    /// The entry before it.
    pub parent: Option<usize>,
    /// The entries after it.
    pub children: Vec<usize>,
    /// Branches whose head it is, the active one first.
    pub branches: Vec<String>,
    /// Checkpoints that point to it.
    pub checkpoints: Vec<String>,
    /// Whether the active branch ends here.
    pub active: bool,
    /// Whether something of it is pinned: see [`TreeEntries::mark_pinned`].
    pub pinned: bool,
}

impl TreeEntry {
    /// The roles of messages. A message with nodes of several has the first of theirs.
    pub const ROLES: [&'static str; 6] =
        ["user", "assistant", "system", "compaction", "tool", "other"];

    /// The newest node: what names point to.
    #[must_use]
    pub fn head(&self) -> Option<&Arc<Node>> {
        self.nodes.last()
    }

    /// Who speaks: one of [`Self::ROLES`].
    #[must_use]
    pub fn role(&self) -> &'static str {
        let [user, assistant, system, compaction, tool, other] = Self::ROLES;
        let rank = |node: &&Arc<Node>| match node.kind {
            NodeKind::User => (0, user),
            NodeKind::Assistant | NodeKind::FunctionCall | NodeKind::Reasoning => (1, assistant),
            NodeKind::Instruction => (2, system),
            NodeKind::Compaction => (3, compaction),
            NodeKind::FunctionCallOutput => (4, tool),
            _ => (5, other),
        };
        let first = self.nodes.iter().min_by_key(rank);
        first.map_or(other, |node| rank(&node).1)
    }

    /// How many functions were called.
    #[must_use]
    pub fn call_count(&self) -> u64 {
        let calls = self
            .nodes
            .iter()
            .filter(|node| node.kind == NodeKind::FunctionCall);
        calls.count() as u64
    }

    /// Whether nothing but its text is to be seen: no name, no pin, no fork.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        !self.is_named() && !self.pinned && self.children.len() < 2
    }

    fn is_named(&self) -> bool {
        !(self.branches.is_empty() && self.checkpoints.is_empty())
    }

    /// Whether it says nothing and only changes the state of the conversation.
    fn is_state_row(&self) -> bool {
        self.nodes.iter().all(|node| {
            // Only such items are parsed: all others are messages by their kind. One that is damaged is shown, and told of there.
            node.kind == NodeKind::Extension
                && parse_node_item(node).is_ok_and(|item| is_state_node(&item))
        })
    }

    /// Takes the names that point to a row that is not shown.
    fn take_names(&mut self, hidden: Self) {
        // The active branch stays the first.
        let place = if hidden.active {
            0
        } else {
            self.branches.len()
        };
        self.branches.splice(place..place, hidden.branches);
        self.checkpoints.extend(hidden.checkpoints);
        self.active |= hidden.active;
    }
}

/// The entries of a tree, parents before children.
#[derive(Debug, Default)]
pub struct TreeEntries(pub Vec<TreeEntry>);

impl TreeEntries {
    /// Gathers the nodes of a tree.
    #[must_use]
    pub fn from_tree(tree: &ConversationTree) -> Self {
        let mut children: HashMap<NodeId, usize> = HashMap::new();
        for parent in tree.nodes.iter().filter_map(|node| node.parent) {
            *children.entry(parent).or_default() += 1;
        }
        let named = Self::names_by_node(tree);
        let mut entries: Vec<TreeEntry> = Vec::new();
        let mut entry_of: HashMap<NodeId, usize> = HashMap::new();
        for node in &tree.nodes {
            let parent = node
                .parent
                .and_then(|parent| entry_of.get(&parent).copied());
            // A node that has a name or several children must end its entry, so that the drawing can show it.
            let joins = parent.filter(|&parent| {
                let last = entries.get(parent).and_then(|entry| entry.nodes.last());
                last.is_some_and(|last| {
                    Some(last.id) == node.parent
                        && last.effective_message_id() == node.effective_message_id()
                        && children.get(&last.id) == Some(&1)
                        && !named.contains_key(&last.id)
                })
            });
            let place = joins.unwrap_or(entries.len());
            entry_of.insert(node.id, place);
            if let Some(entry) = joins.and_then(|place| entries.get_mut(place)) {
                entry.nodes.push(Arc::clone(node));
                continue;
            }
            if let Some(parent) = parent.and_then(|parent| entries.get_mut(parent)) {
                parent.children.push(place);
            }
            entries.push(TreeEntry {
                nodes: vec![Arc::clone(node)],
                parent,
                children: Vec::new(),
                branches: Vec::new(),
                checkpoints: Vec::new(),
                active: false,
                pinned: false,
            });
        }
        for (node, names) in named {
            if let Some(entry) = entry_of
                .get(&node)
                .and_then(|place| entries.get_mut(*place))
            {
                entry.branches = names.branches;
                entry.checkpoints = names.checkpoints;
                entry.active = names.active;
            }
        }
        Self(entries)
    }

    /// Without the rows that only change state (a pin, a run, options). A name that points to one stands on the message before
    /// it; one before the first message stays a row of its own if it has a name.
    #[must_use]
    pub fn without_state_rows(self) -> Self {
        let mut shown: Vec<TreeEntry> = Vec::with_capacity(self.0.len());
        // By old place: the new one, of a row that is left out that of the message before it.
        let mut places: Vec<Option<usize>> = Vec::with_capacity(self.0.len());
        for mut entry in self.0 {
            let parent = entry.parent.and_then(|parent| *places.get(parent)?);
            if entry.is_state_row() && (parent.is_some() || !entry.is_named()) {
                if let Some(before) = parent.and_then(|parent| shown.get_mut(parent)) {
                    before.take_names(entry);
                }
                places.push(parent);
                continue;
            }
            let place = shown.len();
            if let Some(before) = parent.and_then(|parent| shown.get_mut(parent)) {
                before.children.push(place);
            }
            (entry.parent, entry.children) = (parent, Vec::new());
            shown.push(entry);
            places.push(Some(place));
        }
        Self(shown)
    }

    /// Marks the entries that have one of these nodes: those of [`Conversation::pins`](crate::Conversation::pins).
    pub fn mark_pinned(&mut self, pins: &BTreeSet<NodeId>) {
        for entry in &mut self.0 {
            entry.pinned = entry.nodes.iter().any(|node| pins.contains(&node.id));
        }
    }

    fn names_by_node(tree: &ConversationTree) -> HashMap<NodeId, NodeNames> {
        let mut named: HashMap<NodeId, NodeNames> = HashMap::new();
        for branch in &tree.refs.branches {
            let Some(head) = branch.head else { continue };
            let names = named.entry(head).or_default();
            if branch.active {
                names.active = true;
                names.branches.insert(0, branch.name.to_string());
            } else {
                names.branches.push(branch.name.to_string());
            }
        }
        for checkpoint in &tree.refs.checkpoints {
            let names = named.entry(checkpoint.node).or_default();
            names.checkpoints.push(checkpoint.name.to_string());
        }
        named
    }
}

#[derive(Debug, Default)]
struct NodeNames {
    branches: Vec<String>,
    checkpoints: Vec<String>,
    active: bool,
}
