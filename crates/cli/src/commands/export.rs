//! `contexture export`: a conversation as a session file or a document.

use std::fs;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use clap::Args;
use clap::builder::PossibleValuesParser;
use contexture::Format;
use contexture::sessions::SessionFormat;

use crate::conversation_lines;
use crate::database;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::write;

/// Write a conversation as a session file or as a list of messages
///
/// In the format it was imported from, the file comes out as it went in, with what was said since
/// behind it. In another format it is one branch, as messages.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture export support-42 > support-42.json
  contexture export support-42 --to anthropic --branch main-v2
  contexture export swe-agent:marshmallow-1867 --to swe-agent -o again.traj
  contexture export support-42 --to contexture > support-42.jsonl
  contexture export --all --to contexture -o everything.jsonl
  contexture export --all --resource ada@example.org -o everything-of-ada.jsonl

With `--to contexture` it is all there is: every branch, checkpoint, state, blob and value, as lines of
JSON that `contexture import` reads into any database, and that come out of it byte for byte the same.")]
pub(crate) struct Arguments {
    /// The conversation
    #[arg(required_unless_present = "all")]
    conversation: Option<String>,
    /// The format; default: the one it was imported from, else items
    #[arg(long, visible_alias = "format", value_parser = export_format())]
    to: Option<String>,
    /// All conversations of the owner and all values it keeps, in the format `contexture`
    #[arg(long, conflicts_with_all = ["conversation", "branch"])]
    all: bool,
    /// With --all: only conversations and values of this resource
    #[arg(
        long,
        requires = "all",
        conflicts_with = "conversation",
        value_name = "RESOURCE"
    )]
    resource: Option<String>,
    /// The branch; default: the active one
    #[arg(long)]
    branch: Option<String>,
    /// Write to this file
    #[arg(long, short, value_name = "FILE")]
    output: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, it cannot be written in that format, or the file cannot be written.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let whole = arguments.to.as_deref() == Some(conversation_lines::FORMAT_NAME);
    if arguments.all && !whole && arguments.to.is_some() {
        let message = "--all writes the format `contexture`: other formats hold one conversation";
        return Err(Failure::usage(message).with_hint("leave out --to, or name a conversation"));
    }
    if arguments.all || whole {
        return export_lines(arguments, globals).await;
    }
    let branch = arguments.branch.as_deref();
    let id = arguments.conversation.as_deref().unwrap_or_default();
    let chat = database::open_conversation(globals, id, branch).await?;
    let format = match &arguments.to {
        Some(name) => name.parse::<SessionFormat>()?,
        None => match chat
            .export_session(SessionFormat::Wire(Format::Items))
            .await?
            .format
        {
            // These are only read; their messages are those of the AI SDK.
            SessionFormat::DeepAgents => SessionFormat::Wire(Format::Ui),
            own => own,
        },
    };
    let text = chat.export(format).await?;
    match &arguments.output {
        None => write::print_text(&text)?,
        Some(path) => fs::write(path, text).map_err(|error| unwritable_file(path, &error))?,
    }
    Ok(Exit::Done)
}

/// Writes whole conversations as lines.
async fn export_lines(arguments: &Arguments, globals: &Globals) -> Outcome {
    // Refused and not ignored: the file would hold more than was asked for.
    if arguments.branch.is_some() {
        let message = "--to contexture writes all branches: it takes no --branch";
        return Err(Failure::usage(message));
    }
    let owner = database::resolve_owner(globals)?;
    let named = arguments.conversation.as_deref();
    let resource = arguments.resource.as_deref();
    let (engine, ids) = database::select_conversations(globals, named, resource).await?;
    let mut out: Box<dyn Write> = match &arguments.output {
        None => Box::new(BufWriter::new(io::stdout())),
        Some(path) => {
            let file = fs::File::create(path).map_err(|error| unwritable_file(path, &error))?;
            Box::new(BufWriter::new(file))
        }
    };
    let store = engine.store();
    for id in &ids {
        conversation_lines::export_conversation(&**store, &owner, id, &mut out).await?;
    }
    if arguments.all {
        conversation_lines::export_values(&**store, &owner, resource, &mut out).await?;
    }
    // Dropping the buffer would swallow the error of the last write.
    out.flush()?;
    Ok(Exit::Done)
}

fn unwritable_file(path: &Path, error: &io::Error) -> Failure {
    let message = format!("cannot write `{}`: {error}", path.display());
    Failure::new(Exit::Stream, "write", message)
        .with_hint("name a file in a directory that exists and that you may write to")
}

/// The formats of sessions, and our own.
fn export_format() -> PossibleValuesParser {
    let names = SessionFormat::ALL.map(SessionFormat::as_str);
    PossibleValuesParser::new(names.into_iter().chain([conversation_lines::FORMAT_NAME]))
}
