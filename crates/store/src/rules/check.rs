//! Checks requests for limits and contradictions, before anything is read from a store.

use std::collections::BTreeSet;

use contexture_ir::{BranchName, CheckpointName, ConversationId, NodeId};

use super::calls::check_call;
use crate::contract::{
    AppendPoint, AppendRequest, ConversationUpdate, EntityKind, Error, ExpectedVersion, IdConflict,
    KeyScope, Limits, Metadata, MetadataChange, NewConversation, PutEntry, RedactRequest, StateOp,
    TitleChange,
};

/// Checks that an append is within the limits and does not contradict itself; returns its size in
/// bytes.
pub fn check_append(
    id: &ConversationId,
    request: &AppendRequest,
    limits: &Limits,
) -> Result<usize, Error> {
    let items = request.items.len();
    check_limit("append_items", limits.append_items, items)?;
    if items == 0 {
        check_empty(request)?;
    } else if request.patch.from >= items {
        return Err(Error::invalid_argument(
            "patch",
            format!("from item {} of {items}", request.patch.from),
        ));
    }
    // A fence belongs to a branch; a new branch has none to compare it with.
    if request.fence.is_some() && matches!(request.at, AppendPoint::New(_)) {
        return Err(Error::invalid_argument(
            "fence",
            "a branch that does not exist yet has no writer",
        ));
    }
    let mut bytes = 0;
    let mut ids = BTreeSet::new();
    for item in &request.items {
        check_limit("item_bytes", limits.item_bytes, item.json.len())?;
        bytes += item.json.len();
        // Refused here and not by a backend's unique key: replay detection compares items by id and
        // would take the second one for a repetition of the first.
        if !ids.insert(item.id) {
            return Err(Error::IdConflict {
                node: item.id,
                why: IdConflict::Twice,
            });
        }
    }
    for blob in &request.blobs {
        check_blob(blob, limits)?;
        bytes += blob.len();
    }
    if let Some(call) = &request.call {
        check_call(call, limits)?;
        if call.conversation.as_ref() != Some(id) {
            let why = "the call is not of the conversation that its answer goes to";
            return Err(Error::invalid_argument("call", why));
        }
    }
    check_path_hashes(request.paths.len(), limits)?;
    if let Some(mark) = request.paths.iter().find(|mark| !ids.contains(&mark.node)) {
        let why = format!("the mark of {} is of no item of the append", mark.node);
        return Err(Error::invalid_argument("paths", why));
    }
    // All parts count against one limit, since a backend holds them in memory together.
    bytes += check_patch(request, limits)?;
    bytes += check_entries(id, request, limits)?;
    if let Some(response) = &request.response {
        check_limit(
            "response_bytes",
            limits.response_bytes,
            response.size_bytes(),
        )?;
        if response
            .inputs
            .recorded_bytes()
            .is_some_and(|bytes| bytes.is_empty())
        {
            return Err(Error::invalid_argument("response", "inputs of no bytes"));
        }
        bytes += response.size_bytes();
    }
    // Checked last: the limit of a single part is more informative than the sum.
    check_limit("append_bytes", limits.append_bytes, bytes)?;
    Ok(bytes)
}

fn check_empty(request: &AppendRequest) -> Result<(), Error> {
    if request.ends_stream.is_some() {
        return Err(Error::invalid_argument(
            "append",
            "a stream ends with an item",
        ));
    }
    if request.response.is_some() {
        return Err(Error::invalid_argument("append", "a response has an item"));
    }
    if request.exchange.is_some() {
        let why = "an exchange is about an item";
        return Err(Error::invalid_argument("exchange", why));
    }
    if request.call.is_some() {
        return Err(Error::invalid_argument("call", "an answer has an item"));
    }
    // A repetition is recognised by its items. Without one, every retry would write the values
    // again.
    if !request.entries.is_empty() {
        let why = "without an item nothing tells whether they are written";
        return Err(Error::invalid_argument("entries", why));
    }
    let why = if !matches!(request.at, AppendPoint::New(_)) {
        "no items"
    } else if !request.patch.is_empty() {
        "a patch needs an item to hang off"
    } else {
        return Ok(());
    };
    Err(Error::invalid_argument("append", why))
}

