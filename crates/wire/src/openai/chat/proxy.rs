//! What a proxy edits in Chat Completions' requests and answers.

use std::collections::BTreeMap;

use serde_json::Value;

use super::spec::{Chat, MEMBERS};
use crate::openai::shared::proxy;
use crate::proxy::json_edit::{is_empty_value, pointer_or_null, remove_member, set_member};
use crate::proxy::rounds::join_texts;
use crate::proxy::{
    EventAction, IsServerTool, MergedEnding, ProxyEdits, StreamEdits, ToolFilterError, ToolRule,
};

/// Members of a message whose texts are joined over all rounds.
const TEXT_MEMBERS: [&str; 3] = ["content", "reasoning_content", "reasoning"];
/// Members that are equal in all chunks of a message.
const SHARED_MEMBERS: [&str; 2] = ["id", "created"];

impl ProxyEdits for Chat {
    fn filter_tools(
        &self,
        body: &str,
        rule: ToolRule<'_>,
    ) -> Result<Option<String>, ToolFilterError> {
        proxy::filter_tools(body, rule)
    }

    fn forbid_tool_calls(&self, body: &str) -> String {
        proxy::forbid_tool_calls(body, MEMBERS.tool_choice)
    }

    fn merge_rounds(
        &self,
        merged: &mut Value,
        rounds: &[Value],
        is_server_tool: IsServerTool<'_>,
        ending: MergedEnding,
    ) {
        // One message per answer: its texts are joined, its calls are those of the last round.
        let mut message = pointer_or_null(merged, "/choices/0/message").clone();
        for name in TEXT_MEMBERS {
            let texts = rounds.iter().map(|round| {
                pointer_or_null(
                    pointer_or_null(round, "/choices/0/message"),
                    &format!("/{name}"),
                )
            });
            // Without a separator: a client that streams puts the same pieces together in the same way.
            join_texts(&mut message, name, texts);
        }
        let is_shown = |call: &Value| !is_server_tool(pointer_or_null(call, "/function/name"));
        if let Some(calls) = message.get_mut("tool_calls").and_then(Value::as_array_mut) {
            calls.retain(is_shown);
        }
        // Clients take an empty list for a call that is missing.
        if pointer_or_null(&message, "/tool_calls")
            .as_array()
            .is_some_and(Vec::is_empty)
        {
            remove_member(&mut message, "tool_calls");
        }
        if let Some(choice) = merged.pointer_mut("/choices/0") {
            set_member(choice, "message", message);
            if ending == MergedEnding::Early {
                set_member(choice, "finish_reason", "stop");
            }
        }
    }

    fn stream_edits(&self) -> Box<dyn StreamEdits> {
        Box::new(ChatChunks::default())
    }
}

/// The chunks of a message.
#[derive(Debug, Default)]
struct ChatChunks {
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

impl StreamEdits for ChatChunks {
    fn edit_event(&mut self, chunk: &mut Value, is_server_tool: IsServerTool<'_>) -> EventAction {
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
            taken |= self.edit_calls(delta, is_server_tool);
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

    fn begin_next_round(&mut self) {
        self.is_later_round = true;
        // `sent_count` stays: the client's indexes go on over all rounds.
        self.calls.clear();
        self.finished = false;
    }

    fn strip_end(&mut self, chunk: &mut Value) -> bool {
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

    fn rewrite_end(&mut self, chunk: &mut Value, merged: Option<&Value>) {
        let Some(merged) = merged else {
            return;
        };
        if !pointer_or_null(chunk, "/usage").is_null() {
            set_member(chunk, "usage", pointer_or_null(merged, "/usage").clone());
        }
        if let Some(choice) = chunk.pointer_mut("/choices/0")
            && !pointer_or_null(choice, "/finish_reason").is_null()
        {
            let finish = pointer_or_null(merged, "/choices/0/finish_reason").clone();
            set_member(choice, "finish_reason", finish);
        }
    }
}

impl ChatChunks {
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
    fn edit_calls(&mut self, delta: &mut Value, is_server_tool: IsServerTool<'_>) -> bool {
        let Some(calls) = delta.get_mut("tool_calls").and_then(Value::as_array_mut) else {
            return false;
        };
        let before = calls.len();
        calls.retain_mut(|call| {
            let index = pointer_or_null(call, "/index").as_u64();
            let client_index = self.client_index(call, index, is_server_tool);
            if let (Some(client_index), Some(_)) = (client_index, index) {
                set_member(call, "index", client_index);
            }
            client_index.is_some()
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
        is_server_tool: IsServerTool<'_>,
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
            let client_index = (!is_server_tool(name)).then_some(self.sent_count);
            self.sent_count += u64::from(client_index.is_some());
            let id = id.map(str::to_owned);
            self.calls.insert(index, ChatCall { id, client_index });
        }
        self.calls.get(&index)?.client_index
    }
}
