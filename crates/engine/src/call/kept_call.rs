//! Calls that were compiled and whose answers another request brings, perhaps to another process: each is kept as a value beside
//! the tree for an hour, so that compiling changes nothing of a conversation.
//!
//! A conversation keeps at most [`SLOTS`] of them. Each has a slot by the hash of what it says, so that the same call compiled twice is
//! kept once; beyond that the oldest of a few makes room.
//!
//! Not here: storing the answer (`record`).

use contexture_ir::{ContentHash, NodeId, Raw};
use contexture_store::{
    Error as StoreError, ExpectedVersion, KeyScope, KeyValueEntry, ListEntries, PutEntry,
    list_all_entries,
};
use contexture_wire::Format;
use serde::{Deserialize, Serialize};

use super::compile::CompiledCall;
use super::sent_call::SentCall;
use crate::error::EngineError;
use crate::handle::Conversation;

/// What the keys of kept calls begin with, in the conversation's scope; the number of a slot follows.
const PREFIX: &str = "calls/";
/// How many calls a conversation keeps.
const SLOTS: usize = 32;
/// How many slots are looked at for one call.
const PROBES: usize = 4;
/// How long a call is kept at least, as long as there is room, in milliseconds.
const KEPT_MS: i64 = 60 * 60 * 1000;
/// How often a concurrent write is met with another attempt.
const ATTEMPTS: usize = 8;

/// A compiled call that was kept until its answer comes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct KeptCall {
    /// Id by which it is found.
    pub id: String,
    /// What its maker noted with it.
    pub note: Raw,
    pub(crate) call: SentCall,
}

impl KeptCall {
    /// Returns the format of the request, and of the answer.
    #[must_use]
    pub const fn format(&self) -> Format {
        self.call.format
    }
}

/// Keeps a compiled call until its answer comes, and returns its id: the same for the same call and note.
pub(crate) async fn keep_call(
    chat: &Conversation,
    call: &CompiledCall,
    note: Raw,
) -> Result<String, EngineError> {
    let call = SentCall::from_call(chat.engine(), call);
    let hash = ContentHash::of(&encode(&(&call, &note)));
    let id = NodeId::derive("call", &[hash.as_bytes()]).to_string();
    let value = encode(&KeptCall {
        id: id.clone(),
        note,
        call,
    });
    let mut target = (
        slot_keys(&id).next().unwrap_or_default(),
        ExpectedVersion::Absent,
    );
    for _ in 0..ATTEMPTS {
        let (key, expect) = target;
        let put = PutEntry {
            key,
            value: Some(value.clone().into()),
            expect,
            at_ms: chat.engine().now_ms(),
        };
        match chat
            .store()
            .put_entry(chat.owner(), &scope(chat), put)
            .await
        {
            Ok(_) => return Ok(id),
            Err(StoreError::VersionConflict { .. }) => match find_room(chat, &id).await? {
                None => return Ok(id),
                Some(room) => target = room,
            },
            Err(error) => return Err(error.into()),
        }
    }
    // So many others keep calls of one conversation at once that this one gives up its plan: the answer is stored all the same.
    Ok(id)
}

/// Loads a kept call; `None` if it is not kept any more, or never was.
pub(crate) async fn load_kept_call(
    chat: &Conversation,
    id: &str,
) -> Result<Option<KeptCall>, EngineError> {
    for key in slot_keys(id) {
        let entry = chat
            .store()
            .get_entry(chat.owner(), &scope(chat), &key)
            .await?;
        let kept = entry.as_ref().and_then(decode);
        if let Some(kept) = kept.filter(|kept| kept.id == id) {
            return Ok(Some(kept));
        }
    }
    Ok(None)
}

/// Loads the kept call of the conversation that was compiled last; `None` if none is kept.
pub(crate) async fn load_newest_kept_call(
    chat: &Conversation,
) -> Result<Option<KeptCall>, EngineError> {
    let list = ListEntries::in_scope(scope(chat), PREFIX);
    let entries = list_all_entries(chat.store(), chat.owner(), list).await?;
    let oldest_ms = chat.engine().now_ms().saturating_sub(KEPT_MS);
    // Slots are used anew when there is no room: an old one may be of another loop.
    let entries = entries.iter().map(|(_, entry)| entry);
    let recent = entries.filter(|entry| entry.at_ms >= oldest_ms);
    Ok(recent.max_by_key(|entry| entry.at_ms).and_then(decode))
}

/// Returns the slot that a call may take, and what is there now; `None` if the call is kept already.
async fn find_room(
    chat: &Conversation,
    id: &str,
) -> Result<Option<(String, ExpectedVersion)>, EngineError> {
    let oldest_ms = chat.engine().now_ms().saturating_sub(KEPT_MS);
    let mut oldest: Option<KeyValueEntry> = None;
    for key in slot_keys(id) {
        let entry = chat
            .store()
            .get_entry(chat.owner(), &scope(chat), &key)
            .await?;
        let Some(entry) = entry else {
            return Ok(Some((key, ExpectedVersion::Absent)));
        };
        if decode(&entry).is_some_and(|kept| kept.id == id) {
            return Ok(None);
        }
        if oldest
            .as_ref()
            .is_none_or(|oldest| entry.at_ms < oldest.at_ms)
        {
            oldest = Some(entry);
        }
        if oldest
            .as_ref()
            .is_some_and(|oldest| oldest.at_ms < oldest_ms)
        {
            break;
        }
    }
    Ok(oldest.map(|entry| (entry.key, ExpectedVersion::Version(entry.version))))
}

fn slot_keys(id: &str) -> impl Iterator<Item = String> {
    let hash = ContentHash::of(id.as_bytes());
    let first = usize::from(hash.as_bytes().first().copied().unwrap_or_default());
    (first..first + PROBES).map(|slot| format!("{PREFIX}{}", slot % SLOTS))
}

fn scope(chat: &Conversation) -> KeyScope {
    KeyScope::Conversation(chat.id().clone())
}

fn encode(value: &impl Serialize) -> Vec<u8> {
    // Strings, numbers and JSON: nothing that could not be written.
    serde_json::to_vec(value).unwrap_or_default()
}

fn decode(entry: &KeyValueEntry) -> Option<KeptCall> {
    serde_json::from_slice(&entry.value).ok()
}
