//! A client that does what a number says, and records it.

use std::sync::Arc;

use contexture_ir::Item;
use contexture_store::{AppendPoint, AppendRequest, Error, Node, ReadRequest};

use super::log::{ClientOperation, HistoryEvent, HistoryLog, OperationOutcome, OperationPhase};
use crate::chat::{Chat, NOW, branch, branch_end, item, node};

/// Most nodes that a client reads at a time.
const READ: u64 = 12;

/// A client of one conversation, which writes and reads its branch `main`.
#[derive(Debug)]
pub struct HistoryClient {
    chat: Chat,
    log: Arc<HistoryLog>,
    name: String,
    /// Number of appends so far, from which their words derive.
    appends: u64,
    /// The head that it knows.
    head: Option<String>,
    /// The last append, if its outcome is unknown: it is repeated.
    unknown: Option<ClientOperation>,
}

impl HistoryClient {
    /// Creates a client. Its name must be a word that no other client has.
    #[must_use]
    pub fn new(chat: Chat, log: Arc<HistoryLog>, name: impl Into<String>) -> Self {
        Self {
            chat,
            log,
            name: name.into(),
            appends: 0,
            head: None,
            unknown: None,
        }
    }

    /// Runs the operation that a random number says: an append of one to three items, at the tip or behind the known
    /// head, a read or a list.
    pub async fn run_operation(&mut self, random: u64) {
        let operation = self.choose_operation(random);
        self.record(OperationPhase::Begin(operation.clone()));
        let outcome = match &operation {
            ClientOperation::AppendAtTip(words) => {
                let at = Chat::at_tip("main");
                self.append(at, words).await
            }
            ClientOperation::AppendBehind(head, words) => {
                let at = Chat::at_head("main", head.as_deref());
                self.append(at, words).await
            }
            ClientOperation::Read => self.read().await,
            ClientOperation::List => self.list().await,
        };
        let is_append = !matches!(operation, ClientOperation::Read | ClientOperation::List);
        if outcome == OperationOutcome::Unknown && is_append {
            self.unknown = Some(operation);
        }
        self.record(OperationPhase::End(outcome));
    }

    fn record(&self, phase: OperationPhase) {
        let client = self.name.clone();
        self.log.record(&HistoryEvent { client, phase });
    }

    fn choose_operation(&mut self, random: u64) -> ClientOperation {
        // As a client would that got no answer.
        if let Some(unknown) = self.unknown.take() {
            return unknown;
        }
        match random % 8 {
            0 | 1 => ClientOperation::Read,
            2 => ClientOperation::List,
            kind => {
                self.appends += 1;
                let count = 1 + (random >> 8) % 3;
                let word = |index| format!("{}.{}.{index}", self.name, self.appends);
                let words = (0..count).map(word).collect();
                match kind {
                    3 | 4 => ClientOperation::AppendBehind(self.head.clone(), words),
                    _ => ClientOperation::AppendAtTip(words),
                }
            }
        }
    }

    async fn append(&mut self, at: AppendPoint, words: &[String]) -> OperationOutcome {
        let items = words.iter().map(|word| item(word)).collect();
        let request = AppendRequest::new(at, items, NOW);
        match self.chat.append_request(request).await {
            Ok(done) => {
                self.head = words.last().cloned().filter(|_| !done.replayed);
                OperationOutcome::Appended {
                    first: done.first,
                    replayed: done.replayed,
                }
            }
            Err(Error::HeadMoved { actual, .. }) => {
                // Behind an unknown head nothing can be appended, so it is looked up.
                if self.head.as_deref().map(node) != actual {
                    self.read_head().await;
                }
                OperationOutcome::Refused
            }
            Err(Error::Busy { .. }) => OperationOutcome::Refused,
            // Whether a fault was before or behind the commit is the store's secret.
            Err(_) => OperationOutcome::Unknown,
        }
    }

    /// Learns the head without recording it: who only looks may see what is old.
    async fn read_head(&mut self) {
        let end = ReadRequest::last_nodes(branch_end("main"), 1);
        if let Ok(page) = self.chat.read_path(end).await {
            self.head = page.nodes.last().map(|node| word_of(node));
        }
    }

    async fn read(&mut self) -> OperationOutcome {
        let end = ReadRequest::last_nodes(branch_end("main"), READ);
        match self.chat.read_path(end).await {
            Ok(page) => {
                let words: Vec<String> = page.nodes.iter().map(|node| word_of(node)).collect();
                self.head = words.last().cloned();
                let first = page.nodes.first().map_or(page.depth + 1, |node| node.depth);
                OperationOutcome::Read { first, words }
            }
            Err(_) => OperationOutcome::Unknown,
        }
    }

    async fn list(&self) -> OperationOutcome {
        let refs = self.chat.store.list_refs(&self.chat.owner, &self.chat.id);
        match refs.await {
            Ok(refs) => {
                let main = refs.branches.iter().find(|one| one.name == branch("main"));
                OperationOutcome::Listed {
                    nodes: main.map_or(0, |main| main.nodes),
                }
            }
            Err(_) => OperationOutcome::Unknown,
        }
    }
}

/// The word of a node: its text, which must be the one that its id derives from.
fn word_of(stored: &Node) -> String {
    let text = Item::parse(&stored.json).unwrap().text();
    assert_eq!(node(&text), stored.id, "another content");
    text
}

impl Chat {
    /// Returns the words of all nodes of `main`, as [`check_history`](super::check_history) wants them.
    pub async fn path_words(&self) -> Vec<String> {
        let nodes = self.path_nodes(branch_end("main")).await;
        nodes.iter().map(|node| word_of(node)).collect()
    }
}
