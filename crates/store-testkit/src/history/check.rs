//! Checks a history against the path that is stored in the end.

use std::collections::{BTreeMap, BTreeSet};

use super::anomaly::Anomaly;
use super::log::{ClientOperation, HistoryEvent, OperationOutcome, OperationPhase};

/// What a check found, and how much it looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CheckedHistory {
    /// What is wrong; empty for a correct history.
    pub anomalies: BTreeSet<Anomaly>,
    /// Number of operations that began.
    pub operations: usize,
    /// Number of appends that were acknowledged, repetitions not counted.
    pub acknowledged: usize,
    /// Number of operations that were refused.
    pub refused: usize,
    /// Number of operations whose outcome is unknown.
    pub unknown: usize,
}

/// Compares the events of all clients with the words of the path, from its first node to its head. Takes time in
/// proportion to the events and the words that were read.
///
/// A client has one operation at a time, so an end belongs to the last begin of its client.
#[must_use]
pub fn check_history(events: &[HistoryEvent], path: &[String]) -> CheckedHistory {
    let mut check = Check::new(path);
    for event in events {
        match &event.phase {
            OperationPhase::Begin(operation) => check.begin(&event.client, operation),
            OperationPhase::End(outcome) => check.end(&event.client, outcome),
        }
    }
    check.finish()
}

/// An operation that has begun.
struct OpenOperation<'h> {
    operation: &'h ClientOperation,
    /// Length of the path that was known to somebody when it began.
    floor: u64,
}

/// What a client knows.
#[derive(Default)]
struct ClientView {
    /// Depth of the last item that it appended.
    own: u64,
    /// Longest path that it saw.
    seen: u64,
}

struct Check<'h> {
    path: &'h [String],
    /// Depth of each word, from 1.
    depths: BTreeMap<&'h str, u64>,
    /// Words whose append has begun.
    begun: BTreeSet<&'h str>,
    open: BTreeMap<&'h str, OpenOperation<'h>>,
    views: BTreeMap<&'h str, ClientView>,
    /// Longest path that anybody was told of.
    floor: u64,
    checked: CheckedHistory,
}

impl<'h> Check<'h> {
    fn new(path: &'h [String]) -> Self {
        let mut check = Self {
            path,
            depths: BTreeMap::new(),
            begun: BTreeSet::new(),
            open: BTreeMap::new(),
            views: BTreeMap::new(),
            floor: 0,
            checked: CheckedHistory::default(),
        };
        for (depth, word) in (1..).zip(path) {
            if check.depths.insert(word, depth).is_some() {
                check.report(Anomaly::Doubled { word: word.clone() });
            }
        }
        check
    }

    fn report(&mut self, anomaly: Anomaly) {
        self.checked.anomalies.insert(anomaly);
    }

    fn begin(&mut self, client: &'h str, operation: &'h ClientOperation) {
        self.checked.operations += 1;
        self.begun
            .extend(appended_words(operation).iter().map(String::as_str));
        let floor = self.floor;
        let open = OpenOperation { operation, floor };
        // A process that was killed and started again leaves its last operation behind.
        if let Some(killed) = self.open.insert(client, open) {
            self.checked.unknown += 1;
            self.check_place(killed.operation);
        }
    }

    fn end(&mut self, client: &'h str, outcome: &'h OperationOutcome) {
        let Some(open) = self.open.remove(client) else {
            return;
        };
        match outcome {
            OperationOutcome::Appended { first, replayed } => {
                self.check_append(client, &open, *first, *replayed);
            }
            OperationOutcome::Read { first, words } => {
                self.check_words(client, *first, words);
                self.check_seen(client, &open, first + words.len() as u64 - 1);
            }
            OperationOutcome::Listed { nodes } => self.check_seen(client, &open, *nodes),
            OperationOutcome::Refused => {
                self.checked.refused += 1;
                for word in appended_words(open.operation) {
                    if self.depths.contains_key(word.as_str()) {
                        self.report(Anomaly::RefusedButStored { word: word.clone() });
                    }
                }
            }
            OperationOutcome::Unknown => {
                self.checked.unknown += 1;
                self.check_place(open.operation);
            }
        }
    }

