//! The history that a client sent, and its beginnings.

use contexture_ir::{HistoryHash, Item, PathHash, Role};

/// The history of a request, with the hashes of its beginnings.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestHistory<'a> {
    pub(super) items: &'a [Item],
    pub(super) links: &'a [HistoryHash],
    /// The hash of all of it.
    pub(super) full_hash: PathHash,
}

impl<'a> RequestHistory<'a> {
    /// Whether it is of all of it.
    pub(super) fn is_full_history(&self, link: &HistoryHash) -> bool {
        link.hash == self.full_hash
    }

    /// What stands behind a beginning.
    pub(super) fn items_after(&self, link: &HistoryHash) -> &'a [Item] {
        match self.is_full_history(link) {
            true => &[],
            false => self.items.get(link.items..).unwrap_or_default(),
        }
    }

    /// Whether nothing of the model's is new behind it.
    pub(super) fn is_continuation(&self, link: &HistoryHash) -> bool {
        !self.items_after(link).iter().any(is_model_item)
    }

    /// How many items a beginning has.
    pub(super) fn prefix_length(&self, link: &HistoryHash) -> usize {
        self.items.len() - self.items_after(link).len()
    }
}

/// Whether it is the model's.
pub(super) const fn is_model_item(item: &Item) -> bool {
    match item {
        Item::Message(message) => matches!(message.role, Role::Assistant),
        Item::FunctionCall(_) | Item::Reasoning(_) => true,
        Item::FunctionCallOutput(_) | Item::Compaction(_) | Item::Extension(_) => false,
    }
}
