//! `read_memory`, `create_memory`, `update_memory`, `delete_memory`: notes that outlive conversations.
//!
//! They are those of the layer `memory`, so an agent that has that layer sees what is written here, and the other way
//! round. A note belongs to the owner, or to a resource, or to a conversation without one.

use contexture::Conversation;
use contexture::EngineError;
use contexture::layers::builtin::Memory;
use contexture::layers::builtin::memory::{
    Done, Edit, Expiry, Moment, Note, NoteError, Notes, Ttl,
};
use contexture::layers::{Layers, Scope};
use contexture::store::ListConversations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::item::{PAGE, fair_share};
use crate::tool::{Effect, Tool};
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::words::instant;

/// The conversation that is made where an owner keeps a note before there is any.
const FIRST: &str = "notes";

pub(crate) struct ReadMemory;
pub(crate) struct CreateMemory;
pub(crate) struct UpdateMemory;
pub(crate) struct DeleteMemory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Read {
    /// Only the note of this key, whole. Default: all, long ones cut.
    key: Option<String>,
    /// The notes about this resource: an end user, a project. Default: the owner's own.
    resource: Option<String>,
    /// The notes about this conversation's resource, or its own if it has none.
    conversation: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
    /// The note's key: a few words it is found by.
    key: String,
    /// What it says.
    value: String,
    /// What it is about.
    description: Option<String>,
    /// How important it is: the larger, the later it gives way where there is no room.
    #[schemars(range(max = 100))]
    importance: Option<u8>,
    /// Seconds after which it is forgotten; default: never.
    #[schemars(range(min = 1))]
    expires_in: Option<u64>,
    /// A note about this resource: an end user, a project. Default: the owner's own.
    resource: Option<String>,
    /// A note about this conversation's resource, or the conversation if it has none.
    conversation: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Update {
    /// The note's key.
    key: String,
    /// What it shall say; default: as before.
    value: Option<String>,
    /// What it is about; empty: nothing. Default: as before.
    description: Option<String>,
    /// How important it is; default: as before.
    #[schemars(range(max = 100))]
    importance: Option<u8>,
    /// Seconds from now after which it is forgotten, 0 for never; default: as before.
    expires_in: Option<u64>,
    /// The note is about this resource. Default: the owner's own.
    resource: Option<String>,
    /// The note is about this conversation's resource, or the conversation if it has none.
    conversation: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Delete {
    /// The note's key.
    key: String,
    /// The note is about this resource. Default: the owner's own.
    resource: Option<String>,
    /// The note is about this conversation's resource, or the conversation if it has none.
    conversation: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct All {
    /// The notes, by key.
    notes: Vec<OneNote>,
}

#[derive(Serialize, JsonSchema)]
struct OneNote {
    /// Its key.
    key: String,
    /// What it says.
    value: String,
    /// Characters of the whole, if it was cut: ask for its key.
    #[serde(skip_serializing_if = "Option::is_none")]
    characters: Option<usize>,
    /// What it is about.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// How important it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    importance: Option<u8>,
    /// When it was made.
    created: String,
    /// When it was changed last.
    updated: String,
    /// When it is forgotten.
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Written {
    /// The note's key.
    key: String,
    /// What became of it: created, updated, unchanged or deleted.
    done: String,
}

/// What notes belong to.
#[derive(Clone, Copy)]
enum Keeper<'a> {
    Owner,
    Resource(&'a str),
    Conversation(&'a str),
}

impl<'a> Keeper<'a> {
    fn of(resource: &'a Option<String>, conversation: &'a Option<String>) -> Result<Self, Trouble> {
        match (resource, conversation) {
            (None, None) => Ok(Self::Owner),
            (Some(resource), None) => Ok(Self::Resource(resource)),
            (None, Some(id)) => Ok(Self::Conversation(id)),
            (Some(_), Some(_)) => Err(Trouble::arguments(
                "both `resource` and `conversation` are given",
            )
            .hint("give one of them, or none for the owner's own notes")),
        }
    }
}

/// Notes, and the handle by which they are reached.
struct Opened {
    chat: Conversation,
    memory: Memory,
}

impl Opened {
    /// The notes of a keeper; `None` where the owner has no conversation yet, so no note either.
    async fn find(visit: &Visit, keeper: Keeper<'_>) -> Result<Option<Self>, Trouble> {
        let list = |resource: Option<&str>| ListConversations {
            resource: resource.map(str::to_owned),
            limit: Some(1),
            ..ListConversations::default()
        };
        let (id, scope) = match keeper {
            Keeper::Conversation(id) => (id.to_owned(), Scope::Resource),
            Keeper::Resource(resource) => {
                let page = visit
                    .engine
                    .conversations(&visit.owner, list(Some(resource)));
                let newest = page.await?.conversations.into_iter().next();
                let newest = newest.ok_or_else(|| {
                    let message = format!("the resource {resource:?} has no conversation");
                    Trouble::new("not_found", message)
                        .hint("list_conversations gives the resources there are; leave `resource` out for the owner's own notes")
                })?;
                (newest.id.to_string(), Scope::Resource)
            }
            Keeper::Owner => {
                let page = visit.engine.conversations(&visit.owner, list(None)).await?;
                match page.conversations.first() {
                    Some(newest) => (newest.id.to_string(), Scope::Global),
                    None => return Ok(None),
                }
            }
        };
        Self::on(visit.conversation(&id, None).await?, scope).map(Some)
    }

    /// The same, making a conversation where there is none.
    async fn open(visit: &Visit, keeper: Keeper<'_>) -> Result<Self, Trouble> {
        match Self::find(visit, keeper).await? {
            Some(opened) => Ok(opened),
            None => {
                let builder = visit.engine.conversation(FIRST).owner(visit.owner.as_str());
                Self::on(builder.title("Notes").open().await?, Scope::Global)
            }
        }
    }

    fn on(chat: Conversation, scope: Scope) -> Result<Self, Trouble> {
        let memory = Memory::new().scoped(scope);
        let layers = Layers::new().with(memory.clone());
        chat.set_layers(layers.map_err(EngineError::from)?);
        Ok(Self { chat, memory })
    }

    async fn read(&self) -> Result<(Notes, Moment), Trouble> {
        let session = self.chat.layer_session(None).await?;
        let notes = session.state::<Memory>().map_err(EngineError::from)?;
        let at = self.memory.moment(notes, session.context());
        Ok((notes.clone(), at))
    }

    /// Changes the notes as they are when it is stored.
    async fn change<T: Send>(
        &self,
        mut change: impl FnMut(&mut Notes, Moment) -> Result<T, Trouble> + Send,
    ) -> Result<T, Trouble> {
        let handle = self.chat.layer::<Memory>()?;
        let changed = handle.update(|notes, context| {
            let at = self.memory.moment(notes, context);
            Ok(change(notes, at))
        });
        changed.await?
    }
}

impl Tool for ReadMemory {
    const NAME: &'static str = "read_memory";
    const TITLE: &'static str = "Read notes";
    const ABOUT: &'static str = "Reads the notes that outlive conversations: all of them, or the one of a key. Read \
        them at the beginning of a task.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = Read;
    type Answer = All;

    async fn call(visit: Visit, arguments: Read) -> Result<All, Trouble> {
        let keeper = Keeper::of(&arguments.resource, &arguments.conversation)?;
        let (notes, at) = match Opened::find(&visit, keeper).await? {
            Some(opened) => opened.read().await?,
            None => Default::default(),
        };
        if let Some(key) = &arguments.key {
            let note = notes.live(key, at).ok_or_else(|| missing(key))?;
            let note = one(key, note, usize::MAX);
            return Ok(All { notes: vec![note] });
        }
        let lengths = notes.iter(at).map(|(_, note)| note.value.chars().count());
        let cap = fair_share(lengths.collect(), PAGE);
        let notes = notes.iter(at).map(|(key, note)| one(key, note, cap));
        Ok(All {
            notes: notes.collect(),
        })
    }
}

impl Tool for CreateMemory {
    const NAME: &'static str = "create_memory";
    const TITLE: &'static str = "Create a note";
    const ABOUT: &'static str = "Keeps a note for later conversations: a preference, a decision, a fact that was \
        hard to find. Keep it short; say so that it is understood alone.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Create;
    type Answer = Written;

    async fn call(visit: Visit, arguments: Create) -> Result<Written, Trouble> {
        let keeper = Keeper::of(&arguments.resource, &arguments.conversation)?;
        let opened = Opened::open(&visit, keeper).await?;
        let edit = Edit {
            value: Some(arguments.value),
            description: arguments.description,
            importance: arguments.importance,
            ttl: arguments.expires_in.map(lifetime),
        };
        let key = arguments.key;
        let change = opened.change(|notes, at| {
            if notes.live(&key, at).is_some() {
                let message = format!("there is a note {key:?} already");
                return Err(Trouble::new("already_exists", message)
                    .hint("change it with update_memory, or choose another key"));
            }
            notes.set(&key, edit.clone(), at).map_err(refused)
        });
        let done = change.await?;
        Ok(written(key, done))
    }
}

impl Tool for UpdateMemory {
    const NAME: &'static str = "update_memory";
    const TITLE: &'static str = "Change a note";
    const ABOUT: &'static str = "Changes a note that is kept. What is left out stays as it is.";
    const EFFECT: Effect = Effect::Replaces;
    type Arguments = Update;
    type Answer = Written;

    async fn call(visit: Visit, arguments: Update) -> Result<Written, Trouble> {
        let keeper = Keeper::of(&arguments.resource, &arguments.conversation)?;
        let key = arguments.key;
        let opened = Opened::find(&visit, keeper).await?;
        let opened = opened.ok_or_else(|| missing(&key))?;
        let edit = Edit {
            value: arguments.value,
            description: arguments.description,
            importance: arguments.importance,
            ttl: arguments.expires_in.map(lifetime),
        };
        let change = opened.change(|notes, at| {
            notes.live(&key, at).ok_or_else(|| missing(&key))?;
            notes.set(&key, edit.clone(), at).map_err(refused)
        });
        let done = change.await?;
        Ok(written(key, done))
    }
}

impl Tool for DeleteMemory {
    const NAME: &'static str = "delete_memory";
    const TITLE: &'static str = "Delete a note";
    const ABOUT: &'static str =
        "Deletes a note that is wrong or no longer needed. It cannot be had back.";
    const EFFECT: Effect = Effect::Replaces;
    type Arguments = Delete;
    type Answer = Written;

    async fn call(visit: Visit, arguments: Delete) -> Result<Written, Trouble> {
        let keeper = Keeper::of(&arguments.resource, &arguments.conversation)?;
        let key = arguments.key;
        let opened = Opened::find(&visit, keeper).await?;
        let opened = opened.ok_or_else(|| missing(&key))?;
        let change = opened.change(|notes, at| {
            notes.live(&key, at).ok_or_else(|| missing(&key))?;
            notes.delete(&key);
            Ok(())
        });
        change.await?;
        Ok(Written {
            key,
            done: "deleted".to_owned(),
        })
    }
}

fn one(key: &str, note: &Note, cap: usize) -> OneNote {
    let characters = note.value.chars().count();
    let cut = characters > cap;
    let mut value: String = note.value.chars().take(cap).collect();
    if cut {
        value.push('…');
    }
    OneNote {
        key: key.to_owned(),
        value,
        characters: cut.then_some(characters),
        description: note.description.clone(),
        importance: note.importance,
        created: instant(note.created_ms),
        updated: instant(note.updated_ms),
        expires: note.expires.map(|expiry| match expiry {
            Expiry::AtMs(ms) => instant(ms),
            Expiry::AtResponse(_) => "after some more answers".to_owned(),
        }),
    }
}

fn written(key: String, done: Done) -> Written {
    Written {
        key,
        done: done.as_str().to_owned(),
    }
}

/// Seconds as a time to live; none at all is for ever.
fn lifetime(seconds: u64) -> Ttl {
    match seconds {
        0 => Ttl::Never,
        seconds => Ttl::Ms(seconds.saturating_mul(1_000)),
    }
}

fn missing(key: &str) -> Trouble {
    Trouble::new("not_found", format!("there is no note {key:?}"))
        .hint("read_memory gives the notes there are; create_memory makes one")
}

fn refused(error: NoteError) -> Trouble {
    Trouble::new("note_refused", error.to_string())
}