    /// An acknowledged append is where it was said to be, and behind all that was known when it began.
    fn check_append(
        &mut self,
        client: &'h str,
        open: &OpenOperation<'h>,
        first: u64,
        replayed: bool,
    ) {
        let words = appended_words(open.operation);
        for word in words {
            if !self.depths.contains_key(word.as_str()) {
                self.report(Anomaly::Lost { word: word.clone() });
            }
        }
        let Some(word) = words.first().cloned() else {
            return;
        };
        if self
            .depths
            .get(word.as_str())
            .is_some_and(|depth| *depth != first)
        {
            self.report(Anomaly::Misplaced {
                word: word.clone(),
                told: first,
            });
        }
        self.check_place(open.operation);
        let last = first + words.len() as u64 - 1;
        self.floor = self.floor.max(last);
        let view = self.views.entry(client).or_default();
        view.own = view.own.max(last);
        view.seen = view.seen.max(last);
        // What an earlier attempt stored may be far back.
        if replayed {
            return;
        }
        self.checked.acknowledged += 1;
        if first <= open.floor {
            let floor = open.floor;
            self.report(Anomaly::OutOfOrder {
                word,
                floor,
                depth: first,
            });
        }
    }

    /// Items of one append are neighbours behind the head that it expected, or, if that is not acknowledged, not there.
    fn check_place(&mut self, operation: &'h ClientOperation) {
        let words = appended_words(operation);
        let depths: Vec<Option<u64>> = words
            .iter()
            .map(|word| self.depths.get(word.as_str()).copied())
            .collect();
        let (Some(word), Some(Some(first))) = (words.first(), depths.first()) else {
            // The first is missing: nothing may be there.
            if let Some(word) = words.first()
                && depths.iter().any(Option::is_some)
            {
                self.report(Anomaly::Torn { word: word.clone() });
            }
            return;
        };
        if depths
            .iter()
            .zip(*first..)
            .any(|(depth, wanted)| *depth != Some(wanted))
        {
            self.report(Anomaly::Torn { word: word.clone() });
        }
        if let ClientOperation::AppendBehind(head, _) = operation {
            let before = first
                .checked_sub(2)
                .and_then(|index| self.path.get(index as usize));
            if before != head.as_ref() {
                self.report(Anomaly::WrongHead { word: word.clone() });
            }
        }
    }

    /// What was read is what is there, and somebody had begun to write it.
    fn check_words(&mut self, client: &'h str, first: u64, words: &'h [String]) {
        for (depth, word) in (first..).zip(words) {
            if self.depths.get(word.as_str()) != Some(&depth) {
                self.report(Anomaly::DirtyRead {
                    client: client.to_owned(),
                    word: word.clone(),
                    depth,
                });
            } else if !self.begun.contains(word.as_str()) {
                self.report(Anomaly::ReadBeforeWrite {
                    client: client.to_owned(),
                    word: word.clone(),
                });
            }
        }
    }

    /// Nobody sees less than was known to anybody when the operation began.
    fn check_seen(&mut self, client: &'h str, open: &OpenOperation<'h>, seen: u64) {
        let view = self.views.entry(client).or_default();
        let (own, before) = (view.own, view.seen);
        view.seen = before.max(seen);
        let client = client.to_owned();
        // The most particular word for it.
        let anomaly = if seen < own {
            Some(Anomaly::OwnWriteMissing {
                client,
                floor: own,
                seen,
            })
        } else if seen < before {
            Some(Anomaly::WentBack {
                client,
                floor: before,
                seen,
            })
        } else if seen < open.floor {
            Some(Anomaly::StaleRead {
                client,
                floor: open.floor,
                seen,
            })
        } else {
            None
        };
        self.checked.anomalies.extend(anomaly);
        self.floor = self.floor.max(seen);
    }

    fn finish(mut self) -> CheckedHistory {
        for open in std::mem::take(&mut self.open).into_values() {
            self.checked.unknown += 1;
            self.check_place(open.operation);
        }
        for word in self.path {
            if !self.begun.contains(word.as_str()) {
                self.report(Anomaly::Phantom { word: word.clone() });
            }
        }
        self.checked
    }
}

fn appended_words(operation: &ClientOperation) -> &[String] {
    match operation {
        ClientOperation::AppendAtTip(words) | ClientOperation::AppendBehind(_, words) => words,
        ClientOperation::Read | ClientOperation::List => &[],
    }
}
