//! Importing a text of many conversations, several of them at a time.
//!
//! Not here: the import of one conversation (`import`) and of values (`values`).

use std::collections::BTreeMap;
use std::fmt;
use std::future::{Future, pending};
use std::ops::ControlFlow;
use std::pin::Pin;

use contexture_ir::Owner;
use futures_util::StreamExt as _;
use futures_util::stream::FuturesUnordered;

use super::import::{Import, ImportError, ImportedConversation};
use super::values::{ImportValues, ImportedValues};
use crate::contract::Store;

/// Largest number of conversations that are imported at a time, and of the bytes of their lines.
const MAX_RUNNING: usize = 256;
const MAX_RUNNING_BYTES: usize = 8 << 20;
/// A conversation with more bytes is not collected first: its lines are imported one by one, with nothing beside it.
const MAX_COLLECTED_BYTES: usize = 1 << 20;

/// How lines begin with which values begin, and with which a conversation or values end.
const VALUES_PREFIX: &[u8] = br#"{"values":"#;
const END_PREFIX: &[u8] = br#"{"end":"#;

/// Import of any number of conversations and values, line by line.
///
/// Small conversations are imported several at a time, as a store commits what waits together: thousands a second
/// instead of hundreds. Each is stored completely or not at all. At the first that is refused the import ends; what
/// stood before it is stored, and some of what stood behind it may be.
///
/// What [`Import`] says of interruptions holds for each conversation.
///
/// ```
/// # tokio::runtime::Runtime::new()?.block_on(async {
/// use contexture_ir::{ConversationId, Owner};
/// use contexture_store::{Export, ImportAll, MemoryStore, NewConversation, Store};
///
/// let (from, owner) = (MemoryStore::new(), Owner::local());
/// let mut text = String::new();
/// for name in ["monday", "tuesday"] {
///     let id = ConversationId::new(name)?;
///     from.create_conversation(&owner, NewConversation::new(id.clone(), 0)).await?;
///     let mut export = Export::new(&from, &owner, &id).await?;
///     while let Some(lines) = export.next_lines().await? {
///         text.push_str(&lines);
///     }
/// }
///
/// let to = MemoryStore::new();
/// let mut import = ImportAll::new(&to, &owner);
/// for line in text.lines() {
///     if import.import_line(line).await.is_break() {
///         break;
///     }
/// }
/// let imported = import.finish_import().await;
/// assert!(imported.error.is_none());
/// assert_eq!(imported.conversations.len(), 2);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub struct ImportAll<'a> {
    store: &'a dyn Store,
    owner: &'a Owner,
    /// Number of lines so far.
    lines: u64,
    /// The lines of the conversation that is being read.
    collected: CollectedLines,
    /// What is imported line by line instead.
    alone: Option<(u64, PendingImport<'a>)>,
    running: FuturesUnordered<RunningImport<'a>>,
    running_bytes: usize,
    /// What has ended, by the number of the line before it.
    done: BTreeMap<u64, ImportedUnit>,
    /// The refusal that stands first in the text, by the number of the line before its conversation.
    failed: Option<(u64, ImportError)>,
}

/// Result of the import of many conversations.
#[derive(Debug, Default)]
#[non_exhaustive]
pub struct ImportedAll {
    /// The conversations that are stored, in the order of the text.
    pub conversations: Vec<ImportedConversation>,
    /// The values that are stored, in the order of the text.
    pub values: Vec<ImportedValues>,
    /// Why the import ended before the text, with the number of the line in the whole text: of that
    /// conversation nothing is stored.
    pub error: Option<ImportError>,
}

type RunningImport<'a> = Pin<Box<dyn Future<Output = EndedImport> + Send + 'a>>;

/// How an import ended.
struct EndedImport {
    /// Number of the line before it, and bytes of its lines.
    before: u64,
    bytes: usize,
    result: Result<ImportedUnit, ImportError>,
}

/// A conversation or values on their way in.
enum PendingImport<'a> {
    Conversation(Box<Import<'a>>),
    Values(Box<ImportValues<'a>>),
}

/// What was stored of one conversation, or of values.
enum ImportedUnit {
    Conversation(ImportedConversation),
    Values(ImportedValues),
}

#[derive(Default)]
struct CollectedLines {
    /// Number of the line before the first.
    before: u64,
    lines: Vec<String>,
    bytes: usize,
}

impl fmt::Debug for ImportAll<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ImportAll")
            .field("lines", &self.lines)
            .field("running", &self.running.len())
            .finish_non_exhaustive()
    }
}

impl<'a> ImportAll<'a> {
    /// Creates an import that expects the first line of a text.
    #[must_use]
    pub fn new(store: &'a dyn Store, owner: &'a Owner) -> Self {
        Self {
            store,
            owner,
            lines: 0,
            collected: CollectedLines::default(),
            alone: None,
            running: FuturesUnordered::new(),
            running_bytes: 0,
            done: BTreeMap::new(),
            failed: None,
        }
    }

    /// Returns the bytes of the lines that are held: at most 8 MiB and one line.
    #[must_use]
    pub const fn held_bytes(&self) -> usize {
        self.running_bytes + self.collected.bytes
    }

    /// Imports the next line, given without its line end. Waits where too much is under way.
    ///
    /// Breaks once something was refused: more lines are of no use, and [`Self::finish_import`] says why.
    pub async fn import_line(&mut self, line: &str) -> ControlFlow<()> {
        self.lines += 1;
        if self.failed.is_none() {
            match self.alone.take() {
                Some((before, pending)) => self.import_alone(before, pending, line).await,
                None => self.collect_line(line).await,
            }
        }
        match self.failed {
            Some(_) => ControlFlow::Break(()),
            None => ControlFlow::Continue(()),
        }
    }

