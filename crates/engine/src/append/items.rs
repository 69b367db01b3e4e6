//! Items as they are stored: redaction, the meaning hash, the step of a run, batches for one append each.
//!
//! Not here: which items are new (`draft`, `ingest`, `import`).

use contexture_ir::{Item, NodeId, RunId, meaning_hash};
use contexture_store::{Limits, NewItem};

use crate::handle::Conversation;

/// Builds an item as it is stored: secrets redacted, its meaning hashed.
pub(crate) fn new_item(
    chat: &Conversation,
    id: NodeId,
    item: &Item,
    step: Option<RunStep>,
) -> NewItem {
    // The meaning hash is of the item as it was given: a client that sends it again sends it with its secrets.
    let secrets = chat.engine().secrets();
    let json = match secrets {
        Some(secrets) => secrets.redact_item(item).to_json(),
        None => item.to_json(),
    };
    NewItem {
        run: step.map(|step| step.run),
        step: step.map(|step| step.step),
        meaning_hash: meaning_hash(item),
        ..NewItem::new(id, item, json, chat.engine().now_ms())
    }
}

/// Half of an append's limits: room for what goes with the items.
const SHARE: usize = 2;

/// Items of a part. A part is one transaction, and on SQLite all other writers wait for it.
const PART_ITEMS: usize = 512;

/// Items in parts that each fit into one append.
pub(crate) fn split_by_limits(items: Vec<NewItem>, limits: &Limits) -> Vec<Vec<NewItem>> {
    let mut parts: Vec<Vec<NewItem>> = Vec::new();
    let mut bytes = 0;
    let most = PART_ITEMS.min(limits.append_items / SHARE);
    for item in items {
        bytes += item.json.len();
        // An item above the share gets a batch of its own; whether it is too large is for the store to say.
        let full = parts
            .last()
            .is_none_or(|part| part.len() >= most || bytes > limits.append_bytes / SHARE);
        if full {
            bytes = item.json.len();
            parts.push(Vec::new());
        }
        if let Some(part) = parts.last_mut() {
            part.push(item);
        }
    }
    parts
}

/// The step of a run that an item comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunStep {
    /// Run that the items belong to.
    pub run: RunId,
    /// Number of the step within its run.
    pub step: u32,
}