fn check_patch(request: &AppendRequest, limits: &Limits) -> Result<usize, Error> {
    let mut bytes = 0;
    let mut keys = BTreeSet::new();
    for change in &request.patch.changes {
        // The order within a patch has no meaning, so two changes of a key would contradict each
        // other.
        if !keys.insert(&change.key) {
            return Err(Error::invalid_argument(
                "patch",
                format!("{} stands twice", change.key),
            ));
        }
        if let StateOp::Put { value, .. } = &change.op {
            check_limit("state_value_bytes", limits.state_value_bytes, value.len())?;
            bytes += value.len();
        }
    }
    Ok(bytes)
}

fn check_entries(
    id: &ConversationId,
    request: &AppendRequest,
    limits: &Limits,
) -> Result<usize, Error> {
    check_limit(
        "append_entries",
        limits.append_entries,
        request.entries.len(),
    )?;
    let mut bytes = 0;
    let mut keys = BTreeSet::new();
    for (scope, put) in &request.entries {
        check_put_entry(scope, put, limits)?;
        if let KeyScope::Conversation(of) = scope
            // An append locks one conversation, so values of another one could be deleted with it
            // meanwhile.
            && of != id
        {
            let why = format!("{} is of the conversation {of}, not of {id}", put.key);
            return Err(Error::invalid_argument("entries", why));
        }
        if !keys.insert((scope, &put.key)) {
            return Err(Error::invalid_argument(
                "entries",
                format!("{} stands twice", put.key),
            ));
        }
        bytes += put.value.as_ref().map_or(0, |value| value.len());
    }
    Ok(bytes)
}

/// Checks that a branch's name may be deleted.
pub fn check_delete_branch(name: &BranchName, active: &BranchName) -> Result<(), Error> {
    if name == active {
        return Err(Error::invalid_argument(
            "branch",
            format!("{name} is the active branch: activate another first"),
        ));
    }
    Ok(())
}

/// Checks that a checkpoint may be made at a node: no other node has its name. The same node may, so that a request can be
/// repeated.
pub fn check_new_checkpoint(
    name: &CheckpointName,
    existing: Option<NodeId>,
    node: NodeId,
) -> Result<(), Error> {
    match existing {
        Some(there) if there != node => Err(Error::already_exists(EntityKind::Checkpoint, name)),
        _ => Ok(()),
    }
}

/// Checks that a blob is within the limits.
pub fn check_blob(bytes: &[u8], limits: &Limits) -> Result<(), Error> {
    check_limit("blob_bytes", limits.blob_bytes, bytes.len())
}

/// Checks that a new conversation is within the limits.
pub fn check_new_conversation(new: &NewConversation, limits: &Limits) -> Result<(), Error> {
    check_title(new.title.as_deref(), limits)?;
    check_title(new.resource.as_deref(), limits)?;
    check_metadata(&new.metadata, limits)
}

/// Checks that a title or resource is within the limits.
fn check_title(title: Option<&str>, limits: &Limits) -> Result<(), Error> {
    check_limit("title_bytes", limits.title_bytes, title.map_or(0, str::len))
}

fn check_metadata(metadata: &Metadata, limits: &Limits) -> Result<(), Error> {
    check_limit("metadata_keys", limits.metadata_keys, metadata.len())?;
    let bytes = metadata
        .iter()
        // Four bytes for the quotes, the colon and the comma: about the size as it is stored.
        .map(|(key, value)| key.len() + value.get().len() + 4)
        .sum();
    check_limit("metadata_bytes", limits.metadata_bytes, bytes)
}

/// Checks that an update is within the limits and meant for this version.
pub fn check_update(
    id: &ConversationId,
    version: u64,
    update: &ConversationUpdate,
    limits: &Limits,
) -> Result<(), Error> {
    if let TitleChange::Set(title) = &update.title {
        check_title(title.as_deref(), limits)?;
    }
    match update.expect_version {
        Some(expected) if expected != version => Err(Error::VersionConflict {
            what: EntityKind::Conversation,
            name: id.to_string(),
            expected,
            actual: version,
        }),
        _ => Ok(()),
    }
}

/// Returns the metadata after a change, if it is within the limits.
pub fn merge_metadata(
    stored: &Metadata,
    change: MetadataChange,
    limits: &Limits,
) -> Result<Metadata, Error> {
    let metadata = match change {
        MetadataChange::Keep => return Ok(stored.clone()),
        MetadataChange::Replace(metadata) => metadata,
        MetadataChange::Merge(changes) => {
            let mut metadata = stored.clone();
            for (key, value) in changes {
                match value {
                    Some(value) => metadata.insert(key, value),
                    None => metadata.remove(&key),
                };
            }
            metadata
        }
    };
    // The result is checked, not the change: several small merges must not exceed the limit
    // together.
    check_metadata(&metadata, limits)?;
    Ok(metadata)
}

