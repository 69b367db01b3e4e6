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
/// open.add_call("call_1", 0);
/// open.add_call("call_1", 1);
/// open.end_step();
/// open.match_output(&"call_1", 2);
/// open.match_output(&"call_1", 3);
/// assert_eq!(open.into_pairs().collect::<Vec<_>>(), [(0, 2), (1, 3)]);
/// ```
#[derive(Debug)]
pub struct OpenCalls<K> {
    step: usize,
    /// Steps with unanswered calls, by key, oldest first; a key stays when all its calls are answered.
    open: BTreeMap<K, Vec<StepCalls>>,
    done: Vec<StepCalls>,
}

/// The calls of one key in one step, and the outputs that answer some of them.
#[derive(Debug)]
struct StepCalls {
    step: usize,
    calls: Vec<usize>,
    outputs: Vec<usize>,
}

/// The result of matching an output with the calls before it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputMatch {
    /// The output answers a call; [`OpenCalls::into_pairs`] tells which.
    Call,
    /// All calls of the key have their outputs already.
    Late,
    /// No call of the key stands before the output.
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
    /// Ends the step: calls that are added from now on belong to the next one.
    pub fn end_step(&mut self) {
        self.step += 1;
    }

    /// Adds a call to the current step, with its index in the history.
    pub fn add_call(&mut self, key: K, index: usize) {
        let steps = self.open.entry(key).or_default();
        match steps.last_mut() {
            Some(last) if last.step == self.step => last.calls.push(index),
            // An id may come back many steps later; those calls are answered before the older ones.
            _ => steps.push(StepCalls {
                step: self.step,
                calls: vec![index],
                outputs: Vec::new(),
            }),
        }
    }

    /// Matches an output with an unanswered call of its key, in the nearest step before it that has one.
    pub fn match_output(&mut self, key: &K, index: usize) -> OutputMatch {
        let Some(steps) = self.open.get_mut(key) else {
            return OutputMatch::Unknown;
        };
        let Some(last) = steps.last_mut() else {
            return OutputMatch::Late;
        };
        last.outputs.push(index);
        // A full step is closed, so that a further output of this id goes to the next older step
        // that still has open calls.
        if last.outputs.len() == last.calls.len() {
            self.done.extend(steps.pop());
        }
        OutputMatch::Call
    }

    /// Returns the indices of each answered call and of its output.
    pub fn into_pairs(self) -> impl Iterator<Item = (usize, usize)> {
        let steps = self
            .done
            .into_iter()
            .chain(self.open.into_values().flatten());
        steps.flat_map(|step| {
            // Fewer outputs than calls of one id: a client that retried a call answers the last
            // attempts, so the first ones stay unanswered.
            let silent = step.calls.len().saturating_sub(step.outputs.len());
            step.calls.into_iter().skip(silent).zip(step.outputs)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls and outputs of one id by their letters; a space ends a step.
    fn check(history: &str, expected: &[(usize, usize)], last: OutputMatch) {
        let mut open = OpenCalls::default();
        let mut answer = OutputMatch::Unknown;
        for (index, letter) in history.chars().enumerate() {
            match letter {
                'c' => open.add_call("id", index),
                'o' => {
                    open.end_step();
                    answer = open.match_output(&"id", index);
                }
                _ => open.end_step(),
            }
        }
        let mut pairs: Vec<_> = open.into_pairs().collect();
        pairs.sort_unstable();
        assert_eq!((pairs.as_slice(), answer), (expected, last), "{history}");
    }

    #[test]
    fn the_nearest_step_first_and_in_it_the_order_of_the_calls() {
        check("o", &[], OutputMatch::Unknown);
        check("ccoo", &[(0, 2), (1, 3)], OutputMatch::Call);
        check("ccooo", &[(0, 2), (1, 3)], OutputMatch::Late);
        check("cco", &[(1, 2)], OutputMatch::Call);
        check("c ccooo", &[(0, 6), (2, 4), (3, 5)], OutputMatch::Call);
        check("ccoco", &[(1, 2), (3, 4)], OutputMatch::Call);
        check("c co", &[(2, 3)], OutputMatch::Call);
    }
}
