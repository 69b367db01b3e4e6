//! Anthropic's stream: blocks by their index, between a message's start and its end.

use std::collections::BTreeMap;

use serde_json::Value;

use super::EventAction;
use crate::proxy::json::{pointer_or_null, set_member, set_member_in};

/// The blocks of a message.
#[derive(Debug, Default)]
pub(super) struct AnthropicBlocks {
    is_later_round: bool,
    /// Blocks that the client has got.
    sent_count: u64,
    /// The client's index of each block of this round; `None` for calls of server tools.
    client_indexes: BTreeMap<u64, Option<u64>>,
}

impl AnthropicBlocks {
    pub(super) fn edit_event(
        &mut self,
        event: &mut Value,
        is_own: &dyn Fn(&Value) -> bool,
    ) -> EventAction {
        let index = pointer_or_null(event, "/index").as_u64();
        let place = match (pointer_or_null(event, "/type").as_str(), index) {
            // The client has got the start of the first round: a second one would begin another message.
            (Some("message_start"), _) if self.is_later_round => return EventAction::Drop,
            // The end of a round is the client's end only if no other round follows.
            (Some("message_delta" | "message_stop"), _) => return EventAction::Hold,
            (Some("content_block_start"), Some(index)) => {
                let block = pointer_or_null(event, "/content_block");
                let own = pointer_or_null(block, "/type") == "tool_use"
                    && is_own(pointer_or_null(block, "/name"));
                let place = (!own).then_some(self.sent_count);
                self.sent_count += u64::from(!own);
                self.client_indexes.insert(index, place);
                place
            }
            (Some("content_block_delta" | "content_block_stop"), Some(index)) => {
                self.client_indexes.get(&index).copied().flatten()
            }
            _ => return EventAction::Show,
        };
        let Some(place) = place else {
            return EventAction::Drop;
        };
        set_member(event, "index", place);
        EventAction::Show
    }

    pub(super) fn begin_next_round(&mut self) {
        self.is_later_round = true;
        // `sent_count` stays: the client's indexes go on over all rounds.
        self.client_indexes.clear();
    }
}

pub(super) fn rewrite_end(event: &mut Value, whole: &Value) {
    if pointer_or_null(event, "/type") == "message_delta" {
        set_member_in(
            event,
            "/delta",
            "stop_reason",
            pointer_or_null(whole, "/stop_reason").clone(),
        );
        set_member(event, "usage", pointer_or_null(whole, "/usage").clone());
    }
}
