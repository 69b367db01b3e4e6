//! Notes of the memory layer.

use contexture::layers::builtin::memory::{Expiry, Note, NoteTime};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::format_timestamp;

/// A note.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NoteDocument {
    /// Its key.
    pub key: String,
    /// What it says.
    pub value: String,
    /// What it is about.
    pub description: Option<String>,
    /// How important it is, 0 to 100.
    pub importance: Option<u8>,
    /// When it was made.
    pub created: String,
    /// When it was last changed.
    pub updated: String,
    /// How often it was changed.
    pub updates: u64,
    /// When it is forgotten; `null`: never.
    pub expires: Option<ExpiryDocument>,
}

/// When a note is forgotten.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExpiryDocument {
    /// After so many more answers of the model.
    Answers(u64),
    /// At this time.
    At(String),
}

impl NoteDocument {
    /// A note as it is at a moment.
    #[must_use]
    pub fn new(key: &str, note: &Note, at: NoteTime) -> Self {
        Self {
            key: key.to_owned(),
            value: note.value.clone(),
            description: note.description.clone(),
            importance: note.importance,
            created: format_timestamp(note.created_ms),
            updated: format_timestamp(note.updated_ms),
            updates: note.updates,
            expires: note.expires.map(|expiry| match expiry {
                // Stored as an absolute count of answers; a reader wants to know how many are left.
                Expiry::AtResponse(last) => {
                    ExpiryDocument::Answers(last.saturating_sub(at.responses))
                }
                Expiry::AtMs(ms) => ExpiryDocument::At(format_timestamp(ms)),
            }),
        }
    }
}

/// The notes that have not expired, by key.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NotesDocument {
    /// The notes.
    pub notes: Vec<NoteDocument>,
}

/// What became of a note.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NoteDoneDocument {
    /// Its key.
    pub key: String,
    /// `created`, `updated`, `unchanged`.
    pub done: &'static str,
}
