//! An item between the path and the payload.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::{ContentHash, FunctionCall, FunctionCallOutput, Item, Origin, Output};
use contexture_wire::partner_indices;

use crate::input::PathItem;
use contexture_report::OmitReason;

/// An item on its way into the payload.
#[derive(Clone, Debug)]
pub(crate) struct ViewEntry {
    pub(crate) item: Arc<Item>,
    /// The hash of the item as it stands here.
    pub(crate) hash: ContentHash,
    /// Where it comes from: an index on the path; `None` for what repair made up.
    pub(crate) source: Option<usize>,
    /// The call id to write instead of the item's own.
    pub(crate) call_id: Option<String>,
    /// Whether it stays as it is.
    pub(crate) pinned: bool,
    /// Whether it is stored, so that a link to it can be followed.
    pub(crate) is_stored: bool,
    /// Whose it is.
    pub(crate) origin: Origin,
    /// How it differs from the item on the path.
    pub(crate) shown_as: ShownAs,
}

/// How an item of the path is shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum ShownAs {
    /// As it is.
    #[default]
    Unchanged,
    /// Its output as a placeholder.
    Cleared,
    /// Its output as a placeholder, because the call was made again.
    Repeated,
    /// Its output as a preview.
    Previewed,
    /// Thinking as a text of the model's.
    ThinkingText,
    /// Where what it stands for stood, without the note of what that is.
    Compaction,
}

impl ViewEntry {
    /// An item as it came.
    pub(crate) const fn new(item: Arc<Item>, hash: ContentHash, source: usize) -> Self {
        Self {
            item,
            hash,
            source: Some(source),
            call_id: None,
            pinned: false,
            is_stored: false,
            origin: Origin::System,
            shown_as: ShownAs::Unchanged,
        }
    }

    /// The entry with its output replaced, if it is one.
    pub(crate) fn with_output(&self, text: &str, shown: ShownAs) -> Self {
        let Item::FunctionCallOutput(output) = &*self.item else {
            return self.clone();
        };
        let item = Item::from(FunctionCallOutput {
            output: Output::Text(text.to_owned()),
            ..output.clone()
        });
        self.with_item(item, shown)
    }

    /// The entry with another item in its place.
    pub(crate) fn with_item(&self, item: Item, shown: ShownAs) -> Self {
        Self {
            // The hash of what is shown, not of the original: counts and JSON are remembered by it.
            hash: ContentHash::of(item.to_json().as_bytes()),
            item: Arc::new(item),
            shown_as: shown,
            ..self.clone()
        }
    }
}

/// Leaves out what is not meant for models, by audience, and bookkeeping, by its type. `first` is the
/// index of the first item on the whole path.
pub(crate) fn select_for_model(
    path: &[PathItem],
    first: usize,
) -> (Vec<ViewEntry>, Vec<(usize, OmitReason)>) {
    let (mut entries, mut hidden) = (Vec::with_capacity(path.len()), Vec::new());
    for (index, item) in (first..).zip(path) {
        // The audience is decided first: what models may not read is reported as such even if it is
        // bookkeeping as well.
        if !item.audience.model {
            hidden.push((index, OmitReason::Audience));
        // Our own namespace: state entries and notes of the host that share the path but are no conversation.
        } else if item.item.kind().starts_with("ctx:") {
            hidden.push((index, OmitReason::Bookkeeping));
        } else {
            entries.push(ViewEntry {
                pinned: item.pinned,
                is_stored: item.node.is_some(),
                origin: item.origin,
                ..ViewEntry::new(Arc::clone(&item.item), item.hash, index)
            });
        }
    }
    (entries, hidden)
}

/// For each output the call it answers, by the rule of `contexture_wire::partner_indices`.
pub(crate) fn calls_by_output(entries: &[ViewEntry]) -> BTreeMap<usize, &FunctionCall> {
    let partners = partner_indices(entries.iter().map(|entry| &*entry.item));
    let call_of = |(at, partner): (usize, Option<usize>)| {
        match &*entries.get(partner?)?.item {
            // The partner of a call is its output; only the other way is wanted.
            Item::FunctionCall(call) => Some((at, call)),
            _ => None,
        }
    };
    partners
        .into_iter()
        .enumerate()
        .filter_map(call_of)
        .collect()
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contexture_ir::{ContentHash, FunctionCallOutput, Output};

    use super::*;

    #[test]
    fn parallel_calls_of_one_id_take_outputs_in_call_order() {
        let call = |name: &str| Item::FunctionCall(FunctionCall::new("call_1", name, "{}"));
        let output = || {
            Item::FunctionCallOutput(FunctionCallOutput::new(
                "call_1",
                Output::Text("done".to_owned()),
            ))
        };
        let items = [call("first"), call("second"), output(), output()];
        let entry = |(at, item)| ViewEntry::new(Arc::new(item), ContentHash::of(b"item"), at);
        let entries: Vec<ViewEntry> = items.into_iter().enumerate().map(entry).collect();
        let names: Vec<_> = calls_by_output(&entries)
            .into_iter()
            .map(|(at, call)| (at, call.name.as_str()))
            .collect();
        assert_eq!(names, [(2, "first"), (3, "second")]);
    }
}
