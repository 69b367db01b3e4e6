//! Gemini's: whole responses, each with the parts that are new.

use serde_json::Value;

use super::fate::Fate;
use crate::proxy::own::json::{at, remove, set};

const PARTS: &str = "/candidates/0/content/parts";
const CALL: [&str; 2] = ["functionCall", "function_call"];
const USAGE: &str = "usageMetadata";

/// The parts of an answer.
#[derive(Debug, Default)]
pub(super) struct Parts {
    later: bool,
    /// The id that the first response gave.
    id: Option<Value>,
    /// Whether the call that is still growing is one of ours.
    growing: bool,
    finished: bool,
}

impl Parts {
    pub(super) fn fate(&mut self, event: &mut Value, is_own: &dyn Fn(&Value) -> bool) -> Fate {
        let id = at(event, "/responseId");
        if self.id.is_none() && !id.is_null() {
            self.id = Some(id.clone());
        }
        if let Some(first) = self.id.clone().filter(|_| self.later) {
            set(event, "responseId", first);
        }
        let candidate = at(event, "/candidates/0");
        self.finished |= !at(candidate, "/finishReason").is_null();
        let mut taken = false;
        if let Some(parts) = event.pointer_mut(PARTS).and_then(Value::as_array_mut) {
            let before = parts.len();
            parts.retain(|part| !self.is_own(part, is_own));
            taken = parts.len() < before;
        }
        if self.finished {
            return Fate::Hold;
        }
        if self.later {
            remove(event, USAGE);
        }
        let empty = event
            .pointer(PARTS)
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty);
        match (taken || self.later) && empty {
            true => Fate::Drop,
            false => Fate::Show,
        }
    }

    fn is_own(&mut self, part: &Value, is_own: &dyn Fn(&Value) -> bool) -> bool {
        let Some(call) = CALL.iter().find_map(|name| part.get(name)) else {
            return false;
        };
        let own = match at(call, "/name").as_str() {
            None | Some("") => self.growing,
            Some(_) => is_own(at(call, "/name")),
        };
        self.growing = own && at(call, "/willContinue") == true;
        own
    }

    pub(super) fn again(&mut self) {
        self.later = true;
        self.growing = false;
        self.finished = false;
    }
}

/// A last response without the end; says whether anything is left.
pub(super) fn unended(event: &mut Value) -> bool {
    remove(event, USAGE);
    if let Some(candidate) = event.pointer_mut("/candidates/0") {
        remove(candidate, "finishReason");
    }
    let parts = event.pointer(PARTS).and_then(Value::as_array);
    parts.is_some_and(|parts| !parts.is_empty())
}

pub(super) fn end(event: &mut Value, whole: &Value) {
    if event.get(USAGE).is_some() {
        set(event, USAGE, whole[USAGE].clone());
    }
    if let Some(candidate) = event.pointer_mut("/candidates/0")
        && !at(candidate, "/finishReason").is_null()
    {
        let finish = at(whole, "/candidates/0/finishReason").clone();
        set(candidate, "finishReason", finish);
    }
}