/// Checks that a write outside the tree is within the limits.
pub fn check_put_entry(scope: &KeyScope, put: &PutEntry, limits: &Limits) -> Result<(), Error> {
    if put.key.is_empty() || put.key.len() > 255 {
        return Err(Error::invalid_argument("key", "expected 1 to 255 bytes"));
    }
    if let KeyScope::Resource(resource) = scope {
        check_title(Some(resource), limits)?;
    }
    check_limit(
        "entry_bytes",
        limits.entry_bytes,
        put.value.as_ref().map_or(0, |value| value.len()),
    )
}

/// Checks that a redaction is within the limits.
pub fn check_redact(request: &RedactRequest, limits: &Limits) -> Result<(), Error> {
    let count = request.nodes.len() + request.values.len() + request.blobs.len();
    check_limit("redact_items", limits.redact_items, count)
}

/// Checks the number of path hashes of one call.
pub fn check_path_hashes(count: usize, limits: &Limits) -> Result<(), Error> {
    check_limit("path_hashes", limits.path_hashes, count)
}

/// Checks that a write outside the tree finds the version that it expects. `present` is the version
/// of the stored value, if there is one.
pub fn check_version(put: &PutEntry, present: Option<u64>) -> Result<(), Error> {
    let expected = match put.expect {
        ExpectedVersion::Any => return Ok(()),
        // Versions begin at 1, so 0 stands for no value, deleted ones included.
        ExpectedVersion::Absent => 0,
        ExpectedVersion::Version(version) => version,
    };
    let actual = present.unwrap_or(0);
    if actual != expected {
        return Err(Error::VersionConflict {
            what: EntityKind::Entry,
            name: put.key.clone(),
            expected,
            actual,
        });
    }
    Ok(())
}

/// Returns the lowest and the highest id that begin with these hexadecimal digits.
pub fn check_prefix(prefix: &str) -> Result<([u8; 16], [u8; 16]), Error> {
    let hex = prefix.chars().all(|c| c.is_ascii_hexdigit());
    if !hex || !(4..=32).contains(&prefix.len()) {
        // Truncated, since error messages may be displayed and the prefix may be long.
        let start: String = prefix.chars().take(40).collect();
        return Err(Error::invalid_argument(
            "node id",
            format!("{start:?}: expected 4 to 32 hexadecimal digits"),
        ));
    }
    let mut bounds = ([0_u8; 16], [0xff_u8; 16]);
    for (i, digit) in prefix.chars().filter_map(|c| c.to_digit(16)).enumerate() {
        let digit = u8::try_from(digit).unwrap_or_default();
        // An odd number of digits fixes half of the last byte: the other half stays 0 in the lower
        // bound and f in the upper one.
        let (shift, mask) = if i % 2 == 0 { (4, 0x0f) } else { (0, 0xf0) };
        for bound in [&mut bounds.0, &mut bounds.1] {
            if let Some(byte) = bound.get_mut(i / 2) {
                *byte = (*byte & mask) | (digit << shift);
            }
        }
    }
    Ok(bounds)
}

/// Selects the only id that begins with a prefix. `found` holds the matching ids in order; five are
/// enough, since the error lists no more.
pub fn select_by_prefix(prefix: &str, found: &[NodeId]) -> Result<NodeId, Error> {
    match found {
        [] => Err(Error::not_found(EntityKind::Node, prefix)),
        [id] => Ok(*id),
        several => Err(Error::Ambiguous {
            what: EntityKind::Node,
            name: prefix.to_owned(),
            candidates: several.iter().take(5).map(NodeId::to_string).collect(),
        }),
    }
}

pub(super) fn check_limit(limit: &'static str, max: usize, actual: usize) -> Result<(), Error> {
    if actual > max {
        return Err(Error::Limit {
            limit,
            max: max as u64,
            actual: actual as u64,
        });
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_prefix_bounds_its_ids() {
        let (low, high) = check_prefix("7c1EA").unwrap();
        assert_eq!(low[..4], [0x7c, 0x1e, 0xa0, 0]);
        assert_eq!(high[..4], [0x7c, 0x1e, 0xaf, 0xff]);
        for bad in ["", "abc", "ghij", "é123", &"0".repeat(33)] {
            assert!(check_prefix(bad).is_err(), "{bad}");
        }
    }
}
