//! What a proxy edits in Responses' requests and answers.

use serde_json::Value;

use super::spec::{MEMBERS, Responses};
use crate::openai::shared::proxy;
use crate::proxy::json_edit::{pointer_or_null, set_member, set_member_in};
use crate::proxy::rounds::{ClientIndexes, collect_elements};
use crate::proxy::{
    EventAction, IsServerTool, MergedEnding, ProxyEdits, RequestMember, StreamEdits,
    ToolFilterError, ToolRule,
};

impl ProxyEdits for Responses {
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

    // A stream begins with its id, and unless `store` is false the provider keeps each round by itself.
    fn is_continued_by_first_id(&self, member: RequestMember<'_, '_>) -> bool {
        let is = |name: &str, value: &str| member(name).is_some_and(|raw| raw.get() == value);
        is("stream", "true") && !is("store", "false")
    }

    fn merge_rounds(
        &self,
        merged: &mut Value,
        rounds: &[Value],
        is_server_tool: IsServerTool<'_>,
        _ending: MergedEnding,
    ) {
        // Items of all rounds, one after another. The status does not name calls, so no ending is set.
        let is_shown = |item: &Value| !is_server_call(item, is_server_tool);
        let output = collect_elements(rounds, "/output", is_shown);
        set_member(merged, "output", output);
    }

    fn stream_edits(&self) -> Box<dyn StreamEdits> {
        Box::new(ResponsesItems::default())
    }
}

/// Reports whether an item calls a tool of the server, which the client does not see.
fn is_server_call(item: &Value, is_server_tool: IsServerTool<'_>) -> bool {
    pointer_or_null(item, "/type") == "function_call"
        && is_server_tool(pointer_or_null(item, "/name"))
}

/// The items of an answer.
#[derive(Debug, Default)]
struct ResponsesItems {
    is_later_round: bool,
    indexes: ClientIndexes,
    /// The number of the next event.
    next_number: u64,
    /// The id that the answer began with: clients refuse an end that has another.
    id: Option<Value>,
}

impl StreamEdits for ResponsesItems {
    fn edit_event(&mut self, event: &mut Value, is_server_tool: IsServerTool<'_>) -> EventAction {
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
            let is_shown = || !is_server_call(item, is_server_tool);
            let Some(client_index) = self.indexes.get_or_begin(index, is_shown) else {
                return EventAction::Drop;
            };
            set_member(event, "output_index", client_index);
        }
        self.renumber_event(event);
        EventAction::Show
    }

    fn begin_next_round(&mut self) {
        self.is_later_round = true;
        // `next_number` stays: the client counts events over all rounds.
        self.indexes.begin_next_round();
    }

    fn rewrite_end(&mut self, event: &mut Value, merged: Option<&Value>) {
        self.renumber_event(event);
        if let Some(merged) = merged {
            set_member(event, "response", merged.clone());
            if let Some(id) = &self.id {
                set_member_in(event, "/response", "id", id.clone());
            }
        }
    }
}

impl ResponsesItems {
    fn renumber_event(&mut self, event: &mut Value) {
        if event.get("sequence_number").is_some() {
            set_member(event, "sequence_number", self.next_number);
            self.next_number += 1;
        }
    }
}
