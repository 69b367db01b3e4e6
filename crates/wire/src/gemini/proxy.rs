//! What a proxy edits in Gemini's requests and answers, and its own errors in Gemini's shape.

use contexture_ir::Fields;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::spec::{Gemini, MEMBERS};
use crate::model::json::json_array;
use crate::proxy::filter_tools::{filter_tool_lists, is_tool_allowed};
use crate::proxy::json_edit::{
    json_object, pointer_or_null, remove_member, replace_member, set_member, set_member_in,
};
use crate::proxy::rounds::collect_elements;
use crate::proxy::{
    EventAction, IsServerTool, MergedEnding, ProxyEdits, StreamEdits, ToolFilterError, ToolRule,
};

/// Where an answer has its parts.
const PARTS: &str = "/candidates/0/content/parts";
/// Members in which a part has its call: hosts use both spellings.
const CALL_MEMBERS: [&str; 2] = ["functionCall", "function_call"];
/// Where functions are listed within a tool.
const FUNCTION_LISTS: [&str; 2] = ["functionDeclarations", "function_declarations"];

impl ProxyEdits for Gemini {
    fn filter_tools(
        &self,
        body: &str,
        rule: ToolRule<'_>,
    ) -> Result<Option<String>, ToolFilterError> {
        filter_tool_lists(body, rule, restrict_group)
    }

    fn forbid_tool_calls(&self, body: &str) -> String {
        replace_member(body, MEMBERS.tool_choice, |config| {
            let mut config = config.filter(Value::is_object).unwrap_or_else(|| json!({}));
            // The other spelling must not contradict the one that is set.
            remove_member(&mut config, "function_calling_config");
            let none = json!({"mode": "NONE"});
            set_member(&mut config, "functionCallingConfig", none);
            config
        })
    }

    // Gemini streams into an array where no events are asked for.
    fn is_event_array(&self, document: &str) -> bool {
        document.trim_start().starts_with('[')
    }

    fn merge_rounds(
        &self,
        merged: &mut Value,
        rounds: &[Value],
        is_server_tool: IsServerTool<'_>,
        ending: MergedEnding,
    ) {
        // Parts of all rounds, one after another.
        let is_shown = |part: &Value| {
            let mut calls = CALL_MEMBERS.iter().filter_map(|name| part.get(name));
            !calls.any(|call| is_server_tool(pointer_or_null(call, "/name")))
        };
        let parts = collect_elements(rounds, PARTS, is_shown);
        if let Some(candidate) = merged.pointer_mut("/candidates/0") {
            // A last round without any part has no content object to put them in.
            if !pointer_or_null(candidate, "/content").is_object() {
                set_member(candidate, "content", json!({"role": "model"}));
            }
            set_member_in(candidate, "/content", "parts", parts);
            if ending == MergedEnding::Early {
                set_member(candidate, "finishReason", "STOP");
            }
        }
    }

    fn stream_edits(&self) -> Box<dyn StreamEdits> {
        Box::new(GeminiParts::default())
    }
}

/// Returns an error of the proxy in the shape of Google's.
pub(super) fn error_body(status: u16, message: &str) -> String {
    let word = match status {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        504 => "DEADLINE_EXCEEDED",
        502 | 503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status, "message": message, "status": word}}).to_string()
}

