//! Sums over ranges of a list that grows and shrinks at its end.

use std::ops::Range;

/// How many sums one sum of the next level is made of.
const FAN: usize = 32;

/// What can be summed in any order: the empty value adds nothing.
pub(crate) trait Totals: Clone + Default {
    /// Adds what another part has.
    fn add(&mut self, other: &Self);
}

/// The totals of a list's values, and those of every full group of [`FAN`] of them, of [`FAN`] groups, and so on.
#[derive(Clone, Debug)]
pub(crate) struct RangeSums<T> {
    /// The values first; each level sums up the one before.
    levels: Vec<Vec<T>>,
}

impl<T> Default for RangeSums<T> {
    fn default() -> Self {
        Self { levels: Vec::new() }
    }
}

impl<T: Totals> RangeSums<T> {
    /// How many values there are.
    pub(crate) fn len(&self) -> usize {
        self.levels.first().map_or(0, Vec::len)
    }

    /// The totals of one value.
    pub(crate) fn get(&self, at: usize) -> Option<&T> {
        self.levels.first()?.get(at)
    }

    /// Adds a value at the end.
    pub(crate) fn push(&mut self, value: T) {
        let mut value = value;
        for level in 0.. {
            if self.levels.len() == level {
                self.levels.push(Vec::new());
            }
            let Some(own) = self.levels.get_mut(level) else {
                return;
            };
            own.push(value);
            if own.len() % FAN != 0 {
                return;
            }
            // A full group becomes one value of the next level.
            let group = own.get(own.len() - FAN..).unwrap_or_default();
            value = sum_of(group);
        }
    }

    /// Takes all values behind the first so many out.
    pub(crate) fn truncate(&mut self, len: usize) {
        let mut len = len;
        for level in &mut self.levels {
            level.truncate(len);
            len /= FAN;
        }
    }

    /// The totals of a range; what is outside of the list adds nothing.
    pub(crate) fn sum(&self, range: Range<usize>) -> T {
        let (mut from, mut to) = (range.start, range.end.min(self.len()));
        let mut sum = T::default();
        for level in &self.levels {
            // Values of no full group, at both ends; what is between is summed up in the next level.
            let first = from.next_multiple_of(FAN).min(to);
            let last = (to / FAN * FAN).max(first);
            let ends = [level.get(from..first), level.get(last..to)];
            for value in ends.into_iter().flatten().flatten() {
                sum.add(value);
            }
            if first >= last {
                break;
            }
            (from, to) = (first / FAN, last / FAN);
        }
        sum
    }
}

fn sum_of<T: Totals>(values: &[T]) -> T {
    let mut sum = T::default();
    values.iter().for_each(|value| sum.add(value));
    sum
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Clone, Debug, Default, PartialEq)]
    struct Count(usize);

    impl Totals for Count {
        fn add(&mut self, other: &Self) {
            self.0 += other.0;
        }
    }

    #[test]
    fn every_range_has_the_sum_of_its_values() {
        let mut sums = RangeSums::default();
        // Grown, cut and grown again, so that no sum of a cut group is left.
        for (until, cut) in [(40, 7), (1_100, 1_023), (2_200, 2_200)] {
            while sums.len() < until {
                sums.push(Count(sums.len() * 3 + until));
            }
            sums.truncate(cut);
            assert_eq!(sums.len(), cut);
        }
        let values: Vec<usize> = (0..sums.len()).map(|at| sums.get(at).unwrap().0).collect();
        let places = [
            0, 1, 5, 31, 32, 33, 64, 1_000, 1_023, 1_024, 1_056, 2_199, 2_200,
        ];
        for from in places {
            for to in places {
                let expected = values.get(from..to).unwrap_or_default().iter().sum();
                assert_eq!(sums.sum(from..to), Count(expected), "{from}..{to}");
            }
        }
        assert_eq!(sums.sum(2_000..9_999), sums.sum(2_000..2_200));
    }
}
