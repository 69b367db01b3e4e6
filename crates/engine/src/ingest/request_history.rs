//! The history that a client sent, and its beginnings.

use contexture_ir::{HistoryHash, Item, PathHash, Role};

/// The history of a request, with the hashes of its beginnings.
#[derive(Clone, Copy, Debug)]
pub(super) struct RequestHistory<'a> {
    pub(super) items: &'a [Item],
    pub(super) links: &'a [HistoryHash],
    /// The hash of what stands before it: of nothing, or of the history up to the answer that the request names.
    pub(super) start_hash: PathHash,
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

    /// The hash of what its answer follows: of all that the user's side said. What a client puts into the model's mouth
    /// behind that, the answer continues.
    pub(super) fn question_hash(&self) -> PathHash {
        let said = self.items.iter().rposition(is_user_side);
        let link = said.and_then(|last| self.links.iter().find(|link| link.items > last));
        link.map_or(self.start_hash, |link| link.hash)
    }

    /// Whether a step of the model is in it: its client has an answer to something.
    pub(super) fn has_answer(&self) -> bool {
        self.items.iter().any(is_model_item)
    }

    /// Whether a step of the model stands behind a history: its client has an answer to it.
    pub(super) fn has_answer_to(&self, history: PathHash) -> bool {
        let Some(last) = self.items.iter().rposition(is_model_item) else {
            return false;
        };
        let mut before = self.links.iter().take_while(|link| link.items <= last);
        self.start_hash == history || before.any(|link| link.hash == history)
    }

    /// The hashes of the histories behind which a step of the model stands, the latest first, at most so many: of the
    /// questions to which the client has an answer.
    pub(super) fn answered_questions(&self, most: usize) -> impl Iterator<Item = PathHash> {
        let last = self.items.iter().rposition(is_model_item);
        let before = self.links.iter().rev();
        let before = before.filter(move |link| last.is_some_and(|last| link.items <= last));
        let before = before.map(|link| link.hash);
        let start = last.map(|_| self.start_hash);
        before.chain(start).take(most)
    }

    /// The hash of the history that ends with the last step of the model.
    pub(super) fn last_answer_hash(&self) -> Option<PathHash> {
        let last = self.items.iter().rposition(is_model_item)?;
        let link = self.links.iter().find(|link| link.items > last)?;
        Some(link.hash)
    }

    /// Whether a step of the model is behind its first `known` items.
    pub(super) fn has_answer_after(&self, known: usize) -> bool {
        let new = self.items.get(known..).unwrap_or_default();
        new.iter().any(is_model_item)
    }

    /// How many items a beginning has.
    pub(super) fn prefix_length(&self, link: &HistoryHash) -> usize {
        self.items.len() - self.items_after(link).len()
    }
}

/// Whether the user's side said it.
pub(super) const fn is_user_side(item: &Item) -> bool {
    match item {
        Item::Message(message) => !matches!(message.role, Role::Assistant),
        Item::FunctionCallOutput(_) => true,
        _ => false,
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
