//! A list of which the last part is made anew whenever it grows.

use super::shared_list::SharedList;

/// Values that stay, shared with what was made of them, and behind them those of what may still change.
#[derive(Clone, Debug)]
pub(crate) struct GrowingList<T> {
    settled: SharedList<T>,
    newest: Vec<T>,
}

impl<T> Default for GrowingList<T> {
    fn default() -> Self {
        Self {
            settled: SharedList::default(),
            newest: Vec::new(),
        }
    }
}

impl<T> GrowingList<T> {
    pub(crate) const fn len(&self) -> usize {
        self.settled.len() + self.newest.len()
    }

    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        match at.checked_sub(self.settled.len()) {
            None => self.settled.get(at),
            Some(behind) => self.newest.get(behind),
        }
    }

    /// Takes out what may still change.
    pub(crate) fn clear_newest(&mut self) {
        self.newest.clear();
    }

    pub(crate) fn extend(&mut self, values: impl IntoIterator<Item = T>) {
        self.newest.extend(values);
    }

    /// From now on the first of the newest values stay, as long as they are such.
    pub(crate) fn settle_while(&mut self, is_settled: impl Fn(&T) -> bool) {
        let count = self.newest.iter().take_while(|value| is_settled(value));
        self.settle_all_but(self.newest.len() - count.count());
    }

    /// From now on all values but the last so many stay.
    pub(crate) fn settle_all_but(&mut self, last: usize) {
        let count = self.newest.len().saturating_sub(last);
        for value in self.newest.drain(..count) {
            self.settled.push(value);
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &T> {
        self.iter_from(0)
    }

    pub(crate) fn iter_from(&self, first: usize) -> impl Iterator<Item = &T> {
        let settled = self.settled.len();
        let newest = self.newest.get(first.saturating_sub(settled)..);
        self.settled
            .iter_range(first..settled)
            .chain(newest.unwrap_or_default())
    }

    /// How many values stand before the first for which `is_before` does not hold, if it holds for none behind that one.
    pub(crate) fn partition_point(&self, is_before: impl Fn(&T) -> bool) -> usize {
        match self.settled.partition_point(&is_before) {
            all if all == self.settled.len() => all + self.newest.partition_point(is_before),
            some => some,
        }
    }
}
