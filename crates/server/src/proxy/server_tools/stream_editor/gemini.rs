//! Gemini's stream: whole responses, each with the parts that are new.

use serde_json::Value;

use super::EventAction;
use crate::proxy::json::{pointer_or_null, remove_member, set_member};

const PARTS: &str = "/candidates/0/content/parts";
const CALL: [&str; 2] = ["functionCall", "function_call"];
const USAGE: &str = "usageMetadata";

/// The parts of an answer.
#[derive(Debug, Default)]
pub(super) struct GeminiParts {
    is_later_round: bool,
    /// The id that the first response gave.
    id: Option<Value>,
    /// Whether the call that is still growing is one of ours.
    growing: bool,
    finished: bool,
}

impl GeminiParts {
    pub(super) fn edit_event(
        &mut self,
        event: &mut Value,
        is_own: &dyn Fn(&Value) -> bool,
    ) -> EventAction {
        let id = pointer_or_null(event, "/responseId");
        if self.id.is_none() && !id.is_null() {
            self.id = Some(id.clone());
        }
        if let Some(first) = self.id.clone().filter(|_| self.is_later_round) {
            set_member(event, "responseId", first);
        }
        let candidate = pointer_or_null(event, "/candidates/0");
        self.finished |= !pointer_or_null(candidate, "/finishReason").is_null();
        let mut taken = false;
        if let Some(parts) = event.pointer_mut(PARTS).and_then(Value::as_array_mut) {
            let before = parts.len();
            parts.retain(|part| !self.is_server_call(part, is_own));
            taken = parts.len() < before;
        }
        if self.finished {
            return EventAction::Hold;
        }
        if self.is_later_round {
            // It would count this round alone; the sum of all rounds comes with the end.
            remove_member(event, USAGE);
        }
        let empty = event
            .pointer(PARTS)
            .and_then(Value::as_array)
            .is_none_or(Vec::is_empty);
        match (taken || self.is_later_round) && empty {
            true => EventAction::Drop,
            false => EventAction::Show,
        }
    }

    fn is_server_call(&mut self, part: &Value, is_own: &dyn Fn(&Value) -> bool) -> bool {
        let Some(call) = CALL.iter().find_map(|name| part.get(name)) else {
            return false;
        };
        let own = match pointer_or_null(call, "/name").as_str() {
            // A call that is streamed in pieces has its name in the first one only.
            None | Some("") => self.growing,
            Some(_) => is_own(pointer_or_null(call, "/name")),
        };
        self.growing = own && pointer_or_null(call, "/willContinue") == true;
        own
    }

    pub(super) fn begin_next_round(&mut self) {
        self.is_later_round = true;
        self.growing = false;
        self.finished = false;
    }
}

/// Removes the end from a last response. Returns whether anything is left.
pub(super) fn strip_end(event: &mut Value) -> bool {
    remove_member(event, USAGE);
    if let Some(candidate) = event.pointer_mut("/candidates/0") {
        remove_member(candidate, "finishReason");
    }
    let parts = event.pointer(PARTS).and_then(Value::as_array);
    parts.is_some_and(|parts| !parts.is_empty())
}

pub(super) fn rewrite_end(event: &mut Value, whole: &Value) {
    if event.get(USAGE).is_some() {
        set_member(event, USAGE, whole[USAGE].clone());
    }
    if let Some(candidate) = event.pointer_mut("/candidates/0")
        && !pointer_or_null(candidate, "/finishReason").is_null()
    {
        let finish = pointer_or_null(whole, "/candidates/0/finishReason").clone();
        set_member(candidate, "finishReason", finish);
    }
}
