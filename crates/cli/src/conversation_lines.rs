//! Whole conversations as lines of JSON: out of the database and into it, never whole in memory.
//!
//! Not here: what the lines mean (`contexture::store::Export`).

use std::collections::BTreeMap;
use std::io::{self, BufRead, IsTerminal as _, Read, Write};
use std::sync::Arc;

use contexture::Owner;
use contexture::ir::ConversationId;
use contexture::store::{
    Export, ExportValues, Import, ImportError, ImportValues, ImportedConversation, ImportedValues,
    Store,
};
use tokio::task::{JoinError, JoinSet};

use crate::input::InputSource;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// The name of this form among the formats.
pub(crate) const FORMAT_NAME: &str = "contexture";

/// How its files begin: with a conversation, or with values that belong to none.
const CONVERSATION_PREFIX: &[u8] = br#"{"conversation":{"format":"#;
const VALUES_PREFIX: &[u8] = br#"{"values":{"format":"#;

/// What a file held.
#[derive(Debug, Default)]
pub(crate) struct ImportedFile {
    pub(crate) conversations: Vec<ImportedConversation>,
    pub(crate) values: Vec<ImportedValues>,
}

/// Writes a conversation.
///
/// # Errors
/// It is not there or cannot be read, or the output cannot be written.
pub(crate) async fn export_conversation(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    out: &mut dyn Write,
) -> Outcome<()> {
    let mut export = Export::new(store, owner, id).await?;
    // A batch at a time, however long the conversation is.
    while let Some(lines) = export.next_lines().await? {
        out.write_all(lines.as_bytes())?;
    }
    Ok(())
}

/// Writes the values of an owner, or of one resource, that belong to no conversation.
///
/// # Errors
/// As [`export_conversation`].
pub(crate) async fn export_values(
    store: &dyn Store,
    owner: &Owner,
    resource: Option<&str>,
    out: &mut dyn Write,
) -> Outcome<()> {
    let mut export = ExportValues::new(store, owner, resource.map(str::to_owned));
    while let Some(lines) = export.next_lines().await? {
        out.write_all(lines.as_bytes())?;
    }
    Ok(())
}

/// The input, if it holds conversations in this form.
///
/// # Errors
/// It cannot be read.
pub(crate) fn open_if_portable(source: &InputSource) -> Outcome<Option<Box<dyn BufRead>>> {
    if *source == InputSource::Stdin && io::stdin().is_terminal() {
        return Ok(None);
    }
    // What is looked at and not ours stays to be read: standard input has one buffer for all.
    let mut input: Box<dyn BufRead> = match source {
        InputSource::Stdin => Box::new(io::stdin().lock()),
        InputSource::File(_) => Box::new(source.open_reader()?),
    };
    // Looked at without consuming: whoever reads it as another format starts at the first byte.
    let begins = input
        .fill_buf()
        .map_err(|error| unreadable_input(source, &error))?;
    let ours = begins.starts_with(CONVERSATION_PREFIX) || begins.starts_with(VALUES_PREFIX);
    Ok(ours.then_some(input))
}

