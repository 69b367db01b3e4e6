//! Ranges of depths: what a read covers, where a page ends, and from where on a path includes a redacted node.

use crate::contract::{ReadRequest, Span};

use super::counters::Counters;

/// Depths to read: `from..=to`, empty if `from > to`, and where the next page begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DepthRange {
    /// The first depth.
    pub from: u64,
    /// The last depth.
    pub to: u64,
    /// First depth of the next page; `None` if the limit left nothing out.
    pub next: Option<u64>,
}

/// Counts the bytes of a page while what it has is read: nodes of a path, values outside the tree.
///
/// ```
/// use contexture_store::rules::PageBytes;
///
/// let mut page = PageBytes::new(10);
/// assert!(page.take(25), "the first is always part of the page");
/// assert!(!page.take(1));
/// ```
#[derive(Clone, Copy, Debug)]
pub struct PageBytes {
    left: usize,
    is_empty: bool,
}

impl PageBytes {
    /// Counts for a page of at most `limit` bytes.
    #[must_use]
    pub fn new(limit: usize) -> Self {
        Self {
            left: limit,
            is_empty: true,
        }
    }

    /// Returns whether what comes next, of so many bytes, is part of the page. Otherwise the next page begins with it.
    pub fn take(&mut self, bytes: usize) -> bool {
        let fits = bytes <= self.left;
        let is_taken = fits || self.is_empty;
        self.left = self.left.saturating_sub(bytes);
        self.is_empty = false;
        is_taken
    }
}

/// Returns the depths that `request` covers on a path whose end has these counters.
#[must_use]
pub fn depth_range(request: &ReadRequest, end: &Counters) -> DepthRange {
    let depth = end.depth;
    let (from, to) = match request.span {
        Span::Whole => (1, depth),
        Span::Last(count) => (depth.saturating_sub(count) + 1, depth),
        Span::From(from) => (from.max(1), depth),
        Span::Between(from, to) => (from.max(1), to.min(depth)),
        // Includes the compaction itself, which summarizes everything before it.
        Span::SinceCompaction => (end.compacted.max(1), depth),
    };
    let Some(limit) = request.limit else {
        return DepthRange {
            from,
            to,
            next: None,
        };
    };
    // Pages of a path are read forwards, so a cursor stays valid when the head moves.
    let end = from.saturating_add(limit as u64);
    if end > to {
        return DepthRange {
            from,
            to,
            next: None,
        };
    }
    DepthRange {
        from,
        to: end - 1,
        next: Some(end),
    }
}

/// Largest number of nodes that a point read of a path asks for.
const FEW_NODES: u64 = 64;

/// Returns whether a request asks for more nodes than a point read should: whole conversations, exports, large pages. A backend
/// lets these wait for each other and not for look-ups, nor look-ups for them.
#[must_use]
pub fn reads_many_nodes(request: &ReadRequest) -> bool {
    let in_span = match request.span {
        Span::Last(count) => count,
        Span::Between(from, to) => to.saturating_add(1).saturating_sub(from),
        // How long the path is turns out while it is read.
        Span::Whole | Span::From(_) | Span::SinceCompaction => u64::MAX,
    };
    let limit = request.limit.map_or(u64::MAX, |limit| limit as u64);
    in_span.min(limit) > FEW_NODES
}

/// Returns the smallest depth at which a path contains one of some positions. `path` is a list of
/// stretches `(segment, from, to)`, positions are `(segment, depth)`. A response computed from that
/// depth or a later one on the path has seen the node.
#[must_use]
pub fn first_on_path<N: Copy + Ord>(path: &[(N, N, N)], places: &[(N, N)]) -> Option<N> {
    let on_path = |(segment, depth): &&(N, N)| {
        let mut stretches = path.iter();
        stretches.any(|(of, from, to)| of == segment && from <= depth && depth <= to)
    };
    places.iter().filter(on_path).map(|(_, depth)| *depth).min()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::PathEnd;
    use contexture_ir::BranchName;

    #[test]
    fn spans_stay_on_the_path() {
        let check_on = |compacted, span, limit, expected: (u64, u64, Option<u64>)| {
            let request = ReadRequest {
                at: PathEnd::Branch(BranchName::main()),
                span,
                limit,
            };
            let end = Counters {
                depth: 10,
                compacted,
                ..Counters::default()
            };
            let got = depth_range(&request, &end);
            assert_eq!((got.from, got.to, got.next), expected, "{span:?} {limit:?}");
        };
        let check = |span, limit, expected| check_on(4, span, limit, expected);
        check(Span::SinceCompaction, None, (4, 10, None));
        check(Span::SinceCompaction, Some(2), (4, 5, Some(6)));
        check_on(0, Span::SinceCompaction, None, (1, 10, None));
        check(Span::Whole, None, (1, 10, None));
        check(Span::Whole, Some(4), (1, 4, Some(5)));
        check(Span::Whole, Some(10), (1, 10, None));
        check(Span::Last(3), None, (8, 10, None));
        check(Span::Last(30), None, (1, 10, None));
        check(Span::Last(0), None, (11, 10, None));
        check(Span::From(0), Some(usize::MAX), (1, 10, None));
        check(Span::From(12), Some(1), (12, 10, None));
        check(Span::Between(3, 99), Some(2), (3, 4, Some(5)));
        check(Span::Between(5, 4), None, (5, 4, None));
        check(Span::From(3), Some(0), (3, 2, Some(3)));
    }

    #[test]
    fn large_pages_are_no_point_reads() {
        let check = |span, limit, expected| {
            let at = PathEnd::Branch(BranchName::main());
            let request = ReadRequest { at, span, limit };
            assert_eq!(reads_many_nodes(&request), expected, "{span:?} {limit:?}");
        };
        check(Span::Whole, None, true);
        check(Span::Whole, Some(64), false);
        check(Span::From(9), Some(65), true);
        check(Span::Last(1), None, false);
        check(Span::Last(65), None, true);
        check(Span::Last(65), Some(10), false);
        check(Span::Between(101, 164), None, false);
        check(Span::Between(101, 165), None, true);
        check(Span::Between(0, u64::MAX), None, true);
        check(Span::Between(u64::MAX, 0), None, false);
        check(Span::SinceCompaction, None, true);
    }

    #[test]
    fn a_place_counts_where_the_path_passes_it() {
        let path = [(3, 5, 9), (1, 1, 4)];
        assert_eq!(first_on_path(&path, &[(3, 7), (1, 4)]), Some(4));
        assert_eq!(first_on_path(&path, &[(3, 9)]), Some(9));
        assert_eq!(first_on_path(&path, &[(1, 5), (2, 3), (3, 10)]), None);
    }
}
