//! Which call an output answers.
//!
//! Ids of calls repeat within real sessions, and parallel calls may even share one. An output answers
//! a call of its id that is still open, of the nearest step before it. Within a step the outputs
//! answer in the order of the calls; where there are fewer outputs than calls of one id, the last
//! calls are the answered ones. Where a step ends the caller says: at the latest at an output.

use std::collections::BTreeMap;

/// Calls by key, those still open step by step.
///
/// ```
/// use contexture_wire::OpenCalls;
///
/// let mut open = OpenCalls::default();
/// open.call("call_1", 0);
/// open.call("call_1", 1);
/// open.end_step();
/// open.answer(&"call_1", 2);
/// open.answer(&"call_1", 3);
/// assert_eq!(open.pairs().collect::<Vec<_>>(), [(0, 2), (1, 3)]);
/// ```
#[derive(Debug)]
pub struct OpenCalls<K> {
    step: usize,
    /// A key stays when all its calls are answered.
    open: BTreeMap<K, Vec<Step>>,
    done: Vec<Step>,
}

/// The calls of one key in one step, and the outputs that answer some of them.
#[derive(Debug)]
struct Step {
    step: usize,
    calls: Vec<usize>,
    outputs: Vec<usize>,
}

/// What an output answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answer {
    /// A call, see [`OpenCalls::pairs`].
    Call,
    /// Calls that all have their outputs already.
    Late,
    /// No call that stands before it.
    Unknown,
}

impl<K> Default for OpenCalls<K> {
    fn default() -> Self {
        Self {
            step: 0,
            open: BTreeMap::new(),
            done: Vec::new(),
        }
    }
}

impl<K: Ord> OpenCalls<K> {
    /// Calls that come now belong to another step.
    pub fn end_step(&mut self) {
        self.step += 1;
    }

    /// A call.
    pub fn call(&mut self, key: K, index: usize) {
        let steps = self.open.entry(key).or_default();
        match steps.last_mut() {
            Some(last) if last.step == self.step => last.calls.push(index),
            _ => steps.push(Step {
                step: self.step,
                calls: vec![index],
                outputs: Vec::new(),
            }),
        }
    }

    /// An output.
    pub fn answer(&mut self, key: &K, index: usize) -> Answer {
        let Some(steps) = self.open.get_mut(key) else {
            return Answer::Unknown;
        };
        let Some(last) = steps.last_mut() else {
            return Answer::Late;
        };
        last.outputs.push(index);
        if last.outputs.len() == last.calls.len() {
            self.done.extend(steps.pop());
        }
        Answer::Call
    }

    /// Each call that was answered, with its output.
    pub fn pairs(self) -> impl Iterator<Item = (usize, usize)> {
        let steps = self
            .done
            .into_iter()
            .chain(self.open.into_values().flatten());
        steps.flat_map(|step| {
            let silent = step.calls.len().saturating_sub(step.outputs.len());
            step.calls.into_iter().skip(silent).zip(step.outputs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls and outputs of one id by their letters; a space ends a step.
    fn check(history: &str, expected: &[(usize, usize)], last: Answer) {
        let mut open = OpenCalls::default();
        let mut answer = Answer::Unknown;
        for (index, letter) in history.chars().enumerate() {
            match letter {
                'c' => open.call("id", index),
                'o' => {
                    open.end_step();
                    answer = open.answer(&"id", index);
                }
                _ => open.end_step(),
            }
        }
        let mut pairs: Vec<_> = open.pairs().collect();
        pairs.sort_unstable();
        assert_eq!((pairs.as_slice(), answer), (expected, last), "{history}");
    }

    #[test]
    fn the_nearest_step_first_and_in_it_the_order_of_the_calls() {
        check("o", &[], Answer::Unknown);
        check("ccoo", &[(0, 2), (1, 3)], Answer::Call);
        check("ccooo", &[(0, 2), (1, 3)], Answer::Late);
        check("cco", &[(1, 2)], Answer::Call);
        check("c ccooo", &[(0, 6), (2, 4), (3, 5)], Answer::Call);
        check("ccoco", &[(1, 2), (3, 4)], Answer::Call);
        check("c co", &[(2, 3)], Answer::Call);
    }
}