/// A conversation or values on their way in.
enum PortableImport<'a> {
    Conversation(Import<'a>),
    Values(ImportValues<'a>),
}

impl<'a> PortableImport<'a> {
    fn new(first: &str, store: &'a dyn Store, owner: &'a Owner) -> Self {
        if first.as_bytes().starts_with(VALUES_PREFIX) {
            Self::Values(ImportValues::new(store, owner))
        } else {
            Self::Conversation(Import::new(store, owner))
        }
    }

    async fn import_line(&mut self, line: &str) -> Result<(), ImportError> {
        match self {
            Self::Conversation(import) => import.import_line(line).await,
            Self::Values(import) => import.import_line(line).await,
        }
    }

    async fn finish_import(self) -> Result<ImportedUnit, ImportError> {
        Ok(match self {
            Self::Conversation(import) => ImportedUnit::Conversation(import.finish_import().await?),
            Self::Values(import) => ImportedUnit::Values(import.finish_import().await?),
        })
    }
}

/// What was kept of one conversation, or of values.
enum ImportedUnit {
    Conversation(ImportedConversation),
    Values(ImportedValues),
}

/// Conversations that are kept at the same time: the database commits what waits together.
const MAX_CONCURRENT: usize = 64;
/// A conversation with more bytes is not collected first but kept line by line, alone.
const MAX_COLLECTED_BYTES: usize = 1 << 20;

/// Keeps every conversation of the input, several small ones at a time, and values between them.
///
/// # Errors
/// A line that cannot be imported: its conversation is not kept, those before it are, and some after it may be.
pub(crate) async fn import_conversations(
    store: &Arc<dyn Store>,
    owner: &Owner,
    source: &InputSource,
    input: &mut dyn BufRead,
) -> Outcome<ImportedFile> {
    let mut lines = PortableLines {
        longest: Import::longest_line(store.limits()),
        number: 0,
        source,
        input,
    };
    let mut running = RunningImports::default();
    let mut end = Ok(());
    loop {
        // The importer counts lines from 1 in each conversation; this is added to tell the line of
        // the file.
        let before = lines.number;
        let collected = match lines.collect_conversation() {
            Ok(collected) => collected,
            Err(failure) => {
                end = Err(failure);
                break;
            }
        };
        if collected.lines.is_empty() {
            break;
        }
        if collected.is_whole {
            running
                .spawn_import(store, owner, collected.lines, before)
                .await;
        } else {
            // Large, or values, which may belong to what was before: kept when nothing else is.
            running.wait_for_all().await;
            let kept = lines.import_rest(&**store, owner, collected.lines).await;
            match kept {
                Ok(imported) => running.push(before, imported),
                Err(failure) => end = Err(failure),
            }
        }
        if end.is_err() || running.has_failed {
            break;
        }
    }
    running.wait_for_all().await;
    let whole = running.into_file(source)?;
    end.map(|()| whole)
}

/// The input, by lines.
struct PortableLines<'a> {
    longest: usize,
    /// Lines read so far.
    number: u64,
    source: &'a InputSource,
    input: &'a mut dyn BufRead,
}

/// The lines of a conversation, or the first of them.
#[derive(Default)]
struct CollectedLines {
    lines: Vec<String>,
    is_whole: bool,
}

impl PortableLines<'_> {
    /// The next line; an empty one at the end of the input.
    fn next_line(&mut self) -> Outcome<String> {
        let mut line = String::new();
        // One byte more than the longest line the store takes: a longer one is refused for its
        // length instead of filling memory.
        let limit = (self.longest as u64).saturating_add(1);
        let read = Read::take(&mut *self.input, limit).read_line(&mut line);
        read.map_err(|error| unreadable_input(self.source, &error))?;
        self.number += u64::from(!line.is_empty());
        Ok(line)
    }

    /// Reads a conversation, unless it is large. What the input lacks, the importer will say.
    fn collect_conversation(&mut self) -> Outcome<CollectedLines> {
        let mut collected = CollectedLines::default();
        let mut bytes = 0;
        loop {
            let line = self.next_line()?;
            if line.is_empty() {
                collected.is_whole = true;
                return Ok(collected);
            }
            bytes += line.len();
            let is_last = is_last_line(&line);
            let is_values = line.as_bytes().starts_with(VALUES_PREFIX);
            collected.lines.push(line);
            if is_last || is_values || bytes > MAX_COLLECTED_BYTES {
                collected.is_whole = is_last && !is_values;
                return Ok(collected);
            }
        }
    }

    /// Keeps what begins with these lines and goes on in the input.
    async fn import_rest(
        &mut self,
        store: &dyn Store,
        owner: &Owner,
        first: Vec<String>,
    ) -> Outcome<Result<ImportedUnit, ImportError>> {
        let begin = first.first().map(String::as_str).unwrap_or_default();
        let mut import = PortableImport::new(begin, store, owner);
        let mut ended = false;
        for line in first {
            ended = is_last_line(&line);
            if let Err(error) = import.import_line(line.trim_end_matches('\n')).await {
                return Ok(Err(error));
            }
        }
        while !ended {
            let line = self.next_line()?;
            if line.is_empty() {
                break;
            }
            ended = is_last_line(&line);
            if let Err(error) = import.import_line(line.trim_end_matches('\n')).await {
                return Ok(Err(error));
            }
        }
        // Also where the input ended too early: the importer knows that the end is missing.
        Ok(import.finish_import().await)
    }
}

