//! Recognises an append that repeats an earlier one.

use contexture_ir::{ContentHash, NodeId};

use crate::contract::{Error, IdConflict, NewItem};

/// Facts about a stored node whose id an append uses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoredItem {
    /// Hash of its bytes.
    pub content_hash: ContentHash,
    /// Node before it on its path.
    pub parent: Option<NodeId>,
    /// Whether it was redacted.
    pub redacted: bool,
}

/// Returns whether `items` repeat an earlier append; an append without items never does. `stored`
/// says, item by item, what is stored under its id.
pub fn detect_replay(items: &[NewItem], stored: &[Option<StoredItem>]) -> Result<bool, Error> {
    let Some(first) = stored.iter().position(Option::is_some) else {
        return Ok(false);
    };
    let mut before: Option<NodeId> = None;
    for (index, (item, stored)) in items.iter().zip(stored).enumerate() {
        let conflict = |node, why| Err(Error::IdConflict { node, why });
        let Some(stored) = stored else {
            // The error names a node that exists.
            let known = items.get(first).map_or(item.id, |item| item.id);
            return conflict(known, IdConflict::NotARepeat);
        };
        // The original bytes are gone, so they cannot be compared; a conflict is the safe answer.
        if stored.redacted {
            return conflict(item.id, IdConflict::Redacted);
        }
        if stored.content_hash != ContentHash::of(item.json.as_bytes()) {
            return conflict(item.id, IdConflict::OtherBytes);
        }
        // The first item may follow any node, since a repetition need not name the same head. The
        // others must follow each other.
        if index > 0 && stored.parent != before {
            return conflict(item.id, IdConflict::NotARepeat);
        }
        before = Some(item.id);
    }
    Ok(true)
}
