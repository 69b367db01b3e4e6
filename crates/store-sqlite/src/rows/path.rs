//! Positions of nodes, segments, and the key ranges that a path consists of.
//!
//! A path is found by walking segments, never nodes: from the end's segment to its parent, and so
//! on. Parents have smaller numbers, so each walk ends.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use contexture_ir::NodeId;
use contexture_store::rules::Counters;
use rusqlite::{Connection, OptionalExtension, params};

use crate::error::{RowError, corrupt_error};

/// A node's position in its conversation. Depth 0 is before the first node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodePosition {
    pub(crate) segment: u32,
    pub(crate) depth: u32,
}

/// A position that nodes can be appended to, with what they inherit: a head, any node, or the
/// beginning of an empty path.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Tip {
    pub(crate) position: NodePosition,
    pub(crate) node: Option<NodeId>,
    pub(crate) messages: u32,
    pub(crate) turns: u32,
    pub(crate) compacted: u32,
    pub(crate) root_no: u32,
}

impl Tip {
    /// Returns the position after an item that was just inserted into a segment.
    pub(crate) fn after_item(
        segment: u32,
        node: NodeId,
        counters: &Counters,
        root_no: u32,
    ) -> Self {
        Self {
            position: NodePosition {
                segment,
                depth: small_counter(counters.depth),
            },
            node: Some(node),
            messages: small_counter(counters.messages),
            turns: small_counter(counters.turns),
            compacted: small_counter(counters.compacted),
            root_no,
        }
    }

    /// Returns the counters of the path up to this position.
    pub(crate) fn counters(&self) -> Counters {
        Counters {
            depth: u64::from(self.position.depth),
            messages: u64::from(self.messages),
            turns: u64::from(self.turns),
            compacted: u64::from(self.compacted),
        }
    }
}

/// Converts a counter; none exceeds the number of positions, which is a `u32`.
pub(crate) fn small_counter(counter: u64) -> u32 {
    debug_assert!(u32::try_from(counter).is_ok(), "{counter}");
    u32::try_from(counter).unwrap_or(u32::MAX)
}

/// A stretch of a path: the nodes of these depths have consecutive keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) segment: u32,
    pub(crate) from: u32,
    pub(crate) to: u32,
    /// Sequence number of the node at depth `from`.
    pub(crate) seq: u32,
}

/// Returns the key of row `number` of a conversation.
pub(crate) fn packed_key(conversation: u32, number: u32) -> i64 {
    (i64::from(conversation) << 32) | i64::from(number)
}

/// Returns the first and the last key of a conversation.
pub(crate) fn key_range(conversation: u32) -> (i64, i64) {
    (
        packed_key(conversation, 0),
        packed_key(conversation, u32::MAX),
    )
}

/// A segment's row.
struct Segment {
    parent: u32,
    first_depth: u32,
    first_seq: u32,
}

fn load_segment(conn: &Connection, conversation: u32, number: u32) -> Result<Segment, RowError> {
    let row = conn
        .prepare_cached("SELECT parent_segment, first_depth, first_seq FROM segments WHERE id = ?")?
        .query_row([packed_key(conversation, number)], |row| {
            Ok(Segment {
                parent: row.get(0)?,
                first_depth: row.get(1)?,
                first_seq: row.get(2)?,
            })
        })
        .optional()?;
    let broken = || {
        corrupt_error(format!(
            "conversation {conversation}: segment {number} is missing or wrong"
        ))
    };
    let row = row.ok_or_else(broken)?;
    // Segments are numbered in order of creation, so a parent has a smaller number. Checking it
    // makes every walk end even in a damaged file.
    if row.parent >= number || row.first_depth == 0 {
        return Err(broken());
    }
    Ok(row)
}

/// Finds the nodes before others on their paths, and remembers the segments that it reads.
#[derive(Default)]
pub(crate) struct PathWalker {
    segments: BTreeMap<(u32, u32), Segment>,
}

impl PathWalker {
    /// Returns the key of the node `distance` before a node on its path, if there is one.
    pub(crate) fn find_key_before(
        &mut self,
        conn: &Connection,
        conversation: u32,
        node: NodePosition,
        distance: u32,
    ) -> Result<Option<i64>, RowError> {
        let mut number = node.segment;
        let Some(depth) = node.depth.checked_sub(distance).filter(|depth| *depth > 0) else {
            return Ok(None);
        };
        // Each step leads to a smaller number, which loading a segment checks.
        while number != 0 {
            let segment = match self.segments.entry((conversation, number)) {
                Entry::Occupied(known) => known.into_mut(),
                Entry::Vacant(new) => new.insert(load_segment(conn, conversation, number)?),
            };
            if depth >= segment.first_depth {
                let seq = segment.first_seq + (depth - segment.first_depth);
                return Ok(Some(packed_key(conversation, seq)));
            }
            number = segment.parent;
        }
        Ok(None)
    }
}

/// Returns the stretches of the path to `end` that cover depths `from..=to`, in descending order.
pub(crate) fn load_stretches(
    conn: &Connection,
    conversation: u32,
    end: NodePosition,
    from: u32,
    to: u32,
) -> Result<Vec<Stretch>, RowError> {
    let mut found = Vec::new();
    let (mut number, mut last) = (end.segment, end.depth);
    // Backwards, since a segment only knows its parent. Capacities double, so one branch has about
    // as many segments as its depth has bits.
    while number != 0 && last >= from {
        let row = load_segment(conn, conversation, number)?;
        if row.first_depth <= to && row.first_depth <= last {
            let first = row.first_depth.max(from);
            found.push(Stretch {
                segment: number,
                from: first,
                to: last.min(to),
                seq: row.first_seq + (first - row.first_depth),
            });
        }
        last = row.first_depth - 1;
        number = row.parent;
    }
    Ok(found)
}

/// Returns whether `position` is on the path to `end`.
pub(crate) fn is_on_path(
    conn: &Connection,
    conversation: u32,
    end: NodePosition,
    position: NodePosition,
) -> Result<bool, RowError> {
    let (mut number, mut last) = (end.segment, end.depth);
    // Parents have smaller numbers, so the walk can stop at the segment of the position.
    while number > position.segment {
        let row = load_segment(conn, conversation, number)?;
        last = row.first_depth - 1;
        number = row.parent;
    }
    Ok(number == position.segment && position.depth <= last)
}

/// Inserts a new segment.
pub(crate) fn insert_segment(
    conn: &Connection,
    conversation: u32,
    number: u32,
    parent: NodePosition,
    first_seq: u32,
    capacity: u32,
    branch: u32,
) -> Result<(), RowError> {
    conn.prepare_cached("INSERT INTO segments VALUES (?, ?, ?, ?, ?, ?)")?
        .execute(params![
            packed_key(conversation, number),
            parent.segment,
            parent.depth + 1,
            first_seq,
            capacity,
            branch
        ])?;
    Ok(())
}
