//! Items beside their neighbours: which side speaks, which call an output answers.
//!
//! Providers see a history as turns of two sides. A [`RoleRun`] is the longest stretch of one side; it is
//! the unit of lowering, and what it lowers to depends on nothing outside it, so that it can be
//! cached.

use contexture_ir::Item;

use crate::model::pairing::OpenCalls;
use crate::model::structure::Structure;

/// An item with the facts about it that follow from other items.
#[derive(Clone, Copy, Debug)]
pub struct PairedItem<'a> {
    /// The item to write.
    pub item: &'a Item,
    /// The name of the called function, for an output whose call is known; `None` for everything else.
    pub function: Option<&'a str>,
    /// The call id to write instead of the item's own; `None` unless repair replaced it.
    pub call_id: Option<&'a str>,
}

impl<'a> PairedItem<'a> {
    /// Wraps an item about which other items tell nothing.
    #[must_use]
    pub const fn new(item: &'a Item) -> Self {
        Self {
            item,
            function: None,
            call_id: None,
        }
    }

    /// Returns the call id to write for a call or an output; empty for other items.
    #[must_use]
    pub fn call_id(&self) -> &'a str {
        match (self.call_id, self.item) {
            (Some(id), _) => id,
            (None, Item::FunctionCall(call)) => &call.call_id,
            (None, Item::FunctionCallOutput(output)) => &output.call_id,
            (None, _) => "",
        }
    }
}

/// The two sides of a conversation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Side {
    /// People, the host and tools.
    User,
    /// The model that answers.
    Model,
}

/// For every item the index of its partner: an output's call, a call's output.
///
/// An output takes a call of its id that is still unanswered, of the nearest step before it; outputs
/// of one step's calls take them in order, as [`crate::repair()`] does. A second output of one call has
/// no partner.
#[must_use]
pub fn partner_indices<'a>(items: impl IntoIterator<Item = &'a Item>) -> Vec<Option<usize>> {
    let mut open: OpenCalls<&str> = OpenCalls::default();
    let mut length = 0;
    for (index, item) in items.into_iter().enumerate() {
        length = index + 1;
        // Before the item is looked at: the calls that come now belong to another step.
        if Structure::AS_STORED.ends_step(item) {
            open.end_step();
        }
        match item {
            Item::FunctionCall(call) => open.add_call(&call.call_id, index),
            Item::FunctionCallOutput(output) => {
                open.match_output(&output.call_id.as_str(), index);
            }
            _ => {}
        }
    }
    let mut partner = vec![None; length];
    for (call, output) in open.into_pairs() {
        // Stored in both directions, so that either half can be asked for the other.
        for (one, other) in [(call, output), (output, call)] {
            if let Some(slot) = partner.get_mut(one) {
                *slot = Some(other);
            }
        }
    }
    partner
}

/// Wraps items; outputs get the name of the function that they answer.
#[must_use]
pub fn paired_items(items: &[Item]) -> Vec<PairedItem<'_>> {
    let partner = partner_indices(items);
    let name = |index: usize| match items.get(index) {
        Some(Item::FunctionCall(call)) => Some(call.name.as_str()),
        _ => None,
    };
    items
        .iter()
        .zip(partner)
        .map(|(item, partner)| match item {
            Item::FunctionCallOutput(_) => PairedItem {
                function: partner.and_then(name),
                ..PairedItem::new(item)
            },
            _ => PairedItem::new(item),
        })
        .collect()
}

/// Consecutive entries of one side.
#[derive(Clone, Copy, Debug)]
pub struct RoleRun<'r, 'a> {
    /// The side that the entries are on.
    pub side: Side,
    /// The index of the first entry in the list that was cut into runs.
    pub start: usize,
    /// The entries, at least one.
    pub entries: &'r [PairedItem<'a>],
    /// Whether the run continues the user's side, what stands before it being written apart: outputs before what people
    /// say.
    pub follows_user: bool,
}
