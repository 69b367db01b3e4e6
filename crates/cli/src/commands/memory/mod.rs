//! `contexture memory`: the notes that the built-in layer of that name keeps.

mod notes_table;

use clap::{Args, Subcommand};
use contexture::layers::builtin::Memory;
use contexture::layers::builtin::memory::{NoteTime, NoteTtl, NoteUpdate, Notes};
use contexture::{Conversation, EngineError};
use contexture_api::{NoteDocument, NoteDoneDocument};
use serde_json::json;

use crate::database;
use crate::input::InputSource;
use crate::options::globals::Globals;
use crate::options::layers::NoteScope;
use crate::options::parse_values::parse_milliseconds;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::printable_lines;
use crate::output::write;

/// List, read, make or delete the notes of a memory
///
/// Notes belong to a resource and are there in all of its conversations; without a resource they belong
/// to the conversation. Rewinding does not touch them, except those of the path. Models keep such notes
/// with the tools of the layer `memory`; `compile --memory` shows them.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture memory list --conversation support-42
  contexture memory set language Portuguese --conversation support-42
  contexture memory set visit 'on Friday at ten' --resource ada@example.org --ttl-time 7d
  contexture memory set draft - --conversation support-42 --scope path --ttl 20 < draft.txt
  contexture memory set language --conversation support-42 --ttl never
  contexture memory get language --history --conversation support-42
  contexture memory delete language --conversation support-42")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: MemoryAction,
}

#[derive(Debug, Subcommand)]
enum MemoryAction {
    /// List the notes that have not expired, by key
    List {
        #[command(flatten)]
        whose: NoteOwner,
    },
    /// Show a note's value
    Get {
        /// The note
        key: String,
        /// Also what it said before, the newest first, a line each
        #[arg(long)]
        history: bool,
        #[command(flatten)]
        whose: NoteOwner,
    },
    /// Make a note, or change one; what is not given stays as it is
    Set {
        /// The note
        key: String,
        /// What it says; `-` for standard input; needed for a new note
        value: Option<String>,
        #[command(flatten)]
        more: NoteDetails,
        #[command(flatten)]
        whose: NoteOwner,
    },
    /// Delete a note
    Delete {
        /// The note
        key: String,
        #[command(flatten)]
        whose: NoteOwner,
    },
}

/// Whose notes.
#[derive(Clone, Debug, Args)]
struct NoteOwner {
    /// Those of this conversation's resource; the conversation's own if it has none
    #[arg(
        long,
        short,
        value_name = "CONVERSATION",
        required_unless_present = "resource"
    )]
    conversation: Option<String>,
    /// Those of this resource, of which there must be a conversation
    #[arg(long, value_name = "RESOURCE", conflicts_with = "conversation")]
    resource: Option<String>,
    /// What they belong to
    #[arg(long, value_enum, value_name = "SCOPE", default_value = "resource")]
    scope: NoteScope,
    /// With --scope path: the branch; default: the active one
    #[arg(long, value_name = "BRANCH", requires = "conversation")]
    branch: Option<String>,
}

/// What else a note has.
#[derive(Clone, Debug, Args)]
struct NoteDetails {
    /// What it is about; empty: nothing
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// How important it is, 0 to 100: the larger, the later it gives way where there is no room
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(0..=100))]
    importance: Option<u8>,
    /// Answers of the model after which it is forgotten, or `never`
    #[arg(long, value_name = "ANSWERS", value_parser = parse_answers, conflicts_with = "ttl_time")]
    ttl: Option<NoteTtl>,
    /// Time after which it is forgotten: 30m, 12h, 7d, 2w
    #[arg(long, value_name = "TIME", value_parser = parse_time)]
    ttl_time: Option<NoteTtl>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, resource or note, a limit of notes is reached, or the database cannot be
/// used.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    match &arguments.action {
        MemoryAction::List { whose } => {
            let memory = NotesHandle::new(whose, globals).await?;
            let (notes, at) = memory.read_notes().await?;
            notes_table::print_notes(&notes, at, globals)?;
        }
        MemoryAction::Get {
            key,
            history,
            whose,
        } => {
            let memory = NotesHandle::new(whose, globals).await?;
            let (notes, at) = memory.read_notes().await?;
            let note = notes.get_live(key, at).ok_or_else(|| note_not_found(key))?;
            match globals.json {
                true => write::print_json(&NoteDocument::new(key, note, at))?,
                false => write::print_text(&printable_lines(&note.value))?,
            }
            if *history && !globals.json {
                notes_table::print_history(note, at)?;
            }
        }
        MemoryAction::Set {
            key,
            value,
            more,
            whose,
        } => {
            let edit = build_edit(value.as_deref(), more)?;
            set_note(key, &edit, whose, globals).await?;
        }
        MemoryAction::Delete { key, whose } => delete_note(key, whose, globals).await?,
    }
    Ok(Exit::Done)
}

