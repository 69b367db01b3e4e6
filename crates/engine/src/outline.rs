//! Which items a path has, by node and hash: so that a link is looked up without reading the path again.
//!
//! A handle keeps the outline of the path it looked at last: 32 bytes a node, looked through from the newest on,
//! which takes microseconds for thousands of nodes. What came since is read from the store, and after a rewind or on
//! another branch as much as differs. A redaction gives a node another hash, which an outline does not see: what is not
//! found, or is not what it was, is looked for in the path itself.
//!
//! Not here: reading paths.

use contexture_ir::{ContentHash, NodeId};
use contexture_store::Node;

/// The nodes of a path with their hashes: the first has depth 1.
#[derive(Debug, Default)]
pub(crate) struct Outline {
    nodes: Vec<(NodeId, ContentHash)>,
}

impl Outline {
    /// Whether it holds no path.
    pub(crate) const fn is_empty(&self) -> bool {
        self.nodes.is_empty()
    }

    /// Whether it holds the path up to this node.
    pub(crate) fn has(&self, node: &Node) -> bool {
        let at = usize::try_from(node.depth.saturating_sub(1)).unwrap_or(usize::MAX);
        self.nodes.get(at).is_some_and(|(id, _)| *id == node.id)
    }

    /// The newest node with this hash.
    pub(crate) fn newest(&self, hash: ContentHash) -> Option<NodeId> {
        let mut nodes = self.nodes.iter().rev();
        nodes.find(|(_, own)| *own == hash).map(|(id, _)| *id)
    }

    /// Keeps so many nodes, and puts these, the newest first, behind them.
    pub(crate) fn go_on(&mut self, kept: u64, newest_first: Vec<(NodeId, ContentHash)>) {
        self.nodes
            .truncate(usize::try_from(kept).unwrap_or(usize::MAX));
        self.nodes.extend(newest_first.into_iter().rev());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn id(word: &str) -> NodeId {
        NodeId::derive("node", &[word.as_bytes()])
    }

    fn hash(word: &str) -> ContentHash {
        ContentHash::of(word.as_bytes())
    }

    #[test]
    fn an_outline_goes_on_where_paths_part() {
        let mut outline = Outline::default();
        let entry = |word: &str, says: &str| (id(word), hash(says));
        outline.go_on(0, vec![entry("c", "x"), entry("b", "y"), entry("a", "x")]);
        assert_eq!(outline.newest(hash("x")), Some(id("c")));
        outline.go_on(1, vec![entry("d", "y")]);
        assert_eq!(outline.newest(hash("x")), Some(id("a")));
        assert_eq!(outline.newest(hash("y")), Some(id("d")));
        assert_eq!(outline.newest(hash("z")), None);
        assert_eq!(outline.nodes.len(), 2);
    }
}
