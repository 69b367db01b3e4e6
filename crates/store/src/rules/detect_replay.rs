//! Recognises an append that repeats an earlier one.

use contexture_ir::{ContentHash, NodeId};

use crate::contract::{Error, IdConflict, NewItem};

/// What must be known of a stored node whose id an append carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// Hash of its bytes.
    pub content_hash: ContentHash,
    /// The node before it.
    pub parent: Option<NodeId>,
    /// Whether it was redacted.
    pub redacted: bool,
}

/// Whether `items` repeat an earlier append: `stored` says, item by item, what is stored under its
/// id. An append without items never does.
pub fn detect_replay(items: &[NewItem], stored: &[Option<StoredItem>]) -> Result<bool, Error> {
    let Some(first) = stored.iter().position(Option::is_some) else {
        return Ok(false);
    };
    let mut before: Option<NodeId> = None;
    for (index, (item, stored)) in items.iter().zip(stored).enumerate() {
        let conflict = |node, why| Err(Error::IdConflict { node, why });
        let Some(stored) = stored else {
            // Name a node that does exist.
            let known = items.get(first).map_or(item.id, |item| item.id);
            return conflict(known, IdConflict::NotARepeat);
        };
        // The bytes are gone, so nobody can tell whether they were the same; a conflict is the safe
        // answer.
        if stored.redacted {
            return conflict(item.id, IdConflict::Redacted);
        }
        if stored.content_hash != ContentHash::of(item.json.as_bytes()) {
            return conflict(item.id, IdConflict::OtherBytes);
        }
        // The first item may follow anything: the request does not have to name the same head
        // again. The others must follow each other.
        if index > 0 && stored.parent != before {
            return conflict(item.id, IdConflict::NotARepeat);
        }
        before = Some(item.id);
    }
    Ok(true)
}