async fn set_note(
    key: &str,
    edit: &NoteUpdate,
    whose: &NoteOwner,
    globals: &Globals,
) -> Outcome<()> {
    let memory = NotesHandle::new(whose, globals).await?;
    let done = memory.set_note(key, edit).await?;
    if globals.json {
        write::print_json(&NoteDoneDocument {
            key: key.to_owned(),
            done,
        })?;
    } else if !globals.quiet {
        write::print_sentence(&format!("{done} note {}\n", printable_lines(key)))?;
    }
    Ok(())
}

async fn delete_note(key: &str, whose: &NoteOwner, globals: &Globals) -> Outcome<()> {
    let memory = NotesHandle::new(whose, globals).await?;
    memory.delete_note(key).await?;
    if globals.json {
        write::print_json(&json!({ "deleted": key }))?;
    } else if !globals.quiet {
        write::print_sentence(&format!("deleted note {}\n", printable_lines(key)))?;
    }
    Ok(())
}

/// Lists the notes of a conversation that has the layer which keeps them.
///
/// # Errors
/// The store's, or the output cannot be written.
pub(crate) async fn list_notes(
    chat: &Conversation,
    keeper: NoteScope,
    globals: &Globals,
) -> Outcome<()> {
    let opened = NotesHandle {
        chat: chat.clone(),
        memory: keeper.memory_layer(),
    };
    let (notes, at) = opened.read_notes().await?;
    notes_table::print_notes(&notes, at, globals)
}

/// A conversation and the layer that keeps its notes.
struct NotesHandle {
    chat: Conversation,
    memory: Memory,
}

impl NotesHandle {
    async fn new(whose: &NoteOwner, globals: &Globals) -> Outcome<Self> {
        let chat = match (&whose.conversation, &whose.resource) {
            (Some(id), _) => {
                database::open_conversation(globals, id, whose.branch.as_deref()).await?
            }
            (None, Some(_)) if whose.scope == NoteScope::Path => {
                let message = "notes of the path belong to a conversation, not to a resource";
                return Err(
                    Failure::usage(message).with_hint("name it: --conversation CONVERSATION")
                );
            }
            // All conversations of a resource share its notes, so any of them leads there.
            (None, Some(resource)) => database::open_newest_of_resource(globals, resource).await?,
            (None, None) => return Err(Failure::usage("whose notes? Name a conversation")),
        };
        let memory = whose.scope.memory_layer();
        chat.set_layers(contexture::layers::Layers::new().with_layer(memory.clone())?);
        Ok(Self { chat, memory })
    }

    /// The notes, and when it is for them.
    async fn read_notes(&self) -> Outcome<(Notes, NoteTime)> {
        let session = self.chat.layer_session(None).await?;
        let notes = session.state::<Memory>().map_err(EngineError::from)?;
        let at = self.memory.note_time(notes, session.context());
        Ok((notes.clone(), at))
    }

    /// Makes or changes a note on what is stored then: `created`, `updated`, `unchanged`.
    async fn set_note(&self, key: &str, edit: &NoteUpdate) -> Outcome<&'static str> {
        let handle = self.chat.layer::<Memory>()?;
        let done = handle.update(|notes, context| {
            let at = self.memory.note_time(notes, context);
            Ok(notes.upsert(key, edit.clone(), at))
        });
        Ok(done.await??.as_str())
    }

    /// Deletes a note that has not expired.
    async fn delete_note(&self, key: &str) -> Outcome<()> {
        let handle = self.chat.layer::<Memory>()?;
        let gone = handle.update(|notes, context| {
            let at = self.memory.note_time(notes, context);
            // Asked inside the update: what has expired counts as gone.
            let there = notes.get_live(key, at).is_some();
            Ok(there.then(|| notes.delete(key)).flatten())
        });
        gone.await?.map(|_| ()).ok_or_else(|| note_not_found(key))
    }
}

fn note_not_found(key: &str) -> Failure {
    let failure = Failure::new(Exit::NotFound, "no_note", format!("no note {key:?}"));
    failure.with_hint("`contexture memory list` shows the notes")
}

fn build_edit(value: Option<&str>, more: &NoteDetails) -> Outcome<NoteUpdate> {
    let value = match value {
        Some("-") => Some(InputSource::Stdin.read_text()?.trim_end().to_owned()),
        value => value.map(str::to_owned),
    };
    Ok(NoteUpdate {
        value,
        description: more.description.clone(),
        importance: more.importance,
        ttl: more.ttl.or(more.ttl_time),
    })
}

/// How many answers a note is there for.
fn parse_answers(text: &str) -> Result<NoteTtl, String> {
    let count = || text.parse().ok().filter(|count| *count > 0);
    match text {
        "never" => Ok(NoteTtl::Never),
        _ => count()
            .map(NoteTtl::Responses)
            .ok_or_else(|| "expected a number of answers, from 1, or `never`".to_owned()),
    }
}

fn parse_time(text: &str) -> Result<NoteTtl, String> {
    parse_milliseconds(text).map(NoteTtl::Ms)
}