    /// Waits until a conversation that is under way has ended; forever if none is.
    ///
    /// For a caller whose next line takes its time: what has come is not stored by waiting for more. Dropping the
    /// future loses nothing.
    pub async fn wait_for_progress(&mut self) {
        match self.running.next().await {
            Some(ended) => self.record_end(ended),
            None => pending().await,
        }
    }

    /// Ends the import after the last line, or after a refusal.
    pub async fn finish_import(mut self) -> ImportedAll {
        if self.failed.is_none() && self.alone.is_none() && !self.collected.lines.is_empty() {
            // Their end is missing, which the importer says.
            self.import_collected().await;
        }
        // What is refused for its missing end is undone by it.
        if let Some((before, pending)) = self.alone.take() {
            let result = pending.finish_import().await;
            self.record_result(before, result);
        }
        self.wait_for_all().await;
        let mut imported = ImportedAll::default();
        for unit in self.done.into_values() {
            match unit {
                ImportedUnit::Conversation(one) => imported.conversations.push(one),
                ImportedUnit::Values(one) => imported.values.push(one),
            }
        }
        imported.error = self.failed.map(|(before, error)| ImportError {
            // The importer of one conversation counts from its first line.
            line: before + error.line,
            ..error
        });
        imported
    }

    async fn collect_line(&mut self, line: &str) {
        if self.collected.lines.is_empty() {
            self.collected.before = self.lines - 1;
        }
        self.collected.bytes += line.len();
        self.collected.lines.push(line.to_owned());
        // Values may belong to what was before, so they wait for it.
        let is_alone = line.as_bytes().starts_with(VALUES_PREFIX)
            || self.collected.bytes > MAX_COLLECTED_BYTES;
        if is_alone && !is_end(line) {
            self.wait_for_all().await;
            let collected = std::mem::take(&mut self.collected);
            let mut pending = self.begin_import(&collected);
            match pending.import_lines(&collected.lines).await {
                Ok(()) => self.alone = Some((collected.before, pending)),
                Err(error) => self.record_result(collected.before, Err(error)),
            }
        } else if is_end(line) {
            self.import_collected().await;
        }
    }

    /// Imports a line of what is imported alone.
    async fn import_alone(&mut self, before: u64, mut pending: PendingImport<'a>, line: &str) {
        match pending.import_line(line).await {
            Ok(()) if is_end(line) => {
                let result = pending.finish_import().await;
                self.record_result(before, result);
            }
            Ok(()) => self.alone = Some((before, pending)),
            Err(error) => self.record_result(before, Err(error)),
        }
    }

    /// Begins to import what was collected, once there is room for it.
    async fn import_collected(&mut self) {
        let collected = std::mem::take(&mut self.collected);
        while !self.running.is_empty()
            && (self.running.len() >= MAX_RUNNING
                || self.running_bytes + collected.bytes > MAX_RUNNING_BYTES)
        {
            self.wait_for_progress().await;
        }
        self.running_bytes += collected.bytes;
        let mut pending = self.begin_import(&collected);
        self.running.push(Box::pin(async move {
            let result = match pending.import_lines(&collected.lines).await {
                Ok(()) => pending.finish_import().await,
                Err(error) => Err(error),
            };
            EndedImport {
                before: collected.before,
                bytes: collected.bytes,
                result,
            }
        }));
    }

    fn begin_import(&self, collected: &CollectedLines) -> PendingImport<'a> {
        let first = collected.lines.first().map(String::as_bytes);
        match first.is_some_and(|first| first.starts_with(VALUES_PREFIX)) {
            true => PendingImport::Values(Box::new(ImportValues::new(self.store, self.owner))),
            false => PendingImport::Conversation(Box::new(Import::new(self.store, self.owner))),
        }
    }

    async fn wait_for_all(&mut self) {
        while !self.running.is_empty() {
            self.wait_for_progress().await;
        }
    }

    fn record_end(&mut self, ended: EndedImport) {
        self.running_bytes -= ended.bytes;
        self.record_result(ended.before, ended.result);
    }

    fn record_result(&mut self, before: u64, result: Result<ImportedUnit, ImportError>) {
        match result {
            Ok(unit) => drop(self.done.insert(before, unit)),
            // They end in any order; the text's first is the one that is told.
            Err(error)
                if self
                    .failed
                    .as_ref()
                    .is_none_or(|(first, _)| before < *first) =>
            {
                self.failed = Some((before, error));
            }
            Err(_) => {}
        }
    }
}

impl PendingImport<'_> {
    async fn import_line(&mut self, line: &str) -> Result<(), ImportError> {
        match self {
            Self::Conversation(import) => import.import_line(line).await,
            Self::Values(import) => import.import_line(line).await,
        }
    }

    async fn import_lines(&mut self, lines: &[String]) -> Result<(), ImportError> {
        for line in lines {
            self.import_line(line).await?;
        }
        Ok(())
    }

    async fn finish_import(self) -> Result<ImportedUnit, ImportError> {
        Ok(match self {
            Self::Conversation(import) => ImportedUnit::Conversation(import.finish_import().await?),
            Self::Values(import) => ImportedUnit::Values(import.finish_import().await?),
        })
    }
}

/// Whether a line ends a conversation or values. The writer always begins such a line so.
fn is_end(line: &str) -> bool {
    line.as_bytes().starts_with(END_PREFIX)
}
