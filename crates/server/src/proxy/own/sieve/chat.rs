//! Chat's: chunks of one message, calls by their index.

use std::collections::BTreeMap;

use serde_json::Value;

use super::fate::Fate;
use crate::proxy::own::json::{at, is_nothing, remove, set};

/// What all chunks of a message say alike.
const ALIKE: [&str; 2] = ["id", "created"];

/// The chunks of a message.
#[derive(Debug, Default)]
pub(super) struct Chunks {
    later: bool,
    /// What the first said of itself.
    first: BTreeMap<&'static str, Value>,
    /// How many calls the client has got.
    shown: u64,
    /// The calls of this round by their index.
    calls: BTreeMap<u64, Call>,
    finished: bool,
}

#[derive(Debug)]
struct Call {
    id: Option<String>,
    /// Where the client has it; ours it has not.
    place: Option<u64>,
}

impl Chunks {
    pub(super) fn fate(&mut self, chunk: &mut Value, is_own: &dyn Fn(&Value) -> bool) -> Fate {
        let is_first = self.first.is_empty();
        for name in ALIKE {
            match self.first.get(name) {
                Some(first) if self.later => set(chunk, name, first.clone()),
                None if is_first => {
                    let said = chunk.get(name).cloned();
                    self.first.extend(said.map(|said| (name, said)));
                }
                _ => {}
            }
        }
        let Some(choice) = chunk.pointer_mut("/choices/0") else {
            return match self.finished {
                true => Fate::Hold,
                false => Fate::Show,
            };
        };
        let finishes = !at(choice, "/finish_reason").is_null();
        self.finished |= finishes;
        let mut taken = false;
        if let Some(delta) = choice.get_mut("delta") {
            taken |= self.later && remove(delta, "role").is_some();
            taken |= self.calls(delta, is_own);
            if finishes {
                return Fate::Hold;
            }
            let empty = delta
                .as_object()
                .is_some_and(|delta| delta.values().all(is_nothing));
            if taken && empty {
                return Fate::Drop;
            }
        }
        match self.finished {
            true => Fate::Hold,
            false => Fate::Show,
        }
    }

    /// Takes our calls out and numbers the others; says whether there were any of ours.
    fn calls(&mut self, delta: &mut Value, is_own: &dyn Fn(&Value) -> bool) -> bool {
        let Some(calls) = delta.get_mut("tool_calls").and_then(Value::as_array_mut) else {
            return false;
        };
        let before = calls.len();
        calls.retain_mut(|call| {
            let index = at(call, "/index").as_u64();
            let place = self.place(call, index, is_own);
            if let (Some(place), Some(_)) = (place, index) {
                set(call, "index", place);
            }
            place.is_some()
        });
        let taken = calls.len() < before;
        if calls.is_empty() {
            remove(delta, "tool_calls");
        }
        taken
    }

    /// Where the client has a call. It is another one where it has another id, whatever the index says.
    fn place(
        &mut self,
        call: &Value,
        index: Option<u64>,
        is_own: &dyn Fn(&Value) -> bool,
    ) -> Option<u64> {
        let newest = self.calls.last_key_value().map(|(index, _)| *index);
        let id = at(call, "/id").as_str().filter(|id| !id.is_empty());
        let name = at(call, "/function/name");
        let index = index.or(match id {
            Some(_) => newest.map(|newest| newest + 1),
            None => newest,
        });
        let index = index.unwrap_or(0);
        let known = self.calls.get(&index);
        let is_known = known.is_some_and(|known| id.is_none() || known.id.as_deref() == id);
        if !is_known {
            let place = (!is_own(name)).then_some(self.shown);
            self.shown += u64::from(place.is_some());
            let id = id.map(str::to_owned);
            self.calls.insert(index, Call { id, place });
        }
        self.calls.get(&index)?.place
    }

    pub(super) fn again(&mut self) {
        self.later = true;
        self.calls.clear();
        self.finished = false;
    }
}

/// A last chunk without the end; says whether anything is left.
pub(super) fn unended(chunk: &mut Value) -> bool {
    if chunk.get("usage").is_some() {
        set(chunk, "usage", Value::Null);
    }
    let Some(choice) = chunk.pointer_mut("/choices/0") else {
        return false;
    };
    set(choice, "finish_reason", Value::Null);
    let delta = at(choice, "/delta").as_object();
    delta.is_some_and(|delta| !delta.values().all(is_nothing))
}

pub(super) fn end(chunk: &mut Value, whole: &Value) {
    if !at(chunk, "/usage").is_null() {
        set(chunk, "usage", at(whole, "/usage").clone());
    }
    if let Some(choice) = chunk.pointer_mut("/choices/0")
        && !at(choice, "/finish_reason").is_null()
    {
        let finish = at(whole, "/choices/0/finish_reason").clone();
        set(choice, "finish_reason", finish);
    }
}
