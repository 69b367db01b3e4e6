//! The events of a history, and the file that they are in: one line each, so that a kill cuts none in two.

use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

/// What happened to an operation of a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HistoryEvent {
    /// Name of the client: a word. It has one operation at a time.
    pub client: String,
    /// What happened to its operation.
    pub phase: OperationPhase,
}

/// Begin or end of an operation. One that begins and never ends has an unknown outcome: its process was killed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationPhase {
    /// It is about to begin.
    Begin(ClientOperation),
    /// It has ended.
    End(OperationOutcome),
}

/// What a client does. Words name items; each is appended by one operation only, and again when that is repeated.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ClientOperation {
    /// Appends items at the tip of the branch.
    AppendAtTip(Vec<String>),
    /// Appends items behind an expected head; `None` where the branch must be empty.
    AppendBehind(Option<String>, Vec<String>),
    /// Reads the end of the path.
    Read,
    /// Lists the branches, and so learns how long the path is.
    List,
}

/// What came of an operation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum OperationOutcome {
    /// The items are stored.
    Appended {
        /// Depth of the first one, from 1.
        first: u64,
        /// Whether they were stored by an earlier attempt.
        replayed: bool,
    },
    /// The words that were read.
    Read {
        /// Depth of the first one, from 1; one more than the length of the path if none was read.
        first: u64,
        /// The words, in the order of the path; the last one is its end.
        words: Vec<String>,
    },
    /// The length of the path.
    Listed {
        /// Number of nodes.
        nodes: u64,
    },
    /// The operation was refused, and nothing of it is stored.
    Refused,
    /// Whether anything of it is stored is not known.
    Unknown,
}

/// A file that events are appended to; any number of processes may have it open.
#[derive(Debug)]
pub struct HistoryLog {
    file: File,
}

impl HistoryLog {
    /// Opens the file, or creates it. Panics if it cannot.
    #[must_use]
    pub fn open(path: &Path) -> Self {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Self {
            file: file.unwrap(),
        }
    }

    /// Appends an event. Panics if it cannot.
    pub fn record(&self, event: &HistoryEvent) {
        let line = format!("{} {}\n", event.client, event.phase.to_line());
        // One write, so that lines of several processes do not mix: the file is opened for appending.
        (&self.file).write_all(line.as_bytes()).unwrap();
    }
}

/// Reads the events of a file, in their order. Panics if it has another line.
#[must_use]
pub fn read_history(path: &Path) -> Vec<HistoryEvent> {
    let text = std::fs::read_to_string(path).unwrap();
    text.lines()
        .map(|line| parse_event(line).unwrap_or_else(|| panic!("no event: {line:?}")))
        .collect()
}

impl OperationPhase {
    fn to_line(&self) -> String {
        match self {
            Self::Begin(ClientOperation::AppendAtTip(words)) => {
                format!("append tip {}", words.join(" "))
            }
            // A dash is no word of a client.
            Self::Begin(ClientOperation::AppendBehind(head, words)) => {
                let head = head.as_deref().unwrap_or("-");
                format!("append behind {head} {}", words.join(" "))
            }
            Self::Begin(ClientOperation::Read) => "read".to_owned(),
            Self::Begin(ClientOperation::List) => "list".to_owned(),
            Self::End(OperationOutcome::Appended { first, replayed }) => {
                format!("appended {first} {replayed}")
            }
            Self::End(OperationOutcome::Read { first, words }) => {
                format!("was {first} {}", words.join(" "))
            }
            Self::End(OperationOutcome::Listed { nodes }) => format!("listed {nodes}"),
            Self::End(OperationOutcome::Refused) => "refused".to_owned(),
            Self::End(OperationOutcome::Unknown) => "unknown".to_owned(),
        }
    }
}

fn parse_event(line: &str) -> Option<HistoryEvent> {
    let mut words = line.split_whitespace();
    let client = words.next()?.to_owned();
    let kind = words.next()?;
    let end = OperationPhase::End;
    let mut rest = words.map(str::to_owned);
    let phase = match kind {
        "append" => OperationPhase::Begin(match rest.next()?.as_str() {
            "tip" => ClientOperation::AppendAtTip(rest.collect()),
            _ => {
                let head = rest.next().filter(|head| head != "-");
                ClientOperation::AppendBehind(head, rest.collect())
            }
        }),
        "read" => OperationPhase::Begin(ClientOperation::Read),
        "list" => OperationPhase::Begin(ClientOperation::List),
        "appended" => end(OperationOutcome::Appended {
            first: rest.next()?.parse().ok()?,
            replayed: rest.next()?.parse().ok()?,
        }),
        "was" => end(OperationOutcome::Read {
            first: rest.next()?.parse().ok()?,
            words: rest.collect(),
        }),
        "listed" => end(OperationOutcome::Listed {
            nodes: rest.next()?.parse().ok()?,
        }),
        "refused" => end(OperationOutcome::Refused),
        "unknown" => end(OperationOutcome::Unknown),
        _ => return None,
    };
    Some(HistoryEvent { client, phase })
}
