//! Positions of nodes, segments, and the stretches that a path consists of.
//!
//! A path is found by walking segments, never nodes, and a segment names up to 64 of those before
//! it.

use contexture_ir::NodeId;
use contexture_store::rules::Counters;
use tokio_postgres::Row;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{get_column, get_count, params};
use crate::connection::transaction::Tx;

/// Largest number of earlier segments that a segment names.
const NEAR: usize = 64;

/// A node's position in its conversation. Depth 0 is before the first node.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct NodePosition {
    pub(crate) segment: i32,
    pub(crate) depth: i32,
}

/// First depth of a segment, and the segments before it on its path.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SegmentLineage {
    first_depth: i32,
    /// The last positions on the segments before it, nearest first.
    ancestors: Vec<NodePosition>,
}

/// A position that nodes can be appended to, with what they inherit: a head, any node, or the
/// beginning of an empty path.
#[derive(Clone, Debug, Default)]
pub(crate) struct Tip {
    pub(crate) position: NodePosition,
    pub(crate) node: Option<NodeId>,
    pub(crate) counters: Counters,
    pub(crate) root_no: i32,
    pub(crate) line: SegmentLineage,
}

/// A stretch of a path: these depths are on one segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Stretch {
    pub(crate) segment: i32,
    pub(crate) from: i32,
    pub(crate) to: i32,
}

impl SegmentLineage {
    /// Reads the columns `first_depth`, `ancestors` and `upto` of a segment.
    pub(crate) fn from_row(row: &Row, index: usize, segment: i32) -> Result<Self, RowError> {
        if segment == 0 {
            return Ok(Self::default());
        }
        let broken = || corrupt_error(format!("segment {segment} is missing or wrong"));
        let first_depth: Option<i32> = get_column(row, index)?;
        let segments: Option<Vec<i32>> = get_column(row, index + 1)?;
        let depths: Option<Vec<i32>> = get_column(row, index + 2)?;
        let (Some(first_depth), Some(segments), Some(depths)) = (first_depth, segments, depths)
        else {
            return Err(broken());
        };
        let ancestors = segments.iter().zip(&depths);
        let ancestors: Vec<NodePosition> = ancestors
            .map(|(&segment, &depth)| NodePosition { segment, depth })
            .collect();
        let mut before = NodePosition {
            segment,
            depth: first_depth,
        };
        let follows = ancestors.first().map_or(0, |last| last.depth);
        for &ancestor in &ancestors {
            // Falling numbers make every walk end.
            if ancestor.segment >= before.segment || ancestor.depth >= before.depth {
                return Err(broken());
            }
            before = ancestor;
        }
        // Both lists have one length, the nearest ancestor ends right before this segment, and no
        // number is zero; otherwise the path would have gaps.
        let is_sound = segments.len() == depths.len()
            && follows.checked_add(1) == Some(first_depth)
            && before.segment > 0
            && before.depth > 0;
        if !is_sound {
            return Err(broken());
        }
        Ok(Self {
            first_depth,
            ancestors,
        })
    }

    /// Returns the position before the segment; `None` if the path begins with it.
    /// Returns the position `distance` before a position on this segment, if there is one.
    pub(crate) fn position_before(
        &self,
        here: NodePosition,
        distance: i32,
    ) -> Option<NodePosition> {
        let depth = here
            .depth
            .checked_sub(distance)
            .filter(|depth| *depth > 0)?;
        let segment = if depth >= self.first_depth {
            here.segment
        } else {
            // Ancestors are given with their last depths on the path, nearest first: the last that reaches so far has it.
            let reach = self
                .ancestors
                .iter()
                .take_while(|before| before.depth >= depth);
            reach.last()?.segment
        };
        Some(NodePosition { segment, depth })
    }

    pub(crate) fn parent_position(&self) -> Option<NodePosition> {
        self.ancestors.first().copied()
    }

