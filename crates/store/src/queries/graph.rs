//! Loads the tree of a conversation, as far as branches and checkpoints reach it.

use std::collections::BTreeMap;

use contexture_ir::{ConversationId, NodeId, Owner};

use crate::contract::{Error, NodeKind, PathEnd, ReadRequest, Refs, Span, Store};

use super::path_pages::PathPages;

/// Tree of a conversation, without the items.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Graph {
    /// Every node that a branch or checkpoint reaches, parents before children.
    pub nodes: Vec<GraphNode>,
    /// Branches and checkpoints of the conversation.
    pub refs: Refs,
}

/// A node without its item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GraphNode {
    /// Id of the node.
    pub id: NodeId,
    /// Node before it on its path; `None` for the first.
    pub parent: Option<NodeId>,
    /// Position on its path, 1 for the first node.
    pub depth: u64,
    /// Kind of its item.
    pub kind: NodeKind,
}

/// Page sizes: small at first, since most names soon meet a known path, then larger.
const FIRST_PAGE: u64 = 8;
const PAGE: u64 = 512;

/// Reads the tree, each node once: from each name back to the first known node.
pub async fn load_graph(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Graph, Error> {
    let refs = store.list_refs(owner, id).await?;
    let branches = refs.branches.iter().filter_map(|branch| branch.head);
    let checkpoints = refs.checkpoints.iter().map(|checkpoint| checkpoint.node);
    let ends: Vec<NodeId> = branches.chain(checkpoints).collect();
    let mut known: BTreeMap<NodeId, GraphNode> = BTreeMap::new();
    let mut nodes = Vec::new();
    for end in ends {
        let fresh = read_unknown_nodes(store, owner, id, end, &known).await?;
        known.extend(fresh.iter().map(|node| (node.id, node.clone())));
        nodes.extend(fresh);
    }
    Ok(Graph { nodes, refs })
}

/// Reads the nodes of the path to `end` that are not known, oldest first.
async fn read_unknown_nodes(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    end: NodeId,
    known: &BTreeMap<NodeId, GraphNode>,
) -> Result<Vec<GraphNode>, Error> {
    let mut newest_first = Vec::new();
    let mut to = u64::MAX;
    let mut count = FIRST_PAGE;
    loop {
        let request = ReadRequest {
            at: PathEnd::Node(end),
            span: match to {
                u64::MAX => Span::Last(count),
                to => Span::Between((to + 1).saturating_sub(count).max(1), to),
            },
            limit: None,
        };
        count = (count * 4).min(PAGE);
        let (mut pages, mut portion) = (PathPages::new(store, owner, id, request), Vec::new());
        // The items of one page at most are in memory.
        while let Some(page) = pages.next().await? {
            portion.extend(page.nodes.iter().map(|node| GraphNode {
                id: node.id,
                parent: node.parent,
                depth: node.depth,
                kind: node.kind,
            }));
        }
        let first = portion.first().map(|first| first.depth);
        for node in portion.into_iter().rev() {
            if known.contains_key(&node.id) {
                newest_first.reverse();
                return Ok(newest_first);
            }
            newest_first.push(node);
        }
        match first {
            Some(first) if first > 1 => to = first - 1,
            _ => break,
        }
    }
    newest_first.reverse();
    Ok(newest_first)
}