/// Takes out of a tool what may not be offered. A tool is a group: each function in it, and each built-in member, is allowed or
/// not by itself.
fn restrict_group(tool: &str, rule: ToolRule<'_>) -> Result<Option<String>, ToolFilterError> {
    let fields = Fields::parse(tool).map_err(|_| ToolFilterError::Unreadable)?;
    let mut members: Vec<(&str, String)> = Vec::new();
    let mut is_changed = false;
    for (name, value) in fields.iter() {
        if !FUNCTION_LISTS.contains(&name) {
            // Gemini reads both spellings, so a rule in one must hold for the other.
            let [camel, snake] = case_spellings(name);
            let is_allowed = rule(&[&camel, &snake]);
            is_changed |= !is_allowed;
            if is_allowed {
                members.push((name, value.get().to_owned()));
            }
            continue;
        }
        let functions: Vec<&RawValue> =
            serde_json::from_str(value.get()).map_err(|_| ToolFilterError::Unreadable)?;
        let mut allowed = Vec::new();
        for function in &functions {
            let fields = Fields::parse(function.get()).map_err(|_| ToolFilterError::Unreadable)?;
            let is_allowed = is_tool_allowed(&fields, rule, None)?;
            allowed.extend(is_allowed.then_some(function.get()));
        }
        is_changed |= allowed.len() != functions.len();
        if !allowed.is_empty() {
            members.push((name, json_array(allowed)));
        }
    }
    Ok(match is_changed {
        false => Some(tool.to_owned()),
        // An empty group offers nothing, and a list of such groups would count as having tools.
        true if members.is_empty() => None,
        true => Some(json_object(
            members.iter().map(|(name, value)| (*name, value.as_str())),
        )),
    })
}

/// Returns both spellings under which Gemini reads a member: `googleSearch` and `google_search`.
fn case_spellings(name: &str) -> [String; 2] {
    let (mut camel, mut snake) = (String::new(), String::new());
    let mut begins = false;
    for letter in name.chars() {
        match (letter, begins) {
            ('_', _) => {}
            (_, true) => camel.push(letter.to_ascii_uppercase()),
            (_, false) => camel.push(letter),
        }
        begins = letter == '_';
        if letter.is_ascii_uppercase() {
            snake.push('_');
        }
        snake.push(letter.to_ascii_lowercase());
    }
    [camel, snake]
}

/// The parts of an answer.
#[derive(Debug, Default)]
struct GeminiParts {
    is_later_round: bool,
    /// The id that the first response gave.
    id: Option<Value>,
    /// Whether the call that is still growing is one of ours.
    growing: bool,
    finished: bool,
}

impl StreamEdits for GeminiParts {
    fn edit_event(&mut self, event: &mut Value, is_server_tool: IsServerTool<'_>) -> EventAction {
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
            parts.retain(|part| !self.is_server_call(part, is_server_tool));
            taken = parts.len() < before;
        }
        if self.finished {
            return EventAction::Hold;
        }
        if self.is_later_round {
            // It would count this round alone; the sum of all rounds comes with the end.
            remove_member(event, MEMBERS.usage);
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

    fn begin_next_round(&mut self) {
        self.is_later_round = true;
        self.growing = false;
        self.finished = false;
    }

    fn strip_end(&mut self, event: &mut Value) -> bool {
        remove_member(event, MEMBERS.usage);
        if let Some(candidate) = event.pointer_mut("/candidates/0") {
            remove_member(candidate, "finishReason");
        }
        let parts = event.pointer(PARTS).and_then(Value::as_array);
        parts.is_some_and(|parts| !parts.is_empty())
    }

    fn rewrite_end(&mut self, event: &mut Value, merged: Option<&Value>) {
        let Some(merged) = merged else {
            return;
        };
        if event.get(MEMBERS.usage).is_some() {
            let usage = merged.get(MEMBERS.usage).cloned();
            set_member(event, MEMBERS.usage, usage);
        }
        if let Some(candidate) = event.pointer_mut("/candidates/0")
            && !pointer_or_null(candidate, "/finishReason").is_null()
        {
            let finish = pointer_or_null(merged, "/candidates/0/finishReason").clone();
            set_member(candidate, "finishReason", finish);
        }
    }
}

impl GeminiParts {
    fn is_server_call(&mut self, part: &Value, is_server_tool: IsServerTool<'_>) -> bool {
        let Some(call) = CALL_MEMBERS.iter().find_map(|name| part.get(name)) else {
            return false;
        };
        let own = match pointer_or_null(call, "/name").as_str() {
            // A call that is streamed in pieces has its name in the first one only.
            None | Some("") => self.growing,
            Some(_) => is_server_tool(pointer_or_null(call, "/name")),
        };
        self.growing = own && pointer_or_null(call, "/willContinue") == true;
        own
    }
}
