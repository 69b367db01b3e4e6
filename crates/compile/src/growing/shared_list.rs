//! A list that grows at its end and is shared with what was made of it.
//!
//! A clone is a picture of the list as it is: it costs a few dozen counters, however long the list, and goes on holding
//! what it held. The older part is a tree of full nodes that never change.

use std::ops::Range;
use std::slice;
use std::sync::Arc;

/// How many values a leaf has, and how many nodes a branch: large enough that a million values are four levels, small
/// enough that copying the open part costs nothing that shows.
const FAN: usize = 32;

/// Values that are only ever added at the end.
#[derive(Clone, Debug)]
pub(crate) struct SharedList<T> {
    /// Full nodes that are no part of a larger one yet: leaves first, at most `FAN - 1` of each level.
    levels: Vec<Vec<SharedNode<T>>>,
    /// Fewer than `FAN` values that are no leaf yet.
    open: Vec<T>,
    len: usize,
}

/// A full node.
#[derive(Debug)]
pub(crate) enum SharedNode<T> {
    Leaf(Arc<[T]>),
    /// Nodes, and how many values each of them has.
    Branch(Arc<[Self]>, usize),
}

// Not derived: a node can be cloned whatever its values are.
impl<T> Clone for SharedNode<T> {
    fn clone(&self) -> Self {
        match self {
            Self::Leaf(values) => Self::Leaf(Arc::clone(values)),
            Self::Branch(nodes, each) => Self::Branch(Arc::clone(nodes), *each),
        }
    }
}

impl<T> Default for SharedList<T> {
    fn default() -> Self {
        Self {
            levels: Vec::new(),
            open: Vec::new(),
            len: 0,
        }
    }
}

impl<T> SharedNode<T> {
    /// How many values it has.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Leaf(values) => values.len(),
            Self::Branch(nodes, each) => nodes.len() * each,
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        let (mut node, mut at) = (self, at);
        loop {
            match node {
                Self::Leaf(values) => return values.get(at),
                Self::Branch(nodes, each) => (node, at) = (nodes.get(at / each)?, at % each),
            }
        }
    }
}

impl<T> SharedList<T> {
    pub(crate) const fn len(&self) -> usize {
        self.len
    }

    pub(crate) fn push(&mut self, value: T) {
        self.len += 1;
        self.open.push(value);
        if self.open.len() < FAN {
            return;
        }
        let mut node = SharedNode::Leaf(std::mem::take(&mut self.open).into());
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let Some(own) = self.levels.get_mut(level) else {
                return;
            };
            let each = node.len();
            own.push(node);
            if own.len() < FAN {
                return;
            }
            node = SharedNode::Branch(std::mem::take(own).into(), each);
        }
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        let mut at = at;
        // All nodes of a level have as many values.
        for level in self.levels.iter().rev() {
            let each = level.first().map_or(1, SharedNode::len);
            if at < level.len() * each {
                return level.get(at / each)?.get(at % each);
            }
            at -= level.len() * each;
        }
        self.open.get(at)
    }

    pub(crate) fn last(&self) -> Option<&T> {
        // The open part has it, but for one moment in `FAN`.
        self.open
            .last()
            .or_else(|| self.get(self.len.checked_sub(1)?))
    }

    /// The full nodes in the order of their values.
    pub(crate) fn full_nodes(&self) -> impl Iterator<Item = &SharedNode<T>> {
        self.levels.iter().rev().flatten()
    }

    pub(crate) fn iter_range(&self, range: Range<usize>) -> impl Iterator<Item = &T> {
        let (mut end, mut parts) = (0, Vec::new());
        for node in self.full_nodes() {
            let begin = end;
            end += node.len();
            let own = range.start.max(begin)..range.end.min(end);
            if own.start < own.end {
                parts.push(SharedIter::new(node, own.start - begin..own.end - begin));
            }
        }
        let own = range.start.max(end)..range.end.min(self.len).max(range.start.max(end));
        let open = self.open.get(own.start - end..own.end - end);
        parts.into_iter().flatten().chain(open.unwrap_or_default())
    }

    /// How many values stand before the first for which `is_before` does not hold, if it holds for none behind that one.
    pub(crate) fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        let (mut low, mut high) = (0, self.len);
        while low < high {
            let middle = low.midpoint(high);
            match self.get(middle).is_some_and(&is_before) {
                true => low = middle + 1,
                false => high = middle,
            }
        }
        low
    }
}

/// The values of a range of a node, in order.
#[derive(Debug)]
pub(crate) struct SharedIter<'a, T> {
    /// What is still to be read, the next at the end.
    rest: Vec<(&'a SharedNode<T>, Range<usize>)>,
    leaf: slice::Iter<'a, T>,
}

impl<'a, T> SharedIter<'a, T> {
    pub(crate) fn new(node: &'a SharedNode<T>, range: Range<usize>) -> Self {
        Self {
            rest: vec![(node, range)],
            leaf: [].iter(),
        }
    }

    /// Goes on to the next leaf; `None` if there is none.
    fn open_next_leaf(&mut self) -> Option<()> {
        loop {
            match self.rest.pop()? {
                (SharedNode::Leaf(values), range) => {
                    self.leaf = values.get(range).unwrap_or_default().iter();
                    return Some(());
                }
                (SharedNode::Branch(nodes, each), range) => {
                    let first = range.start / each;
                    let own = nodes.iter().enumerate().skip(first).rev();
                    self.rest.extend(own.filter_map(|(at, node)| {
                        let begin = at * each;
                        let part = range.start.max(begin)..range.end.min(begin + each);
                        (part.start < part.end)
                            .then(|| (node, part.start - begin..part.end - begin))
                    }));
                }
            }
        }
    }
}

impl<'a, T> Iterator for SharedIter<'a, T> {
    type Item = &'a T;

    fn next(&mut self) -> Option<&'a T> {
        loop {
            if let Some(value) = self.leaf.next() {
                return Some(value);
            }
            self.open_next_leaf()?;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_clone_keeps_what_it_held_and_ranges_are_read_in_order() {
        let mut list = SharedList::default();
        let mut pictures = Vec::new();
        for value in 0..FAN * FAN * 2 + FAN * 3 + 5 {
            if value % 777 == 0 {
                pictures.push(list.clone());
            }
            list.push(value);
            assert_eq!(list.last(), Some(&value));
        }
        for picture in pictures.iter().chain([&list]) {
            let len = picture.len();
            assert!(picture.iter_range(0..len).copied().eq(0..len));
            for from in [0, 1, FAN, FAN + 1, FAN * FAN, len / 2, len] {
                for to in [0, 1, FAN, len / 2, len.saturating_sub(1), len, len + 9] {
                    let expected = from..to.min(len);
                    assert!(
                        picture.iter_range(from..to).copied().eq(expected),
                        "{from}..{to} of {len}"
                    );
                }
                assert_eq!(picture.get(from).copied(), (from < len).then_some(from));
                assert_eq!(
                    picture.partition_point(|value| *value < from),
                    from.min(len)
                );
            }
        }
    }
}
