//! Whole conversations as lines of JSON: out of the database and into it, never whole in memory.
//!
//! Not here: what the lines mean (`contexture::store::Export`).

use std::io::{self, BufRead, IsTerminal as _, Read, Write};

use contexture::Owner;
use contexture::ir::ConversationId;
use contexture::store::{Export, Import, ImportError, ImportedConversation, Store};

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::input::Source;

/// The name of this form among the formats.
pub(crate) const NAME: &str = "contexture";

/// How its files begin.
const BEGINNING: &[u8] = br#"{"conversation":{"format":"#;

/// Writes a conversation.
///
/// # Errors
/// It is not there or cannot be read, or the output cannot be written.
pub(crate) async fn export(
    store: &dyn Store,
    owner: &Owner,
    id: &ConversationId,
    out: &mut dyn Write,
) -> Outcome<()> {
    let mut export = Export::new(store, owner, id).await?;
    while let Some(lines) = export.next().await? {
        out.write_all(lines.as_bytes())?;
    }
    Ok(())
}

/// The input, if it holds conversations in this form.
///
/// # Errors
/// It cannot be read.
pub(crate) fn open(source: &Source) -> Outcome<Option<Box<dyn BufRead>>> {
    if *source == Source::Stdin && io::stdin().is_terminal() {
        return Ok(None);
    }
    // What is looked at and not ours stays to be read: standard input has one buffer for all.
    let mut input: Box<dyn BufRead> = match source {
        Source::Stdin => Box::new(io::stdin().lock()),
        Source::File(_) => Box::new(source.open()?),
    };
    let begins = input
        .fill_buf()
        .map_err(|error| unreadable(source, &error))?;
    let ours = begins.starts_with(BEGINNING);
    Ok(ours.then_some(input))
}

/// Keeps every conversation of the input, one after the other.
///
/// # Errors
/// A line that cannot be imported: its conversation is not kept, those before it are.
pub(crate) async fn import(
    store: &dyn Store,
    owner: &Owner,
    source: &Source,
    input: &mut dyn BufRead,
) -> Outcome<Vec<ImportedConversation>> {
    let longest = Import::longest_line(store.limits());
    let mut kept = Vec::new();
    let mut number = 0;
    let mut line = String::new();
    let mut next = Some(Import::new(store, owner));
    while let Some(mut import) = next.take() {
        let before = number;
        let failed = |error: ImportError| refused(error, before, source, &kept);
        loop {
            line.clear();
            let limit = (longest as u64).saturating_add(1);
            let read = Read::take(&mut *input, limit).read_line(&mut line);
            let read = read.map_err(|error| unreadable(source, &error))?;
            if read == 0 {
                break;
            }
            number += 1;
            import
                .line(line.trim_end_matches('\n'))
                .await
                .map_err(failed)?;
            if line.starts_with(r#"{"end":"#) {
                let more = input
                    .fill_buf()
                    .map_err(|error| unreadable(source, &error))?;
                next = (!more.is_empty()).then(|| Import::new(store, owner));
                break;
            }
        }
        let imported = import.finish().await.map_err(failed)?;
        kept.push(imported);
    }
    Ok(kept)
}

fn refused(
    error: ImportError,
    before: u64,
    source: &Source,
    kept: &[ImportedConversation],
) -> Failure {
    let line = before + error.line;
    let failure = Failure::from(error.source).of(format!("{source} line {line}"));
    let failure = match failure.exit {
        Exit::Refused => Failure {
            exit: Exit::BadInput,
            ..failure
        },
        _ => failure,
    };
    failure.note(match kept.len() {
        0 => "nothing was stored".to_owned(),
        count => format!("the {count} before it are stored, of this one nothing"),
    })
}

fn unreadable(source: &Source, error: &std::io::Error) -> Failure {
    let message = format!("cannot read {source}: {error}");
    Failure::new(Exit::Stream, "read", message)
}
