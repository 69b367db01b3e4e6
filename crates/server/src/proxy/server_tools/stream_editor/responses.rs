//! Responses' stream: items by their index, events by their number, and a last event with the whole answer.

use std::collections::BTreeMap;

use serde_json::Value;

use super::EventAction;
use crate::proxy::json::{pointer_or_null, set_member, set_member_in};

/// The items of an answer.
#[derive(Debug, Default)]
pub(super) struct ResponsesItems {
    is_later_round: bool,
    /// Items that the client has got.
    sent_count: u64,
    /// The client's index of each item of this round; `None` for calls of server tools.
    client_indexes: BTreeMap<u64, Option<u64>>,
    /// The number of the next event.
    next_number: u64,
    /// The id that the answer began with: clients refuse an end that has another.
    id: Option<Value>,
}

impl ResponsesItems {
    pub(super) fn edit_event(
        &mut self,
        event: &mut Value,
        is_own: &dyn Fn(&Value) -> bool,
    ) -> EventAction {
        let kind = pointer_or_null(event, "/type").as_str().unwrap_or_default();
        let name = kind.strip_prefix("response.").unwrap_or(kind);
        if self.id.is_none() {
            self.id = event.pointer("/response/id").cloned();
        }
        match name {
            "created" | "in_progress" | "queued" if self.is_later_round => {
                return EventAction::Drop;
            }
            // This event carries the answer as a whole, which is known once all rounds are merged.
            "completed" | "incomplete" | "failed" | "cancelled" => return EventAction::Hold,
            _ => {}
        }
        // Indexes count per round, and calls of server tools take some: the client needs one sequence without gaps.
        if let Some(index) = pointer_or_null(event, "/output_index").as_u64() {
            let item = pointer_or_null(event, "/item");
            let own = pointer_or_null(item, "/type") == "function_call"
                && is_own(pointer_or_null(item, "/name"));
            let shown = &mut self.sent_count;
            let place = *self.client_indexes.entry(index).or_insert_with(|| {
                let place = (!own).then_some(*shown);
                *shown += u64::from(!own);
                place
            });
            let Some(place) = place else {
                return EventAction::Drop;
            };
            set_member(event, "output_index", place);
        }
        self.renumber_event(event);
        EventAction::Show
    }

    fn renumber_event(&mut self, event: &mut Value) {
        if event.get("sequence_number").is_some() {
            set_member(event, "sequence_number", self.next_number);
            self.next_number += 1;
        }
    }

    pub(super) fn begin_next_round(&mut self) {
        self.is_later_round = true;
        // `sent_count` and `next_number` stay: the client counts on over all rounds.
        self.client_indexes.clear();
    }

    pub(super) fn rewrite_end(&mut self, event: &mut Value, whole: Option<&Value>) {
        self.renumber_event(event);
        if let Some(whole) = whole {
            set_member(event, "response", whole.clone());
            if let Some(id) = &self.id {
                set_member_in(event, "/response", "id", id.clone());
            }
        }
    }
}