    /// Returns the lineage of a segment that begins after this position.
    pub(crate) fn child_lineage(&self, position: NodePosition) -> Self {
        let mut ancestors = Vec::new();
        if position.segment != 0 {
            ancestors.push(position);
            // Bounded, because with a fork at every node the lists would grow with the square of
            // the depth. Longer paths take several queries.
            ancestors.extend(self.ancestors.iter().take(NEAR - 1));
        }
        Self {
            first_depth: position.depth + 1,
            ancestors,
        }
    }
}

impl Tip {
    /// Reads the columns `segment`, `depth`, `messages`, `turns`, `compacted`, `root_no`, and then
    /// those of [`SegmentLineage::from_row`].
    pub(crate) fn from_row(
        row: &Row,
        index: usize,
        node: Option<NodeId>,
    ) -> Result<Self, RowError> {
        let position = NodePosition {
            segment: get_column(row, index)?,
            depth: get_column(row, index + 1)?,
        };
        Ok(Self {
            position,
            node,
            counters: Counters {
                depth: get_count(row, index + 1)?,
                messages: get_count(row, index + 2)?,
                turns: get_count(row, index + 3)?,
                compacted: get_count(row, index + 4)?,
            },
            root_no: get_column(row, index + 5)?,
            line: SegmentLineage::from_row(row, index + 6, position.segment)?,
        })
    }

    /// Returns the stretches of the path to here that cover depths `from` and later, in descending
    /// order.
    pub(crate) async fn load_stretches(
        &self,
        tx: &Tx<'_>,
        key: [u8; 16],
        from: i32,
    ) -> Result<Vec<Stretch>, RowError> {
        let from = from.max(1);
        let mut found = Vec::new();
        let (mut here, mut line) = (self.position, self.line.clone());
        while here.segment != 0 && here.depth >= from {
            for before in &line.ancestors {
                found.push(Stretch {
                    segment: here.segment,
                    from: from.max(before.depth + 1),
                    to: here.depth,
                });
                // The wanted range begins on this segment, so earlier ancestors are not needed.
                if before.depth < from {
                    return Ok(found);
                }
                here = *before;
            }
            if line.ancestors.len() < NEAR {
                // The list is complete: the path begins on its last segment.
                found.push(Stretch {
                    segment: here.segment,
                    from,
                    to: here.depth,
                });
                return Ok(found);
            }
            // One more query for each 64 segments of a path; most paths need none.
            line = load_lineage(tx, key, here.segment).await?;
        }
        Ok(found)
    }
}

/// Returns whether `position` is on a path whose stretches were all loaded.
pub(crate) fn is_on_path(path: &[Stretch], position: NodePosition) -> bool {
    let on = path.iter().find(|on| on.segment == position.segment);
    on.is_some_and(|on| (on.from..=on.to).contains(&position.depth))
}

async fn load_lineage(
    tx: &Tx<'_>,
    key: [u8; 16],
    segment: i32,
) -> Result<SegmentLineage, RowError> {
    let row = tx
        .query_row(
            "SELECT first_depth, ancestors, upto FROM contexture.segments \
             WHERE conversation = $1 AND segment = $2",
            params![key, segment],
        )
        .await?;
    let row = row.ok_or_else(|| corrupt_error(format!("segment {segment} is missing")))?;
    SegmentLineage::from_row(&row, 0, segment)
}

/// Inserts a segment that begins after `tip`; returns its lineage.
pub(crate) fn insert_segment(
    tx: &mut Tx<'_>,
    key: [u8; 16],
    segment: i32,
    tip: &Tip,
    branch: i32,
) -> SegmentLineage {
    let line = tip.line.child_lineage(tip.position);
    let segments: Vec<i32> = line.ancestors.iter().map(|at| at.segment).collect();
    let depths: Vec<i32> = line.ancestors.iter().map(|at| at.depth).collect();
    tx.execute_on_commit(
        "INSERT INTO contexture.segments \
         (conversation, segment, first_depth, branch, ancestors, upto) \
         VALUES ($1, $2, $3, $4, $5, $6)",
        params![key, segment, line.first_depth, branch, segments, depths],
    );
    line
}
