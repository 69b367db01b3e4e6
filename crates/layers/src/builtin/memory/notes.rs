//! Notes: their content, limits and expiry.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Maximum number of notes.
pub const MAX_NOTES: usize = 256;
/// Maximum length of a key, in bytes of UTF-8.
pub const MAX_KEY_BYTES: usize = 128;
/// Maximum length of a value, in bytes of UTF-8.
pub const MAX_VALUE_BYTES: usize = 8 * 1024;
/// Maximum length of a description, in bytes of UTF-8.
pub const MAX_DESCRIPTION_BYTES: usize = 1024;
/// The highest importance.
pub const MAX_IMPORTANCE: u8 = 100;
/// Maximum number of earlier values that are kept of a note; the oldest goes first.
pub const MAX_EARLIER: usize = 16;
/// Maximum size of all keys, values and descriptions together, in bytes of UTF-8. Earlier values take what these leave of it: the
/// oldest of all notes go first, and none is ever why a note is refused.
pub const MAX_TOTAL_BYTES: usize = 256 * 1024;

/// Notes by key.
///
/// ```
/// use contexture_layers::builtin::memory::{EditResult, NoteUpdate, NoteTime, Notes, NoteTtl};
///
/// let mut notes = Notes::default();
/// let at = NoteTime { now_ms: 0, responses: 7 };
/// let edit = NoteUpdate { ttl: Some(NoteTtl::Responses(2)), ..NoteUpdate::with_value("closed on Mondays") };
/// assert_eq!(notes.upsert("hours", edit, at)?, EditResult::Created);
/// assert_eq!(notes.iter_live(NoteTime { responses: 8, ..at }).count(), 1);
/// assert_eq!(notes.iter_live(NoteTime { responses: 9, ..at }).count(), 0);
/// # Ok::<(), contexture_layers::builtin::memory::NoteError>(())
/// ```
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Notes {
    notes: BTreeMap<String, Note>,
    /// Answers counted while some note expires by them; 0 while none does.
    #[serde(default, skip_serializing_if = "is_zero")]
    answers: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
const fn is_zero(n: &u64) -> bool {
    *n == 0
}

/// A fact to remember, with its dates.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// Content of the note.
    pub value: String,
    /// Subject of the note.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub description: Option<String>,
    /// When it was created, in milliseconds since the Unix epoch.
    pub created_ms: i64,
    /// When it was last changed, in milliseconds since the Unix epoch.
    pub updated_ms: i64,
    /// How often it was written, the first time included.
    pub updates: u64,
    /// Importance, at most [`MAX_IMPORTANCE`]; larger is more important. Absent is less than 0.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub importance: Option<u8>,
    /// When it expires; absent means never.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires: Option<Expiry>,
    /// What it said before, the newest first; at most [`MAX_EARLIER`]. Deleting the note removes it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub earlier: Vec<EarlierValue>,
}

/// What a note said before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EarlierValue {
    /// Content that it had.
    pub value: String,
    /// Since when, in milliseconds since the Unix epoch.
    pub from_ms: i64,
    /// Until when, in milliseconds since the Unix epoch.
    pub until_ms: i64,
}

/// When a note expires.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Expiry {
    /// At this number of answers.
    AtResponse(u64),
    /// At this time, in milliseconds since the Unix epoch.
    AtMs(i64),
}

/// Lifetime of a note.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum NoteTtl {
    /// Shown in this many calls.
    Responses(u64),
    /// This many milliseconds.
    Ms(u64),
    /// Never expires; removes an earlier limit.
    Never,
}

/// The current time and answer count, by which notes expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct NoteTime {
    /// Current time, in milliseconds since the Unix epoch.
    pub now_ms: i64,
    /// Number of answers so far.
    pub responses: u64,
}

/// A change of a note. Absent fields stay as they are.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NoteUpdate {
    /// The new content; required for a new note.
    pub value: Option<String>,
    /// The new subject; an empty text removes it.
    pub description: Option<String>,
    /// The new importance.
    pub importance: Option<u8>,
    /// The new lifetime, from now.
    pub ttl: Option<NoteTtl>,
}

impl NoteUpdate {
    /// Creates an update of the value only.
    #[must_use]
    pub fn with_value(value: impl Into<String>) -> Self {
        Self {
            value: Some(value.into()),
            ..Self::default()
        }
    }
}

/// Result of an edit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EditResult {
    /// The note is new.
    Created,
    /// It was changed.
    Updated,
    /// The note already had this content.
    Unchanged,
}

