//! `contexture memory`: the notes that the built-in layer of that name keeps.

mod shown;

use clap::{Args, Subcommand};
use contexture::layers::builtin::Memory;
use contexture::layers::builtin::memory::{Edit, Moment, Notes, Ttl};
use contexture::{Conversation, EngineError};
use contexture_server::documents::{NoteDocument, NoteDoneDocument};
use serde_json::json;

use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::input::Source;
use crate::layering::Keeper;
use crate::printable::lines;
use crate::words::milliseconds;
use crate::{database, say};

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
  contexture memory delete language --conversation support-42")]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(Debug, Subcommand)]
enum Action {
    /// List the notes that have not expired, by key
    List {
        #[command(flatten)]
        whose: Whose,
    },
    /// Show a note's value
    Get {
        /// The note
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
    /// Make a note, or change one; what is not given stays as it is
    Set {
        /// The note
        key: String,
        /// What it says; `-` for standard input; needed for a new note
        value: Option<String>,
        #[command(flatten)]
        more: More,
        #[command(flatten)]
        whose: Whose,
    },
    /// Delete a note
    Delete {
        /// The note
        key: String,
        #[command(flatten)]
        whose: Whose,
    },
}

/// Whose notes.
#[derive(Clone, Debug, Args)]
struct Whose {
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
    scope: Keeper,
    /// With --scope path: the branch; default: the active one
    #[arg(long, value_name = "BRANCH", requires = "conversation")]
    branch: Option<String>,
}

/// What else a note has.
#[derive(Clone, Debug, Args)]
struct More {
    /// What it is about; empty: nothing
    #[arg(long, value_name = "TEXT")]
    description: Option<String>,
    /// How important it is, 0 to 100: the larger, the later it gives way where there is no room
    #[arg(long, value_name = "NUMBER", value_parser = clap::value_parser!(u8).range(0..=100))]
    importance: Option<u8>,
    /// Answers of the model after which it is forgotten, or `never`
    #[arg(long, value_name = "ANSWERS", value_parser = answers, conflicts_with = "ttl_time")]
    ttl: Option<Ttl>,
    /// Time after which it is forgotten: 30m, 12h, 7d, 2w
    #[arg(long, value_name = "TIME", value_parser = time)]
    ttl_time: Option<Ttl>,
}

/// Runs the command.
///
/// # Errors
/// There is no such conversation, resource or note, a limit of notes is reached, or the database cannot be
/// used.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    match &arguments.action {
        Action::List { whose } => {
            let memory = Opened::new(whose, globals).await?;
            let (notes, at) = memory.read().await?;
            shown::list(&notes, at, globals)?;
        }
        Action::Get { key, whose } => {
            let memory = Opened::new(whose, globals).await?;
            let (notes, at) = memory.read().await?;
            let note = notes.live(key, at).ok_or_else(|| missing(key))?;
            match globals.json {
                true => say::json(&NoteDocument::new(key, note, at))?,
                false => say::raw(&lines(&note.value))?,
            }
        }
        Action::Set {
            key,
            value,
            more,
            whose,
        } => {
            let edit = edit(value.as_deref(), more)?;
            let done = Opened::new(whose, globals).await?.set(key, &edit).await?;
            if globals.json {
                say::json(&NoteDoneDocument {
                    key: key.clone(),
                    done,
                })?;
            } else if !globals.quiet {
                say::styled(&format!("{done} note {}\n", lines(key)))?;
            }
        }
        Action::Delete { key, whose } => {
            Opened::new(whose, globals).await?.delete(key).await?;
            if globals.json {
                say::json(&json!({ "deleted": key }))?;
            } else if !globals.quiet {
                say::styled(&format!("deleted note {}\n", lines(key)))?;
            }
        }
    }
    Ok(Exit::Done)
}

/// Lists the notes of a conversation that has the layer which keeps them.
///
/// # Errors
/// The store's, or the output cannot be written.
pub(crate) async fn list(chat: &Conversation, keeper: Keeper, globals: &Globals) -> Outcome<()> {
    let opened = Opened {
        chat: chat.clone(),
        memory: keeper.memory(),
    };
    let (notes, at) = opened.read().await?;
    shown::list(&notes, at, globals)
}

/// A conversation and the layer that keeps its notes.
struct Opened {
    chat: Conversation,
    memory: Memory,
}

impl Opened {
    async fn new(whose: &Whose, globals: &Globals) -> Outcome<Self> {
        let chat = match (&whose.conversation, &whose.resource) {
            (Some(id), _) => database::conversation(globals, id, whose.branch.as_deref()).await?,
            (None, Some(_)) if whose.scope == Keeper::Path => {
                let message = "notes of the path belong to a conversation, not to a resource";
                return Err(Failure::usage(message).hint("name it: --conversation CONVERSATION"));
            }
            (None, Some(resource)) => database::of_resource(globals, resource).await?,
            (None, None) => return Err(Failure::usage("whose notes? Name a conversation")),
        };
        let memory = whose.scope.memory();
        chat.set_layers(contexture::layers::Layers::new().with(memory.clone())?);
        Ok(Self { chat, memory })
    }

    /// The notes, and when it is for them.
    async fn read(&self) -> Outcome<(Notes, Moment)> {
        let session = self.chat.layer_session(None).await?;
        let notes = session.state::<Memory>().map_err(EngineError::from)?;
        let at = self.memory.moment(notes, session.context());
        Ok((notes.clone(), at))
    }

    /// Makes or changes a note on what is stored then: `created`, `updated`, `unchanged`.
    async fn set(&self, key: &str, edit: &Edit) -> Outcome<&'static str> {
        let handle = self.chat.layer::<Memory>()?;
        let done = handle.update(|notes, context| {
            let at = self.memory.moment(notes, context);
            Ok(notes.set(key, edit.clone(), at))
        });
        Ok(done.await??.as_str())
    }

    /// Deletes a note that has not expired.
    async fn delete(&self, key: &str) -> Outcome<()> {
        let handle = self.chat.layer::<Memory>()?;
        let gone = handle.update(|notes, context| {
            let at = self.memory.moment(notes, context);
            let there = notes.live(key, at).is_some();
            Ok(there.then(|| notes.delete(key)).flatten())
        });
        gone.await?.map(|_| ()).ok_or_else(|| missing(key))
    }
}

fn missing(key: &str) -> Failure {
    let failure = Failure::new(Exit::NotFound, "no_note", format!("no note {key:?}"));
    failure.hint("`contexture memory list` shows the notes")
}

fn edit(value: Option<&str>, more: &More) -> Outcome<Edit> {
    let value = match value {
        Some("-") => Some(Source::Stdin.read()?.trim_end().to_owned()),
        value => value.map(str::to_owned),
    };
    Ok(Edit {
        value,
        description: more.description.clone(),
        importance: more.importance,
        ttl: more.ttl.or(more.ttl_time),
    })
}

/// How many answers a note is there for.
fn answers(text: &str) -> Result<Ttl, String> {
    let count = || text.parse().ok().filter(|count| *count > 0);
    match text {
        "never" => Ok(Ttl::Never),
        _ => count()
            .map(Ttl::Responses)
            .ok_or_else(|| "expected a number of answers, from 1, or `never`".to_owned()),
    }
}

fn time(text: &str) -> Result<Ttl, String> {
    milliseconds(text).map(Ttl::Ms)
}
