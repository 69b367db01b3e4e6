//! An item between the path and the payload.

use std::sync::Arc;

use contexture_ir::{ContentHash, FunctionCallOutput, Item, Output};

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
            hash: ContentHash::of(item.to_json().as_bytes()),
            item: Arc::new(item),
            shown_as: shown,
            ..self.clone()
        }
    }
}
