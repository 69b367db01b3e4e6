//! Chat Completions' stream: chunks of one message, calls by their index.

use std::collections::BTreeMap;

use serde_json::Value;

use super::EventAction;
use crate::proxy::json::{is_empty_value, pointer_or_null, remove_member, set_member};

/// Members that are equal in all chunks of a message.
const SHARED_MEMBERS: [&str; 2] = ["id", "created"];

/// The chunks of a message.
#[derive(Debug, Default)]
pub(super) struct ChatChunks {
    is_later_round: bool,
    /// The shared members of the first chunk.
    first: BTreeMap<&'static str, Value>,
    /// Calls that the client has got.
    sent_count: u64,
    /// The calls of this round by their index.
    calls: BTreeMap<u64, ChatCall>,
    finished: bool,
}

#[derive(Debug)]
struct ChatCall {
    id: Option<String>,
    /// The client's index; `None` for a call of a server tool.
    client_index: Option<u64>,
}

impl ChatChunks {
    pub(super) fn edit_event(
        &mut self,
        chunk: &mut Value,
        is_own: &dyn Fn(&Value) -> bool,
    ) -> EventAction {
        self.unify_shared_members(chunk);
        let Some(choice) = chunk.pointer_mut("/choices/0") else {
            // A chunk without choices carries the usage, which follows the finish reason.
            return match self.finished {
                true => EventAction::Hold,
                false => EventAction::Show,
            };
        };
        let finishes = !pointer_or_null(choice, "/finish_reason").is_null();
        self.finished |= finishes;
        let mut taken = false;
        if let Some(delta) = choice.get_mut("delta") {
            taken |= self.is_later_round && remove_member(delta, "role").is_some();
            taken |= self.edit_calls(delta, is_own);
            // Its finish reason may be wrong for the client: whether there is another round is not known yet.
            if finishes {
                return EventAction::Hold;
            }
            let empty = delta
                .as_object()
                .is_some_and(|delta| delta.values().all(is_empty_value));
            if taken && empty {
                return EventAction::Drop;
            }
        }
        match self.finished {
            true => EventAction::Hold,
            false => EventAction::Show,
        }
    }

    /// Gives chunks of later rounds the id of the first: clients take another id for another message.
    fn unify_shared_members(&mut self, chunk: &mut Value) {
        let is_first = self.first.is_empty();
        for name in SHARED_MEMBERS {
            match self.first.get(name) {
                Some(first) if self.is_later_round => set_member(chunk, name, first.clone()),
                None if is_first => {
                    let value = chunk.get(name).cloned();
                    self.first.extend(value.map(|value| (name, value)));
                }
                _ => {}
            }
        }
    }

    /// Takes calls of server tools out and renumbers the others. Returns whether there were any of server tools.
    fn edit_calls(&mut self, delta: &mut Value, is_own: &dyn Fn(&Value) -> bool) -> bool {
        let Some(calls) = delta.get_mut("tool_calls").and_then(Value::as_array_mut) else {
            return false;
        };
        let before = calls.len();
        calls.retain_mut(|call| {
            let index = pointer_or_null(call, "/index").as_u64();
            let place = self.client_index(call, index, is_own);
            if let (Some(place), Some(_)) = (place, index) {
                set_member(call, "index", place);
            }
            place.is_some()
        });
        let taken = calls.len() < before;
        if calls.is_empty() {
            remove_member(delta, "tool_calls");
        }
        taken
    }

    /// Returns the client's index of a call. Another id is another call, whatever the index: some hosts send 0 for all.
    fn client_index(
        &mut self,
        call: &Value,
        index: Option<u64>,
        is_own: &dyn Fn(&Value) -> bool,
    ) -> Option<u64> {
        let newest = self.calls.last_key_value().map(|(index, _)| *index);
        let id = pointer_or_null(call, "/id")
            .as_str()
            .filter(|id| !id.is_empty());
        let name = pointer_or_null(call, "/function/name");
        // Some hosts leave the index out: then an id begins the next call, and a chunk without one
        // goes on with the newest.
        let index = index.or(match id {
            Some(_) => newest.map(|newest| newest + 1),
            None => newest,
        });
        let index = index.unwrap_or(0);
        let known = self.calls.get(&index);
        let is_known = known.is_some_and(|known| id.is_none() || known.id.as_deref() == id);
        if !is_known {
            let place = (!is_own(name)).then_some(self.sent_count);
            self.sent_count += u64::from(place.is_some());
            let id = id.map(str::to_owned);
            self.calls.insert(
                index,
                ChatCall {
                    id,
                    client_index: place,
                },
            );
        }
        self.calls.get(&index)?.client_index
    }

    pub(super) fn begin_next_round(&mut self) {
        self.is_later_round = true;
        // `sent_count` stays: the client's indexes go on over all rounds.
        self.calls.clear();
        self.finished = false;
    }
}

/// Removes the end from a last chunk. Returns whether anything is left.
pub(super) fn strip_end(chunk: &mut Value) -> bool {
    if chunk.get("usage").is_some() {
        set_member(chunk, "usage", Value::Null);
    }
    let Some(choice) = chunk.pointer_mut("/choices/0") else {
        return false;
    };
    set_member(choice, "finish_reason", Value::Null);
    let delta = pointer_or_null(choice, "/delta").as_object();
    delta.is_some_and(|delta| !delta.values().all(is_empty_value))
}

pub(super) fn rewrite_end(chunk: &mut Value, whole: &Value) {
    if !pointer_or_null(chunk, "/usage").is_null() {
        set_member(chunk, "usage", pointer_or_null(whole, "/usage").clone());
    }
    if let Some(choice) = chunk.pointer_mut("/choices/0")
        && !pointer_or_null(choice, "/finish_reason").is_null()
    {
        let finish = pointer_or_null(whole, "/choices/0/finish_reason").clone();
        set_member(choice, "finish_reason", finish);
    }
}
