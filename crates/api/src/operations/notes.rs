//! The notes of the memory layer, read and changed by a program or a person instead of a model.

use contexture::layers::builtin::Memory;
use contexture::layers::builtin::memory::{NoteError, NoteTime, NoteUpdate, Notes};
use contexture::layers::{Layers, StateScope};
use contexture::{Conversation, EngineError};

use crate::documents::NoteDocument;

/// Why notes were not read or changed.
#[derive(Debug, thiserror::Error)]
pub enum NotesError {
    /// There is no such note, or it has expired.
    #[error("no note {key:?}")]
    NoNote {
        /// Key of the note.
        key: String,
    },
    /// A note that is not valid, or for which there is no room.
    #[error(transparent)]
    Note(#[from] NoteError),
    /// The engine's own error.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl NotesError {
    /// Returns the stable word of the error: `no_note`, `memory_full`, `invalid_note`, or the engine's own.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::NoNote { .. } | Self::Note(NoteError::NoNote { .. }) => "no_note",
            // The note itself is valid; there is no room for it.
            Self::Note(NoteError::TooMany { .. } | NoteError::Full { .. }) => "memory_full",
            Self::Note(_) => "invalid_note",
            Self::Engine(error) => error.kind(),
        }
    }
}

/// The notes of a conversation in one scope.
#[derive(Debug)]
pub struct ConversationNotes {
    chat: Conversation,
    memory: Memory,
}

impl ConversationNotes {
    /// Gives the conversation's handle the layer that keeps notes in this scope, and no other layer.
    ///
    /// # Errors
    /// The engine's.
    pub fn new(chat: Conversation, scope: StateScope) -> Result<Self, NotesError> {
        let memory = Memory::new().with_scope(scope);
        let layers = Layers::new().with_layer(memory.clone());
        chat.set_layers(layers.map_err(EngineError::from)?);
        Ok(Self { chat, memory })
    }

    /// Reads the notes, and the time by which their expiry is judged.
    ///
    /// # Errors
    /// The store's.
    pub async fn read(&self) -> Result<(Notes, NoteTime), EngineError> {
        let session = self.chat.layer_session(None).await?;
        let notes = session.state::<Memory>().map_err(EngineError::from)?;
        let at = self.memory.note_time(notes, session.context());
        Ok((notes.clone(), at))
    }

    /// Lists the notes that have not expired, by key.
    ///
    /// # Errors
    /// The store's.
    pub async fn list(&self) -> Result<Vec<NoteDocument>, NotesError> {
        let (notes, at) = self.read().await?;
        let live = notes.iter_live(at);
        Ok(live
            .map(|(key, note)| NoteDocument::new(key, note, at))
            .collect())
    }

    /// Returns a note by its key.
    ///
    /// # Errors
    /// `no_note` if there is none or it has expired, or the store's.
    pub async fn get(&self, key: &str) -> Result<NoteDocument, NotesError> {
        let (notes, at) = self.read().await?;
        let note = notes.get_live(key, at).ok_or_else(|| no_note(key))?;
        Ok(NoteDocument::new(key, note, at))
    }

    /// Creates a note or changes one, and returns what it did: `created`, `updated` or `unchanged`.
    ///
    /// # Errors
    /// The note is not valid or there is no room for it, or the store's.
    pub async fn put(&self, key: &str, edit: &NoteUpdate) -> Result<&'static str, NotesError> {
        let done = self.change(|notes, at| notes.upsert(key, edit.clone(), at));
        Ok(done.await??.as_str())
    }

    /// Deletes a note that has not expired.
    ///
    /// # Errors
    /// `no_note` if there is none or it has expired, or the store's.
    pub async fn delete(&self, key: &str) -> Result<(), NotesError> {
        let gone = self.change(|notes, at| {
            // Asked inside the change: what has expired counts as gone.
            let is_live = notes.get_live(key, at).is_some();
            is_live.then(|| notes.delete(key)).flatten()
        });
        gone.await?.map(|_| ()).ok_or_else(|| no_note(key))
    }

    /// Changes notes in one transaction. The function may be called again, on what another writer has stored meanwhile.
    ///
    /// # Errors
    /// The store's.
    pub async fn change<T>(
        &self,
        mut change: impl FnMut(&mut Notes, NoteTime) -> T + Send,
    ) -> Result<T, EngineError>
    where
        T: Send,
    {
        let handle = self.chat.layer::<Memory>()?;
        let done = handle.update(|notes, context| {
            let at = self.memory.note_time(notes, context);
            Ok(change(notes, at))
        });
        done.await
    }
}

fn no_note(key: &str) -> NotesError {
    NotesError::NoNote {
        key: key.to_owned(),
    }
}
