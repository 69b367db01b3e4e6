//! What a proxy edits in Anthropic's requests and answers, and its own errors in Anthropic's shape.

use serde_json::{Value, json};

use super::spec::{Anthropic, MEMBERS};
use crate::proxy::filter_tools::{filter_tool_lists, restrict_tool};
use crate::proxy::json_edit::{pointer_or_null, replace_member, set_member, set_member_in};
use crate::proxy::rounds::{ClientIndexes, collect_elements};
use crate::proxy::{
    EventAction, IsServerTool, MergedEnding, ProxyEdits, StreamEdits, ToolFilterError, ToolRule,
};

impl ProxyEdits for Anthropic {
    fn filter_tools(
        &self,
        body: &str,
        rule: ToolRule<'_>,
    ) -> Result<Option<String>, ToolFilterError> {
        // Types are versioned names of built-in tools, which have a plain name beside them.
        filter_tool_lists(body, rule, |tool, rule| restrict_tool(tool, rule, None))
    }

    fn forbid_tool_calls(&self, body: &str) -> String {
        replace_member(body, MEMBERS.tool_choice, |_| json!({"type": "none"}))
    }

    fn merge_rounds(
        &self,
        merged: &mut Value,
        rounds: &[Value],
        is_server_tool: IsServerTool<'_>,
        ending: MergedEnding,
    ) {
        // Content blocks of all rounds, one after another.
        let is_shown = |block: &Value| !is_server_call(block, is_server_tool);
        let content = collect_elements(rounds, "/content", is_shown);
        set_member(merged, "content", content);
        if ending == MergedEnding::Early {
            set_member(merged, "stop_reason", "end_turn");
        }
    }

    fn stream_edits(&self) -> Box<dyn StreamEdits> {
        Box::new(AnthropicBlocks::default())
    }
}

/// Reports whether a block calls a tool of the server, which the client does not see.
fn is_server_call(block: &Value, is_server_tool: IsServerTool<'_>) -> bool {
    pointer_or_null(block, "/type") == "tool_use" && is_server_tool(pointer_or_null(block, "/name"))
}

/// Returns an error of the proxy in the shape of Anthropic's.
pub(super) fn error_body(status: u16, message: &str) -> String {
    let kind = match status {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        504 => "timeout_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}}).to_string()
}

/// The blocks of a message.
#[derive(Debug, Default)]
struct AnthropicBlocks {
    is_later_round: bool,
    indexes: ClientIndexes,
}

impl StreamEdits for AnthropicBlocks {
    fn edit_event(&mut self, event: &mut Value, is_server_tool: IsServerTool<'_>) -> EventAction {
        let index = pointer_or_null(event, "/index").as_u64();
        let client_index = match (pointer_or_null(event, "/type").as_str(), index) {
            // The client has got the start of the first round: a second one would begin another message.
            (Some("message_start"), _) if self.is_later_round => return EventAction::Drop,
            // The end of a round is the client's end only if no other round follows.
            (Some("message_delta" | "message_stop"), _) => return EventAction::Hold,
            (Some("content_block_start"), Some(index)) => {
                let block = pointer_or_null(event, "/content_block");
                let is_shown = !is_server_call(block, is_server_tool);
                self.indexes.begin(index, is_shown)
            }
            (Some("content_block_delta" | "content_block_stop"), Some(index)) => {
                self.indexes.get(index)
            }
            _ => return EventAction::Show,
        };
        let Some(client_index) = client_index else {
            return EventAction::Drop;
        };
        set_member(event, "index", client_index);
        EventAction::Show
    }

    fn begin_next_round(&mut self) {
        self.is_later_round = true;
        self.indexes.begin_next_round();
    }

    fn rewrite_end(&mut self, event: &mut Value, merged: Option<&Value>) {
        let Some(merged) = merged.filter(|_| pointer_or_null(event, "/type") == "message_delta")
        else {
            return;
        };
        set_member_in(
            event,
            "/delta",
            "stop_reason",
            pointer_or_null(merged, "/stop_reason").clone(),
        );
        set_member(event, "usage", pointer_or_null(merged, "/usage").clone());
    }
}
