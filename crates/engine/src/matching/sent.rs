//! What a client sent, and its beginnings.

use contexture_ir::{Item, PathHash, PathLink, Role};

/// What was sent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sent<'a> {
    pub(super) items: &'a [Item],
    pub(super) links: &'a [PathLink],
    /// The hash of all of it.
    pub(super) whole: PathHash,
}

impl<'a> Sent<'a> {
    /// Whether it is of all of it.
    pub(super) fn is_whole(&self, link: &PathLink) -> bool {
        link.hash == self.whole
    }

    /// What stands behind a beginning.
    pub(super) fn behind(&self, link: &PathLink) -> &'a [Item] {
        match self.is_whole(link) {
            true => &[],
            false => self.items.get(link.items..).unwrap_or_default(),
        }
    }

    /// Whether nothing of the model's is new behind it.
    pub(super) fn goes_on(&self, link: &PathLink) -> bool {
        !self.behind(link).iter().any(is_models)
    }

    /// How many items a beginning has.
    pub(super) fn known(&self, link: &PathLink) -> usize {
        self.items.len() - self.behind(link).len()
    }
}

/// Whether it is the model's.
pub(super) const fn is_models(item: &Item) -> bool {
    match item {
        Item::Message(message) => matches!(message.role, Role::Assistant),
        Item::FunctionCall(_) | Item::Reasoning(_) => true,
        Item::FunctionCallOutput(_) | Item::Compaction(_) | Item::Extension(_) => false,
    }
}
