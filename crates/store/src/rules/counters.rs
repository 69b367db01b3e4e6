//! Counters: depth, messages and turns of a path, stored with every node so that nothing has to be
//! counted.

use std::collections::BTreeSet;

use contexture_ir::{Audience, MessageId};

use crate::contract::{NewItem, Node, NodeKind};

/// Counts of a path up to and including a node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counters {
    /// Number of nodes.
    pub depth: u64,
    /// Number of messages: distinct message ids among the nodes whose audience is not empty.
    pub messages: u64,
    /// Number of turns: messages whose first node is a message by a person.
    pub turns: u64,
    /// Depth of the newest compaction; 0 without one.
    pub compacted: u64,
}

impl From<&Node> for Counters {
    fn from(node: &Node) -> Self {
        Self {
            depth: node.depth,
            messages: node.messages,
            turns: node.turns,
            compacted: node.compacted,
        }
    }
}

/// Returns the counters after each of `items`, appended after `before`.
///
/// `on_path` holds those of the items' message ids that are already on the path, on nodes whose
/// audience is not empty.
#[must_use]
pub fn counters_after_each(
    before: Counters,
    items: &[NewItem],
    mut on_path: BTreeSet<MessageId>,
) -> Vec<Counters> {
    let mut now = before;
    items
        .iter()
        .map(|item| {
            now.depth += 1;
            // Several nodes of one message (text, then calls) count once; nodes without an audience
            // do not count.
            let is_new = item.audience != Audience::NONE
                && item
                    .message_id
                    .as_ref()
                    .is_none_or(|id| on_path.insert(id.clone()));
            if is_new {
                now.messages += 1;
                now.turns += u64::from(item.kind == NodeKind::User);
            }
            if item.kind == NodeKind::Compaction {
                // Stored with every later node, so that reading since the newest compaction needs
                // no search.
                now.compacted = now.depth;
            }
            now
        })
        .collect()
}

/// Returns whether a node with these counters may follow `before`. Whether its message is new
/// depends on the whole path and is not checked.
#[must_use]
pub fn can_follow(before: &Counters, node: &Node) -> bool {
    let new = node.messages.checked_sub(before.messages);
    // Differences instead of sums: a damaged counter may have any value and must not overflow the
    // check.
    let turned = node.turns.checked_sub(before.turns);
    let is_seen = node.audience != Audience::NONE;
    let compacted = match node.kind {
        NodeKind::Compaction => node.depth,
        _ => before.compacted,
    };
    let turns = match node.kind {
        NodeKind::User => new,
        _ => Some(0),
    };
    node.depth == before.depth + 1
        && (new == Some(0) || (new == Some(1) && is_seen))
        && turned == turns
        && node.compacted == compacted
}
