//! Whole conversations as lines of JSON: out of the database and into it, never whole in memory.
//!
//! Not here: what the lines mean (`contexture::store::Export`).

use std::io::{self, BufRead, IsTerminal as _, Read, Write};

use contexture::Owner;
use contexture::ir::ConversationId;
use contexture::store::{
    Export, ExportValues, Import, ImportError, ImportValues, ImportedConversation, ImportedValues,
    Store,
};

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

    async fn finish_into(self, whole: &mut ImportedFile) -> Result<(), ImportError> {
        match self {
            Self::Conversation(import) => whole.conversations.push(import.finish_import().await?),
            Self::Values(import) => whole.values.push(import.finish_import().await?),
        }
        Ok(())
    }
}

/// Keeps every conversation of the input, one after the other, and values between them.
///
/// # Errors
/// A line that cannot be imported: its conversation is not kept, those before it are.
pub(crate) async fn import_conversations(
    store: &dyn Store,
    owner: &Owner,
    source: &InputSource,
    input: &mut dyn BufRead,
) -> Outcome<ImportedFile> {
    let longest = Import::longest_line(store.limits());
    let mut whole = ImportedFile::default();
    let mut number = 0;
    let mut line = String::new();
    loop {
        // The importer counts lines from 1 in each conversation; this is added to tell the line of
        // the file.
        let before = number;
        let mut incoming: Option<PortableImport<'_>> = None;
        loop {
            line.clear();
            // One byte more than the longest line the store takes: a longer one is refused for its
            // length instead of filling memory.
            let limit = (longest as u64).saturating_add(1);
            let read = Read::take(&mut *input, limit).read_line(&mut line);
            let read = read.map_err(|error| unreadable_input(source, &error))?;
            if read == 0 {
                break;
            }
            number += 1;
            // The first line says whether a conversation or values follow.
            let incoming = incoming.get_or_insert_with(|| PortableImport::new(&line, store, owner));
            let taken = incoming.import_line(line.trim_end_matches('\n')).await;
            taken.map_err(|error| import_failure(error, before, source, &whole))?;
            // The writer always begins the last line of a conversation so; a file may hold several,
            // one behind the other.
            if line.starts_with(r#"{"end":"#) {
                break;
            }
        }
        let Some(incoming) = incoming else {
            return Ok(whole);
        };
        // Also where the input ended too early: the importer knows that the end is missing.
        if let Err(error) = incoming.finish_into(&mut whole).await {
            return Err(import_failure(error, before, source, &whole));
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
        count => format!("the {count} before it are stored, of this one nothing"),
    })
}

fn unreadable_input(source: &InputSource, error: &std::io::Error) -> Failure {
    let message = format!("cannot read {source}: {error}");
    Failure::new(Exit::Stream, "read", message)
}
