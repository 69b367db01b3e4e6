//! Notes of the memory layer.

use contexture::layers::builtin::memory::{Expiry, Note, NoteTime, NoteTtl, NoteUpdate};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::schema::NoteOutcomeSchema;
use crate::time::format_timestamp;

/// A note of the memory layer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NoteDocument {
    /// Key of the note, unique in its scope.
    pub key: String,
    /// Text of the note.
    pub value: String,
    /// Subject of the note; `null` if none was given.
    pub description: Option<String>,
    /// Importance from 0 to 100, larger is more; `null` if none was given.
    pub importance: Option<u8>,
    /// Time of its creation (RFC 3339).
    pub created: String,
    /// Time of its last change (RFC 3339).
    pub updated: String,
    /// Number of writes that changed the note, its creation included.
    pub updates: u64,
    /// When the note expires; `null` if it never does.
    pub expires: Option<ExpiryDocument>,
    /// What it said before, the newest first; at most 16. Absent if it never said anything else.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierValueDocument>,
}

/// What a note said before.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct EarlierValueDocument {
    /// Text that it had.
    pub value: String,
    /// Since when (RFC 3339).
    pub from: String,
    /// Until when (RFC 3339).
    pub until: String,
}

/// The time at which a note expires.
#[derive(Clone, Debug, Serialize, ToSchema)]
#[serde(rename_all = "lowercase")]
pub enum ExpiryDocument {
    /// After this number of further answers of the model.
    Answers(u64),
    /// At this time (RFC 3339).
    At(String),
}

impl NoteDocument {
    /// Creates the document of a note, as it is at a moment.
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
            earlier: note
                .earlier
                .iter()
                .map(|was| EarlierValueDocument {
                    value: was.value.clone(),
                    from: format_timestamp(was.from_ms),
                    until: format_timestamp(was.until_ms),
                })
                .collect(),
        }
    }
}

/// The notes that have not expired, in order of key.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NotesDocument {
    /// The notes, in order of key.
    pub notes: Vec<NoteDocument>,
    /// Value of `after` for the next page; `null` on the last.
    pub next: Option<String>,
}

/// A change of a note; fields that are left out stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NoteEdit)]
pub struct NoteEditDocument {
    /// Text of the note; required for a new one.
    pub value: Option<String>,
    /// Subject of the note; an empty text removes it.
    pub description: Option<String>,
    /// Importance from 0 to 100: the larger, the later the note is left out where space is short.
    #[schema(maximum = 100)]
    pub importance: Option<u8>,
    /// When the note expires. Default: unchanged; never, for a new note.
    #[schema(inline)]
    pub expires: Option<NoteLifetime>,
}

/// How long a note is kept, from now.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum NoteLifetime {
    /// The note never expires.
    Never,
    /// After this number of further answers of the model.
    Answers(u64),
    /// After this number of milliseconds.
    Ms(u64),
}

impl From<NoteEditDocument> for NoteUpdate {
    fn from(asked: NoteEditDocument) -> Self {
        Self {
            value: asked.value,
            description: asked.description,
            importance: asked.importance,
            ttl: asked.expires.map(|expires| match expires {
                NoteLifetime::Never => NoteTtl::Never,
                NoteLifetime::Answers(count) => NoteTtl::Responses(count),
                NoteLifetime::Ms(ms) => NoteTtl::Ms(ms),
            }),
        }
    }
}

/// The result of a write to a note.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct NoteDoneDocument {
    /// Key of the note.
    pub key: String,
    /// Outcome of the write.
    #[schema(value_type = NoteOutcomeSchema)]
    pub done: &'static str,
}
