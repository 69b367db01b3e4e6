//! Anthropic's: blocks by their index, between a message's start and its end.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fate::Fate;
use crate::proxy::own::json::{at, set, set_in};

/// The blocks of a message.
#[derive(Debug, Default)]
pub(super) struct Blocks {
    later: bool,
    /// How many the client has got.
    shown: u64,
    /// Where the client has each block of this round; ours it has not.
    places: BTreeMap<u64, Option<u64>>,
}

impl Blocks {
    pub(super) fn fate(&mut self, event: &mut Value, is_own: &dyn Fn(&Value) -> bool) -> Fate {
        let index = at(event, "/index").as_u64();
        let place = match (at(event, "/type").as_str(), index) {
            (Some("message_start"), _) if self.later => return Fate::Drop,
            (Some("message_delta" | "message_stop"), _) => return Fate::Hold,
            (Some("content_block_start"), Some(index)) => {
                let block = at(event, "/content_block");
                let own = at(block, "/type") == "tool_use" && is_own(at(block, "/name"));
                let place = (!own).then_some(self.shown);
                self.shown += u64::from(!own);
                self.places.insert(index, place);
                place
            }
            (Some("content_block_delta" | "content_block_stop"), Some(index)) => {
                self.places.get(&index).copied().flatten()
            }
            _ => return Fate::Show,
        };
        let Some(place) = place else {
            return Fate::Drop;
        };
        set(event, "index", place);
        Fate::Show
    }

    pub(super) fn again(&mut self) {
        self.later = true;
        self.places.clear();
    }
}

pub(super) fn end(event: &mut Value, whole: &Value) {
    if at(event, "/type") == "message_delta" {
        set_in(
            event,
            "/delta",
            "stop_reason",
            at(whole, "/stop_reason").clone(),
        );
        set(event, "usage", at(whole, "/usage").clone());
    }
}