/// Whether a line ends a conversation or values. The writer always begins such a line so; a file may
/// hold several of them, one behind the other.
fn is_last_line(line: &str) -> bool {
    line.starts_with(r#"{"end":"#)
}

/// Imports under way, and what came of the others: each with the number of the line before it.
#[derive(Default)]
struct RunningImports {
    tasks: JoinSet<(u64, Result<ImportedUnit, ImportError>)>,
    done: BTreeMap<u64, Result<ImportedUnit, ImportError>>,
    has_failed: bool,
    /// A task that ended otherwise than by its own result.
    lost: Option<JoinError>,
}

impl RunningImports {
    fn push(&mut self, before: u64, imported: Result<ImportedUnit, ImportError>) {
        self.has_failed |= imported.is_err();
        self.done.insert(before, imported);
    }

    /// Begins to keep a conversation, once there is room for another.
    async fn spawn_import(
        &mut self,
        store: &Arc<dyn Store>,
        owner: &Owner,
        lines: Vec<String>,
        before: u64,
    ) {
        while self.tasks.len() >= MAX_CONCURRENT {
            self.wait_for_one().await;
        }
        let (store, owner) = (Arc::clone(store), owner.clone());
        self.tasks.spawn(async move {
            let begin = lines.first().map(String::as_str).unwrap_or_default();
            let mut import = PortableImport::new(begin, &*store, &owner);
            for line in &lines {
                if let Err(error) = import.import_line(line.trim_end_matches('\n')).await {
                    return (before, Err(error));
                }
            }
            (before, import.finish_import().await)
        });
    }

    async fn wait_for_one(&mut self) {
        match self.tasks.join_next().await {
            Some(Ok((before, imported))) => self.push(before, imported),
            Some(Err(lost)) => {
                self.has_failed = true;
                self.lost = Some(lost);
            }
            None => {}
        }
    }

    async fn wait_for_all(&mut self) {
        while !self.tasks.is_empty() {
            self.wait_for_one().await;
        }
    }

    /// What was kept, in the order of the file, or the first failure.
    fn into_file(self, source: &InputSource) -> Outcome<ImportedFile> {
        if let Some(lost) = self.lost {
            let message = format!("an import ended early: {lost}");
            return Err(Failure::new(Exit::Fault, "import", message));
        }
        let mut whole = ImportedFile::default();
        let mut first = None;
        for (before, imported) in self.done {
            match imported {
                Ok(ImportedUnit::Conversation(kept)) => whole.conversations.push(kept),
                Ok(ImportedUnit::Values(kept)) => whole.values.push(kept),
                Err(error) => first = first.or(Some((before, error))),
            }
        }
        match first {
            Some((before, error)) => Err(import_failure(error, before, source, &whole)),
            None => Ok(whole),
        }
    }
}

fn import_failure(
    error: ImportError,
    before: u64,
    source: &InputSource,
    whole: &ImportedFile,
) -> Failure {
    let line = before + error.line;
    let failure = Failure::from(error.source).with_context(format!("{source} line {line}"));
    let failure = match failure.exit {
        // What a file says is input: refused by the store, it is bad input here.
        Exit::Refused => Failure {
            exit: Exit::BadInput,
            ..failure
        },
        _ => failure,
    };
    failure.with_note(match whole.conversations.len() {
        0 => "nothing was stored".to_owned(),
        count => format!("{count} others are stored, of this one nothing"),
    })
}

fn unreadable_input(source: &InputSource, error: &std::io::Error) -> Failure {
    let message = format!("cannot read {source}: {error}");
    Failure::new(Exit::Stream, "read", message)
}
