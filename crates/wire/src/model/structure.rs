//! [`Structure`]: how a format arranges a history, as data.
//!
//! Providers see a history as turns of two sides. Which side an item is on, which items pair and whether neighbouring
//! messages merge depends on the target in few points only; those points are the fields of [`Structure`], so that
//! nothing else has to know one format from another.

use contexture_ir::{Item, Role};

use crate::model::paired_item::Side;
use crate::model::text_fallback::is_in_assistant_turn;

/// How a format arranges a history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Structure {
    /// Whether every compaction is written as a user message. Otherwise one that its maker wrote into the model's turn
    /// stays on the model's side.
    pub user_compactions: bool,
    /// Whether the format can write the calls that only Chat Completions knows, so that their outputs answer something.
    pub chat_calls: bool,
    /// Whether the format can write calls of custom tools; where it cannot, they are written as functions'.
    pub custom_calls: bool,
    /// The member that holds the parts of a message, for formats that want one message for a whole run of one side;
    /// `None` where messages are listed one by one.
    pub merged_parts: Option<&'static str>,
    /// Whether the provider refuses two messages in a row of one side.
    pub alternating_turns: bool,
    /// Whether a block of the model's messages can carry a cache marker.
    pub model_markers: bool,
    /// Whether the system prompt and the tools before the history can carry a cache marker.
    pub head_markers: bool,
    /// Whether a system message that leads the history can carry a cache marker.
    pub lead_markers: bool,
}

impl Structure {
    /// The structure of items as they are stored: nothing is sent to anyone, so everything stands as it came.
    pub(crate) const AS_STORED: Self = Self {
        user_compactions: false,
        chat_calls: true,
        custom_calls: true,
        merged_parts: None,
        alternating_turns: false,
        model_markers: false,
        head_markers: false,
        lead_markers: false,
    };

    /// Returns the side an item is on; `None` for bookkeeping that stands with whatever surrounds it.
    #[must_use]
    pub fn side(&self, item: &Item) -> Option<Side> {
        match item {
            Item::Message(message) if message.role == Role::Assistant => Some(Side::Model),
            Item::Message(_) | Item::FunctionCallOutput(_) => Some(Side::User),
            Item::FunctionCall(_) | Item::Reasoning(_) => Some(Side::Model),
            Item::Compaction(compaction) => {
                let in_place = !self.user_compactions && is_in_assistant_turn(compaction);
                Some(if in_place { Side::Model } else { Side::User })
            }
            Item::Extension(extension) => match extension.kind.as_str() {
                // Ours and references: nothing of them is said by either side.
                kind if kind.starts_with("ctx:") || kind == "item_reference" => None,
                // Providers name what the host sends back after the call it answers.
                kind if kind.ends_with("_output") || kind.ends_with("_response") => {
                    Some(Side::User)
                }
                _ => Some(Side::Model),
            },
        }
    }

    /// Reports whether calls after the item belong to another step than those before it: the user's side speaks, or
    /// another UI message begins.
    #[must_use]
    pub fn ends_step(&self, item: &Item) -> bool {
        let begins_message = matches!(item, Item::Extension(own) if own.kind == "ctx:message");
        begins_message || self.side(item) == Some(Side::User)
    }
}
