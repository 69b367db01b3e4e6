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

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::input::Source;

/// The name of this form among the formats.
pub(crate) const NAME: &str = "contexture";

/// How its files begin: with a conversation, or with values that belong to none.
const CONVERSATION: &[u8] = br#"{"conversation":{"format":"#;
const VALUES: &[u8] = br#"{"values":{"format":"#;

/// What a file held.
#[derive(Debug, Default)]
pub(crate) struct Whole {
    pub(crate) conversations: Vec<ImportedConversation>,
    pub(crate) values: Vec<ImportedValues>,
}

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

/// Writes the values of an owner, or of one resource, that belong to no conversation.
///
/// # Errors
/// As [`export`].
pub(crate) async fn export_values(
    store: &dyn Store,
    owner: &Owner,
    resource: Option<&str>,
    out: &mut dyn Write,
) -> Outcome<()> {
    let mut export = ExportValues::new(store, owner, resource.map(str::to_owned));
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
    let ours = begins.starts_with(CONVERSATION) || begins.starts_with(VALUES);
    Ok(ours.then_some(input))
}

/// A conversation or values on their way in.
enum Incoming<'a> {
    Conversation(Import<'a>),
    Values(ImportValues<'a>),
}

impl<'a> Incoming<'a> {
    fn new(first: &str, store: &'a dyn Store, owner: &'a Owner) -> Self {
        if first.as_bytes().starts_with(VALUES) {
            Self::Values(ImportValues::new(store, owner))
        } else {
            Self::Conversation(Import::new(store, owner))
        }
    }

    async fn line(&mut self, line: &str) -> Result<(), ImportError> {
        match self {
            Self::Conversation(import) => import.line(line).await,
            Self::Values(import) => import.line(line).await,
        }
    }

    async fn finish(self, whole: &mut Whole) -> Result<(), ImportError> {
        match self {
            Self::Conversation(import) => whole.conversations.push(import.finish().await?),
            Self::Values(import) => whole.values.push(import.finish().await?),
        }
        Ok(())
    }
}

/// Keeps every conversation of the input, one after the other, and values between them.
///
/// # Errors
/// A line that cannot be imported: its conversation is not kept, those before it are.
pub(crate) async fn import(
    store: &dyn Store,
    owner: &Owner,
    source: &Source,
    input: &mut dyn BufRead,
) -> Outcome<Whole> {
    let longest = Import::longest_line(store.limits());
    let mut whole = Whole::default();
    let mut number = 0;
    let mut line = String::new();
    loop {
        let before = number;
        let mut incoming: Option<Incoming<'_>> = None;
        loop {
            line.clear();
            let limit = (longest as u64).saturating_add(1);
            let read = Read::take(&mut *input, limit).read_line(&mut line);
            let read = read.map_err(|error| unreadable(source, &error))?;
            if read == 0 {
                break;
            }
            number += 1;
            let incoming = incoming.get_or_insert_with(|| Incoming::new(&line, store, owner));
            let taken = incoming.line(line.trim_end_matches('\n')).await;
            taken.map_err(|error| refused(error, before, source, &whole))?;
            if line.starts_with(r#"{"end":"#) {
                break;
            }
        }
        let Some(incoming) = incoming else {
            return Ok(whole);
        };
        if let Err(error) = incoming.finish(&mut whole).await {
            return Err(refused(error, before, source, &whole));
        }
    }
}

fn refused(error: ImportError, before: u64, source: &Source, whole: &Whole) -> Failure {
    let line = before + error.line;
    let failure = Failure::from(error.source).of(format!("{source} line {line}"));
    let failure = match failure.exit {
        Exit::Refused => Failure {
            exit: Exit::BadInput,
            ..failure
        },
        _ => failure,
    };
    failure.note(match whole.conversations.len() {
        0 => "nothing was stored".to_owned(),
        count => format!("the {count} before it are stored, of this one nothing"),
    })
}

fn unreadable(source: &Source, error: &std::io::Error) -> Failure {
    let message = format!("cannot read {source}: {error}");
    Failure::new(Exit::Stream, "read", message)
}
