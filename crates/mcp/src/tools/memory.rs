//! `read_memory`, `create_memory`, `update_memory`, `delete_memory`: notes that outlive conversations.
//!
//! They are those of the layer `memory`, so an agent that has that layer sees what is written here, and the other way
//! round. A note belongs to the owner, or to a resource, or to a conversation without one.

use contexture::Conversation;
use contexture::EngineError;
use contexture::layers::builtin::Memory;
use contexture::layers::builtin::memory::{
    EditResult, Expiry, Note, NoteError, NoteTime, NoteTtl, NoteUpdate, Notes,
};
use contexture::layers::{Layers, StateScope};
use contexture::store::ListConversations;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::item_text::{PAGE_CHARACTERS, fair_share};
use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;
use contexture_api::format_timestamp;

/// Id of the conversation that is created for the notes of an owner who has none.
const NOTES_CONVERSATION: &str = "notes";

pub(crate) struct ReadMemory;
pub(crate) struct CreateMemory;
pub(crate) struct UpdateMemory;
pub(crate) struct DeleteMemory;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReadMemoryArguments {
    /// Key of the one note to read, uncut. Default: all notes, long ones cut.
    key: Option<String>,
    /// Resource that the notes are about: an end user, a project. Default: the owner's own notes.
    resource: Option<String>,
    /// Conversation whose resource the notes are about, or itself if it has no resource.
    conversation: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateMemoryArguments {
    /// Key of the note: a few words to find it by.
    key: String,
    /// Text of the note.
    value: String,
    /// Subject of the note.
    description: Option<String>,
    /// Importance of the note: the larger, the later it is left out where space is short.
    #[schemars(range(max = 100))]
    importance: Option<u8>,
    /// Seconds after which the note expires; default: never.
    #[schemars(range(min = 1))]
    expires_in: Option<u64>,
    /// Resource that the note is about: an end user, a project. Default: the owner's own notes.
    resource: Option<String>,
    /// Conversation whose resource the note is about, or itself if it has no resource.
    conversation: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct UpdateMemoryArguments {
    /// Key of the note.
    key: String,
    /// New text of the note; default: unchanged.
    value: Option<String>,
    /// New subject of the note, empty to remove it. Default: unchanged.
    description: Option<String>,
    /// New importance of the note; default: unchanged.
    #[schemars(range(max = 100))]
    importance: Option<u8>,
    /// Seconds from now after which the note expires, 0 for never; default: unchanged.
    expires_in: Option<u64>,
    /// Resource that the note is about: an end user, a project. Default: the owner's own notes.
    resource: Option<String>,
    /// Conversation whose resource the note is about, or itself if it has no resource.
    conversation: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct DeleteMemoryArguments {
    /// Key of the note.
    key: String,
    /// Resource that the note is about: an end user, a project. Default: the owner's own notes.
    resource: Option<String>,
    /// Conversation whose resource the note is about, or itself if it has no resource.
    conversation: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct NoteList {
    /// Notes, in order of key.
    notes: Vec<NoteInfo>,
}

#[derive(Serialize, JsonSchema)]
struct NoteInfo {
    /// Key of the note.
    key: String,
    /// Text of the note, with … where it was cut.
    value: String,
    /// Number of characters in the full text, if it was cut; give `key` to read it.
    #[serde(skip_serializing_if = "Option::is_none")]
    characters: Option<usize>,
    /// Subject of the note.
    #[serde(skip_serializing_if = "Option::is_none")]
    description: Option<String>,
    /// Importance of the note, from 0 to 100.
    #[serde(skip_serializing_if = "Option::is_none")]
    importance: Option<u8>,
    /// Time of its creation (RFC 3339).
    created: String,
    /// Time of its last change (RFC 3339).
    updated: String,
    /// Time at which the note expires (RFC 3339), or "after some more answers".
    #[serde(skip_serializing_if = "Option::is_none")]
    expires: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct ChangedNote {
    /// Key of the note.
    key: String,
    /// Outcome of the call: created, updated, unchanged or deleted.
    done: String,
}

/// The owner, resource or conversation that notes belong to.
#[derive(Clone, Copy)]
enum NoteOwner<'a> {
    Owner,
    Resource(&'a str),
    Conversation(&'a str),
}

impl<'a> NoteOwner<'a> {
    fn from_arguments(
        resource: &'a Option<String>,
        conversation: &'a Option<String>,
    ) -> Result<Self, ToolError> {
        match (resource, conversation) {
            (None, None) => Ok(Self::Owner),
            (Some(resource), None) => Ok(Self::Resource(resource)),
            (None, Some(id)) => Ok(Self::Conversation(id)),
            (Some(_), Some(_)) => Err(ToolError::invalid_arguments(
                "both `resource` and `conversation` are given",
            )
            .with_hint("give one of them, or none for the owner's own notes")),
        }
    }
}

/// Notes, and the conversation through which they are reached.
struct NotesHandle {
    chat: Conversation,
    memory: Memory,
}

impl NotesHandle {
    /// Opens the notes of `keeper`; `None` if the owner has no conversation yet, and so no notes.
    async fn open_existing(
        context: &ToolContext,
        keeper: NoteOwner<'_>,
    ) -> Result<Option<Self>, ToolError> {
        let list = |resource: Option<&str>| ListConversations {
            resource: resource.map(str::to_owned),
            limit: Some(1),
            ..ListConversations::default()
        };
        let (id, scope) = match keeper {
            // The scope falls back to the conversation where it has no resource.
            NoteOwner::Conversation(id) => (id.to_owned(), StateScope::Resource),
            // Notes are reached through a conversation. All of a resource share them, so any will
            // do: the newest.
            NoteOwner::Resource(resource) => {
                let page = context
                    .engine
                    .list_conversations(&context.owner, list(Some(resource)));
                let newest = page.await?.conversations.into_iter().next();
                // A resource exists only by its conversations. None is made here: a mistyped name
                // would become one.
                let newest = newest.ok_or_else(|| {
                    let message = format!("the resource {resource:?} has no conversation");
                    ToolError::new("not_found", message)
                        .with_hint("list_conversations gives the resources there are; leave `resource` out for the owner's own notes")
                })?;
                (newest.id.to_string(), StateScope::Resource)
            }
            NoteOwner::Owner => {
                let page = context
                    .engine
                    .list_conversations(&context.owner, list(None))
                    .await?;
                match page.conversations.first() {
                    Some(newest) => (newest.id.to_string(), StateScope::Global),
                    // Readers make nothing; `open_or_create` is for who writes.
                    None => return Ok(None),
                }
            }
        };
        Self::for_conversation(context.open_conversation(&id, None).await?, scope).map(Some)
    }

    /// Opens the notes of `keeper`, and creates a conversation if the owner has none.
    async fn open_or_create(
        context: &ToolContext,
        keeper: NoteOwner<'_>,
    ) -> Result<Self, ToolError> {
        match Self::open_existing(context, keeper).await? {
            Some(opened) => Ok(opened),
            None => {
                let builder = context
                    .engine
                    .conversation(NOTES_CONVERSATION)
                    .owner(context.owner.as_str());
                Self::for_conversation(builder.title("Notes").open().await?, StateScope::Global)
            }
        }
    }

    fn for_conversation(chat: Conversation, scope: StateScope) -> Result<Self, ToolError> {
        let memory = Memory::new().with_scope(scope);
        let layers = Layers::new().with_layer(memory.clone());
        // On this handle only: nothing about layers is stored.
        chat.set_layers(layers.map_err(EngineError::from)?);
        Ok(Self { chat, memory })
    }

    async fn read_notes(&self) -> Result<(Notes, NoteTime), ToolError> {
        let session = self.chat.layer_session(None).await?;
        let notes = session.state::<Memory>().map_err(EngineError::from)?;
        let at = self.memory.note_time(notes, session.context());
        Ok((notes.clone(), at))
    }

    /// Changes the stored notes; `change` runs again if another writer was faster.
    async fn update_notes<T: Send>(
        &self,
        mut change: impl FnMut(&mut Notes, NoteTime) -> Result<T, ToolError> + Send,
    ) -> Result<T, ToolError> {
        let handle = self.chat.layer::<Memory>()?;
        let changed = handle.update(|notes, context| {
            let at = self.memory.note_time(notes, context);
            // A refusal is a value of an update that itself went well; the caller unwraps both.
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
    const EFFECT: ToolEffect = ToolEffect::Reads;
    type Arguments = ReadMemoryArguments;
    type Answer = NoteList;

    async fn call(
        context: ToolContext,
        arguments: ReadMemoryArguments,
    ) -> Result<NoteList, ToolError> {
        let keeper = NoteOwner::from_arguments(&arguments.resource, &arguments.conversation)?;
        let (notes, at) = match NotesHandle::open_existing(&context, keeper).await? {
            Some(opened) => opened.read_notes().await?,
            None => Default::default(),
        };
        if let Some(key) = &arguments.key {
            let note = notes.get_live(key, at).ok_or_else(|| note_not_found(key))?;
            let note = note_info(key, note, usize::MAX);
            return Ok(NoteList { notes: vec![note] });
        }
        let lengths = notes
            .iter_live(at)
            .map(|(_, note)| note.value.chars().count());
        // Short notes stay whole; the longest give way.
        let cap = fair_share(lengths.collect(), PAGE_CHARACTERS);
        let notes = notes
            .iter_live(at)
            .map(|(key, note)| note_info(key, note, cap));
        Ok(NoteList {
            notes: notes.collect(),
        })
    }
}

impl Tool for CreateMemory {
    const NAME: &'static str = "create_memory";
    const TITLE: &'static str = "Create a note";
    const ABOUT: &'static str = "Keeps a note for later conversations: a preference, a decision, a fact that was \
        hard to find. Keep it short; say so that it is understood alone.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Arguments = CreateMemoryArguments;
    type Answer = ChangedNote;

    async fn call(
        context: ToolContext,
        arguments: CreateMemoryArguments,
    ) -> Result<ChangedNote, ToolError> {
        let keeper = NoteOwner::from_arguments(&arguments.resource, &arguments.conversation)?;
        let opened = NotesHandle::open_or_create(&context, keeper).await?;
        let edit = NoteUpdate {
            value: Some(arguments.value),
            description: arguments.description,
            importance: arguments.importance,
            ttl: arguments.expires_in.map(ttl_from_seconds),
        };
        let key = arguments.key;
        let change = opened.update_notes(|notes, at| {
            // Asked inside the update: between an earlier look and the write another may have made
            // it. One that has expired does not count.
            if notes.get_live(&key, at).is_some() {
                let message = format!("there is a note {key:?} already");
                return Err(ToolError::new("already_exists", message)
                    .with_hint("change it with update_memory, or choose another key"));
            }
            notes.upsert(&key, edit.clone(), at).map_err(note_refused)
        });
        let done = change.await?;
        Ok(changed_note(key, done))
    }
}

impl Tool for UpdateMemory {
    const NAME: &'static str = "update_memory";
    const TITLE: &'static str = "Change a note";
    const ABOUT: &'static str = "Changes a note that is kept. What is left out stays as it is.";
    const EFFECT: ToolEffect = ToolEffect::Replaces;
    type Arguments = UpdateMemoryArguments;
    type Answer = ChangedNote;

    async fn call(
        context: ToolContext,
        arguments: UpdateMemoryArguments,
    ) -> Result<ChangedNote, ToolError> {
        let keeper = NoteOwner::from_arguments(&arguments.resource, &arguments.conversation)?;
        let key = arguments.key;
        let opened = NotesHandle::open_existing(&context, keeper).await?;
        let opened = opened.ok_or_else(|| note_not_found(&key))?;
        let edit = NoteUpdate {
            value: arguments.value,
            description: arguments.description,
            importance: arguments.importance,
            ttl: arguments.expires_in.map(ttl_from_seconds),
        };
        let change = opened.update_notes(|notes, at| {
            notes
                .get_live(&key, at)
                .ok_or_else(|| note_not_found(&key))?;
            notes.upsert(&key, edit.clone(), at).map_err(note_refused)
        });
        let done = change.await?;
        Ok(changed_note(key, done))
    }
}

impl Tool for DeleteMemory {
    const NAME: &'static str = "delete_memory";
    const TITLE: &'static str = "Delete a note";
    const ABOUT: &'static str =
        "Deletes a note that is wrong or no longer needed. It cannot be had back.";
    const EFFECT: ToolEffect = ToolEffect::Replaces;
    type Arguments = DeleteMemoryArguments;
    type Answer = ChangedNote;

    async fn call(
        context: ToolContext,
        arguments: DeleteMemoryArguments,
    ) -> Result<ChangedNote, ToolError> {
        let keeper = NoteOwner::from_arguments(&arguments.resource, &arguments.conversation)?;
        let key = arguments.key;
        let opened = NotesHandle::open_existing(&context, keeper).await?;
        let opened = opened.ok_or_else(|| note_not_found(&key))?;
        let change = opened.update_notes(|notes, at| {
            notes
                .get_live(&key, at)
                .ok_or_else(|| note_not_found(&key))?;
            notes.delete(&key);
            Ok(())
        });
        change.await?;
        Ok(ChangedNote {
            key,
            done: "deleted".to_owned(),
        })
    }
}

fn note_info(key: &str, note: &Note, cap: usize) -> NoteInfo {
    let characters = note.value.chars().count();
    let cut = characters > cap;
    let mut value: String = note.value.chars().take(cap).collect();
    if cut {
        value.push('…');
    }
    NoteInfo {
        key: key.to_owned(),
        value,
        characters: cut.then_some(characters),
        description: note.description.clone(),
        importance: note.importance,
        created: format_timestamp(note.created_ms),
        updated: format_timestamp(note.updated_ms),
        expires: note.expires.map(|expiry| match expiry {
            Expiry::AtMs(ms) => format_timestamp(ms),
            Expiry::AtResponse(_) => "after some more answers".to_owned(),
        }),
    }
}

fn changed_note(key: String, done: EditResult) -> ChangedNote {
    ChangedNote {
        key,
        done: done.as_str().to_owned(),
    }
}

/// Converts seconds to a time to live; 0 means for ever.
fn ttl_from_seconds(seconds: u64) -> NoteTtl {
    match seconds {
        0 => NoteTtl::Never,
        seconds => NoteTtl::Ms(seconds.saturating_mul(1_000)),
    }
}

fn note_not_found(key: &str) -> ToolError {
    ToolError::new("not_found", format!("there is no note {key:?}"))
        .with_hint("read_memory gives the notes there are; create_memory makes one")
}

fn note_refused(error: NoteError) -> ToolError {
    ToolError::new("note_refused", error.to_string())
}
