//! Whole conversations as lines of JSON: out of the database and into it, never whole in memory.
//!
//! Not here: what the lines mean (`contexture::store::Export`).

use std::io::{self, BufRead, IsTerminal as _, Read, Write};

use contexture::Owner;
use contexture::ir::ConversationId;
use contexture::store::{Export, ExportValues, Import, ImportAll, ImportError, ImportedAll, Store};

use crate::input::InputSource;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};

/// The name of this form among the formats.
pub(crate) const FORMAT_NAME: &str = "contexture";

/// How its files begin: with a conversation, or with values that belong to none.
const CONVERSATION_PREFIX: &[u8] = br#"{"conversation":{"format":"#;
const VALUES_PREFIX: &[u8] = br#"{"values":{"format":"#;

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

/// Imports every conversation and all values of the input, several conversations at a time.
///
/// # Errors
/// A line that cannot be imported: its conversation is not stored, those before it are, and some after it may be.
pub(crate) async fn import_conversations(
    store: &dyn Store,
    owner: &Owner,
    source: &InputSource,
    input: &mut dyn BufRead,
) -> Outcome<ImportedAll> {
    let longest = Import::longest_line(store.limits());
    let mut import = ImportAll::new(store, owner);
    let mut line = String::new();
    let end = loop {
        line.clear();
        // One byte more than the longest line the store takes: a longer one is refused for its
        // length instead of filling memory.
        let limit = (longest as u64).saturating_add(1);
        match Read::take(&mut *input, limit).read_line(&mut line) {
            Ok(0) => break Ok(()),
            Ok(_)
                if import
                    .import_line(line.trim_end_matches('\n'))
                    .await
                    .is_break() =>
            {
                break Ok(());
            }
            Ok(_) => {}
            Err(error) => break Err(unreadable_input(source, &error)),
        }
    };
    // Also where the input ended too early: the importer knows that the end is missing.
    let mut imported = import.finish_import().await;
    end?;
    match imported.error.take() {
        Some(error) => Err(import_failure(error, source, imported.conversations.len())),
        None => Ok(imported),
    }
}

fn import_failure(error: ImportError, source: &InputSource, others: usize) -> Failure {
    let line = error.line;
    let failure = Failure::from(error.source).with_context(format!("{source} line {line}"));
    let failure = match failure.exit {
        // What a file says is input: refused by the store, it is bad input here.
        Exit::Refused => Failure {
            exit: Exit::BadInput,
            ..failure
        },
        _ => failure,
    };
    failure.with_note(match others {
        0 => "nothing was stored".to_owned(),
        count => format!("{count} others are stored, of this one nothing"),
    })
}

fn unreadable_input(source: &InputSource, error: &std::io::Error) -> Failure {
    let message = format!("cannot read {source}: {error}");
    Failure::new(Exit::Stream, "read", message)
}
