//! Reading a whole tree: every node that a name reaches, once.

use std::collections::HashMap;
use std::sync::Arc;

use contexture_ir::NodeId;
use contexture_store::{Node, PathEnd, ReadRequest, Refs, Span, read_all_pages};

use crate::append::is_state_node;
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::path::parse_node_item;
use crate::refs::list_refs;

/// Nodes read at a time.
const PAGE: u64 = 1_024;

/// Nodes read to find the newest that says something.
const NEWEST_PAGE: u64 = 16;

/// Nodes with their items, and names. Without the items: [`Conversation::tree`].
#[derive(Debug, Default)]
pub struct ConversationTree {
    /// Parents before children.
    pub nodes: Vec<Arc<Node>>,
    /// The place of each node in `nodes`.
    pub positions: HashMap<NodeId, usize>,
    /// Branches and checkpoints of the conversation.
    pub refs: Refs,
}

/// Reads the tree: from each name back to the first node that is known already.
///
/// # Errors
/// The store's.
pub async fn load_tree(chat: &Conversation) -> Result<ConversationTree, EngineError> {
    let refs = list_refs(chat).await?;
    let branches = refs.branches.iter().filter_map(|branch| branch.head);
    let checkpoints = refs.checkpoints.iter().map(|checkpoint| checkpoint.node);
    let ends: Vec<NodeId> = branches.chain(checkpoints).collect();
    let mut tree = ConversationTree {
        refs,
        ..ConversationTree::default()
    };
    for end in ends {
        if tree.positions.contains_key(&end) {
            continue;
        }
        for node in load_unknown_nodes(chat, end, &tree)
            .await?
            .into_iter()
            .rev()
        {
            tree.positions.insert(node.id, tree.nodes.len());
            tree.nodes.push(node);
        }
    }
    Ok(tree)
}

/// The newest node of this handle's branch that says something: state nodes behind it are passed over. `None` while the
/// branch has none.
///
/// # Errors
/// The store's, or a node is damaged.
pub async fn load_newest_message(chat: &Conversation) -> Result<Option<Arc<Node>>, EngineError> {
    // A few state nodes at most stand behind a message, so one small page is nearly always enough.
    let mut span = Span::Last(NEWEST_PAGE);
    loop {
        let request = ReadRequest {
            at: PathEnd::Branch(chat.branch()),
            span,
            limit: None,
        };
        let store = chat.engine().store();
        let page = read_all_pages(&**store, chat.owner(), chat.id(), request).await?;
        for node in page.nodes.iter().rev() {
            if !is_state_node(&parse_node_item(node)?) {
                return Ok(Some(Arc::clone(node)));
            }
        }
        match page.nodes.first() {
            Some(first) if first.depth > 1 => {
                let to = first.depth - 1;
                span = Span::Between(to.saturating_sub(PAGE - 1).max(1), to);
            }
            _ => return Ok(None),
        }
    }
}

/// The nodes of the path to `end` that are not known, newest first.
async fn load_unknown_nodes(
    chat: &Conversation,
    end: NodeId,
    tree: &ConversationTree,
) -> Result<Vec<Arc<Node>>, EngineError> {
    let mut newest_first = Vec::new();
    let mut span = Span::Last(PAGE);
    loop {
        let request = ReadRequest {
            at: PathEnd::Node(end),
            span,
            limit: None,
        };
        let store = chat.engine().store();
        let page = read_all_pages(&**store, chat.owner(), chat.id(), request).await?;
        for node in page.nodes.iter().rev() {
            // Everything before a known node is known: paths only share beginnings.
            if tree.positions.contains_key(&node.id) {
                return Ok(newest_first);
            }
            newest_first.push(Arc::clone(node));
        }
        match page.nodes.first() {
            Some(first) if first.depth > 1 => {
                let to = first.depth - 1;
                span = Span::Between(to.saturating_sub(PAGE - 1).max(1), to);
            }
            _ => return Ok(newest_first),
        }
    }
}

impl ConversationTree {
    /// How many digits of an id tell it from all others; at least four.
    #[must_use]
    pub fn id_digits(&self) -> usize {
        let mut ids: Vec<String> = self.nodes.iter().map(|node| node.id.to_string()).collect();
        ids.sort_unstable();
        let shared = |pair: &[String]| match pair {
            [a, b] => a.bytes().zip(b.bytes()).take_while(|(a, b)| a == b).count(),
            _ => 0,
        };
        ids.windows(2)
            .map(shared)
            .max()
            .map_or(4, |shared| (shared + 1).max(4))
    }
}