impl EditResult {
    /// All results of an edit.
    pub const ALL: [Self; 3] = [Self::Created, Self::Updated, Self::Unchanged];

    /// Returns the name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Created => "created",
            Self::Updated => "updated",
            Self::Unchanged => "unchanged",
        }
    }
}

/// Why a note is not stored. The texts may be shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum NoteError {
    /// The key is empty.
    #[error("the key is empty: name the note")]
    EmptyKey,
    /// The model may not use this key.
    #[error("{key:?} is no key that may be used; these may: {allowed}")]
    NotAllowed {
        /// The rejected key.
        key: String,
        /// Those that are allowed.
        allowed: String,
    },
    /// There is no such note.
    #[error("there is no note {key:?}: create it, with a value")]
    NoNote {
        /// The unknown key.
        key: String,
    },
    /// A part of the note is too long.
    #[error("the {what} has {bytes} bytes, the limit is {limit}: shorten it")]
    TooLong {
        /// The part: `key`, `value`, `description`.
        what: &'static str,
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The importance is too high.
    #[error("`importance` is {importance}: expected 0 to {limit}")]
    TooImportant {
        /// The importance that was given.
        importance: u8,
        /// The highest accepted value.
        limit: u8,
    },
    /// There are too many notes.
    #[error("there are {limit} notes, which is the limit: delete one that is no longer needed")]
    TooMany {
        /// The highest number of notes.
        limit: usize,
    },
    /// The notes take too many bytes.
    #[error("all notes would take {bytes} bytes, the limit is {limit}: delete or shorten some")]
    Full {
        /// Bytes that they would take.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
}

impl Note {
    const fn is_live(&self, at: NoteTime) -> bool {
        match self.expires {
            None => true,
            // At the limit the note has expired: a lifetime of one shows it in one call.
            Some(Expiry::AtResponse(n)) => at.responses < n,
            Some(Expiry::AtMs(ms)) => at.now_ms < ms,
        }
    }

    fn byte_len(&self) -> usize {
        self.value.len() + self.description.as_ref().map_or(0, String::len)
    }

    fn earlier_len(&self) -> usize {
        self.earlier.iter().map(|one| one.value.len()).sum()
    }

    /// The value as it was until now. A change of something else did not begin it, so it began when the one before ended.
    fn as_earlier_value(&self, until_ms: i64) -> EarlierValue {
        let before = self.earlier.first();
        EarlierValue {
            value: self.value.clone(),
            from_ms: before.map_or(self.created_ms, |before| before.until_ms),
            until_ms,
        }
    }
}

impl NoteTtl {
    const fn to_expiry(self, at: NoteTime) -> Option<Expiry> {
        match self {
            // Saturating below: the largest number that a model may give must not wrap around into the past.
            Self::Never => None,
            Self::Responses(n) => Some(Expiry::AtResponse(at.responses.saturating_add(n))),
            Self::Ms(ms) => Some(Expiry::AtMs(at.now_ms.saturating_add_unsigned(ms))),
        }
    }
}

impl Notes {
    /// A note, expired or not.
    #[must_use]
    pub fn get(&self, key: &str) -> Option<&Note> {
        self.notes.get(key)
    }

    /// A note that has not expired.
    #[must_use]
    pub fn get_live(&self, key: &str, at: NoteTime) -> Option<&Note> {
        self.get(key).filter(|note| note.is_live(at))
    }

    /// The notes that have not expired, by key.
    pub fn iter_live(&self, at: NoteTime) -> impl Iterator<Item = (&str, &Note)> {
        let live = self.notes.iter().filter(move |(_, note)| note.is_live(at));
        live.map(|(key, note)| (key.as_str(), note))
    }

    /// Creates or changes a note. Expired notes are removed first, so an expired note is created again.
    ///
    /// # Errors
    /// [`NoteError`]; all other notes stay unchanged.
    pub fn upsert(
        &mut self,
        key: &str,
        edit: NoteUpdate,
        at: NoteTime,
    ) -> Result<EditResult, NoteError> {
        // Without `stop_counting`: the new note may expire after a number of answers, so their count must not be reset.
        self.notes.retain(|_, note| note.is_live(at));
        if key.is_empty() {
            return Err(NoteError::EmptyKey);
        }
        check_length("key", key, MAX_KEY_BYTES)?;
        let old = self.notes.get(key);
        let mut note = match (old, &edit.value) {
            (Some(old), _) => old.clone(),
            (None, Some(_)) => Note {
                value: String::new(),
                description: None,
                created_ms: at.now_ms,
                updated_ms: at.now_ms,
                updates: 0,
                importance: None,
                expires: None,
                earlier: Vec::new(),
            },
            (None, None) => {
                return Err(NoteError::NoNote {
                    key: key.to_owned(),
                });
            }
        };
        note.value = edit.value.unwrap_or(note.value);
        check_length("value", &note.value, MAX_VALUE_BYTES)?;
        if let Some(description) = edit.description {
            check_length("description", &description, MAX_DESCRIPTION_BYTES)?;
            note.description = (!description.is_empty()).then_some(description);
        }
        if let Some(importance) = edit.importance.filter(|asked| *asked > MAX_IMPORTANCE) {
            return Err(NoteError::TooImportant {
                importance,
                limit: MAX_IMPORTANCE,
            });
        }
        note.importance = edit.importance.or(note.importance);
        note.expires = edit.ttl.map_or(note.expires, |ttl| ttl.to_expiry(at));
        let done = match old {
            // No new time stamp for the same content: the state stays equal, so nothing is stored.
            Some(old) if *old == note => return Ok(EditResult::Unchanged),
            Some(_) => EditResult::Updated,
            None => EditResult::Created,
        };
        // Checked before the change, and only for changes: a full memory still accepts an unchanged note.
        self.check_room(key, &note)?;
        if let Some(old) = old.filter(|old| old.value != note.value) {
            note.earlier.insert(0, old.as_earlier_value(at.now_ms));
            note.earlier.truncate(MAX_EARLIER);
        }
        note.updated_ms = at.now_ms;
        note.updates = note.updates.saturating_add(1);
        self.notes.insert(key.to_owned(), note);
        self.drop_earlier_values();
        self.stop_counting();
        Ok(done)
    }

    /// Drops the oldest earlier values until all fit.
    fn drop_earlier_values(&mut self) {
        let size = |(key, note): (&String, &Note)| key.len() + note.byte_len() + note.earlier_len();
        let mut bytes: usize = self.notes.iter().map(size).sum();
        while bytes > MAX_TOTAL_BYTES {
            let histories = self
                .notes
                .values_mut()
                .filter(|note| !note.earlier.is_empty());
            let oldest = histories.min_by_key(|note| note.earlier.last().map(|one| one.until_ms));
            let Some(gone) = oldest.and_then(|note| note.earlier.pop()) else {
                return;
            };
            bytes -= gone.value.len();
        }
    }

    /// Checks that there is room for a note under this key.
    fn check_room(&self, key: &str, note: &Note) -> Result<(), NoteError> {
        let (mut count, mut bytes) = (1, key.len() + note.byte_len());
        for (other, note) in self.notes.iter().filter(|(other, _)| *other != key) {
            count += 1;
            bytes += other.len() + note.byte_len();
        }
        if count > MAX_NOTES {
            return Err(NoteError::TooMany { limit: MAX_NOTES });
        }
        if bytes > MAX_TOTAL_BYTES {
            return Err(NoteError::Full {
                bytes,
                limit: MAX_TOTAL_BYTES,
            });
        }
        Ok(())
    }

    /// Removes a note and returns it.
    pub fn delete(&mut self, key: &str) -> Option<Note> {
        let old = self.notes.remove(key);
        self.stop_counting();
        old
    }

    /// Removes expired notes and returns them, by key.
    pub fn remove_expired(&mut self, at: NoteTime) -> Vec<(String, Note)> {
        let gone = self.notes.extract_if(.., |_, note| !note.is_live(at));
        let gone = gone.collect();
        self.stop_counting();
        gone
    }

    pub(super) const fn answer_count(&self) -> u64 {
        self.answers
    }

    /// Sets the number of answers, if any note expires by it.
    pub(super) fn set_answer_count(&mut self, answers: u64) {
        self.answers = answers;
        self.stop_counting();
    }

    /// Resets the count of answers if no note expires by it: otherwise every answer would change the state and store
    /// it.
    fn stop_counting(&mut self) {
        let waits = |note: &Note| matches!(note.expires, Some(Expiry::AtResponse(_)));
        if !self.notes.values().any(waits) {
            self.answers = 0;
        }
    }
}

fn check_length(what: &'static str, text: &str, limit: usize) -> Result<(), NoteError> {
    match text.len() {
        bytes if bytes > limit => Err(NoteError::TooLong { what, bytes, limit }),
        _ => Ok(()),
    }
}
