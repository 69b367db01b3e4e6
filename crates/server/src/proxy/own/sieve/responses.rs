//! Responses': items by their index, events by their number, and a last event with all of it.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fate::Fate;
use crate::proxy::own::json::{at, set, set_in};

/// The items of an answer.
#[derive(Debug, Default)]
pub(super) struct Items {
    later: bool,
    /// How many the client has got.
    shown: u64,
    /// Where the client has each item of this round; ours it has not.
    places: BTreeMap<u64, Option<u64>>,
    /// The number of the next event.
    number: u64,
    /// The id that the answer began with: clients refuse an end that has another.
    id: Option<Value>,
}

impl Items {
    pub(super) fn fate(&mut self, event: &mut Value, is_own: &dyn Fn(&Value) -> bool) -> Fate {
        let kind = at(event, "/type").as_str().unwrap_or_default();
        let name = kind.strip_prefix("response.").unwrap_or(kind);
        if self.id.is_none() {
            self.id = event.pointer("/response/id").cloned();
        }
        match name {
            "created" | "in_progress" | "queued" if self.later => return Fate::Drop,
            "completed" | "incomplete" | "failed" | "cancelled" => return Fate::Hold,
            _ => {}
        }
        if let Some(index) = at(event, "/output_index").as_u64() {
            let item = at(event, "/item");
            let own = at(item, "/type") == "function_call" && is_own(at(item, "/name"));
            let shown = &mut self.shown;
            let place = *self.places.entry(index).or_insert_with(|| {
                let place = (!own).then_some(*shown);
                *shown += u64::from(!own);
                place
            });
            let Some(place) = place else {
                return Fate::Drop;
            };
            set(event, "output_index", place);
        }
        self.count(event);
        Fate::Show
    }

    fn count(&mut self, event: &mut Value) {
        if event.get("sequence_number").is_some() {
            set(event, "sequence_number", self.number);
            self.number += 1;
        }
    }

    pub(super) fn again(&mut self) {
        self.later = true;
        self.places.clear();
    }

    pub(super) fn end(&mut self, event: &mut Value, whole: Option<&Value>) {
        self.count(event);
        if let Some(whole) = whole {
            set(event, "response", whole.clone());
            if let Some(id) = &self.id {
                set_in(event, "/response", "id", id.clone());
            }
        }
    }
}
