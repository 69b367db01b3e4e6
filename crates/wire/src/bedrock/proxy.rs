//! What a proxy edits in Bedrock's requests and answers, and its own errors in Bedrock's shape.

use std::borrow::Cow;

use contexture_ir::Fields;
use serde_json::value::RawValue;
use serde_json::{Value, json};

use super::block::single_member;
use super::spec::{Bedrock, MEMBERS};
use crate::model::json::json_array;
use crate::proxy::filter_tools::{filter_tool_lists, restrict_tool};
use crate::proxy::json_edit::{
    edit_member, json_object, pointer_or_null, set_member, set_member_in, without_member,
};
use crate::proxy::rounds::{ClientIndexes, collect_elements};
use crate::proxy::{
    EventAction, IsServerTool, MergedEnding, ProxyEdits, StreamEdits, ToolFilterError, ToolRule,
};

/// Where an answer has its blocks.
const CONTENT: &str = "/output/message/content";
/// The member with the tools and their choice.
const TOOL_CONFIG: &str = "toolConfig";
/// The member with what goes to the model as it is: a model's own tools may be among it.
const ADDITIONAL: &str = "additionalModelRequestFields";
/// The member by which the blocks of a streamed answer are told apart.
const INDEX: &str = "contentBlockIndex";

impl ProxyEdits for Bedrock {
    fn filter_tools(
        &self,
        body: &str,
        rule: ToolRule<'_>,
    ) -> Result<Option<String>, ToolFilterError> {
        let fields = Fields::parse(body).map_err(|_| ToolFilterError::Unreadable)?;
        let mut members: Vec<(&str, Cow<'_, str>)> = Vec::new();
        let mut is_changed = false;
        for (name, value) in fields.iter().map(|(name, value)| (name, value.get())) {
            let restricted = match name {
                TOOL_CONFIG if value != "null" => restrict_tool_config(value, rule)?,
                ADDITIONAL if value.trim_start().starts_with('{') => {
                    let own = |tool: &str, rule: ToolRule<'_>| restrict_tool(tool, rule, None);
                    filter_tool_lists(value, rule, own)?.map(Some)
                }
                _ => None,
            };
            is_changed |= restricted.is_some();
            let value = restricted.map_or(Some(Cow::Borrowed(value)), |left| left.map(Cow::Owned));
            members.extend(value.map(|value| (name, value)));
        }
        let members = members.iter().map(|(name, value)| (*name, value.as_ref()));
        Ok(is_changed.then(|| json_object(members)))
    }

    // There is no word for a ban: the best that can be said is that no tool has to be used.
    fn forbid_tool_calls(&self, body: &str) -> String {
        edit_member(body, TOOL_CONFIG, |config| {
            without_member(config, "toolChoice")
        })
        .unwrap_or_else(|| body.to_owned())
    }

    fn merge_rounds(
        &self,
        merged: &mut Value,
        rounds: &[Value],
        is_server_tool: IsServerTool<'_>,
        ending: MergedEnding,
    ) {
        // Content blocks of all rounds, one after another.
        let is_shown = |block: &Value| {
            let call = block.get("toolUse");
            !call.is_some_and(|call| is_server_tool(pointer_or_null(call, "/name")))
        };
        let content = collect_elements(rounds, CONTENT, is_shown);
        set_member_in(merged, "/output/message", "content", content);
        if ending == MergedEnding::Early {
            set_member(merged, "stopReason", "end_turn");
        }
    }

    fn stream_edits(&self) -> Box<dyn StreamEdits> {
        Box::new(BedrockBlocks::default())
    }
}

/// The tools that may be offered; `None` if those are all there are, and nothing within if none is left.
fn restrict_tool_config(
    config: &str,
    rule: ToolRule<'_>,
) -> Result<Option<Option<String>>, ToolFilterError> {
    let fields = Fields::parse(config).map_err(|_| ToolFilterError::Unreadable)?;
    // Parsers differ in which of two equal names counts, so neither may decide what is offered.
    for name in ["tools", "toolChoice"] {
        if fields.iter().filter(|(other, _)| *other == name).count() > 1 {
            return Err(ToolFilterError::Unreadable);
        }
    }
    check_choice(&fields, rule)?;
    let Some(list) = fields.get(&["tools"]) else {
        return Ok(None);
    };
    let tools: Vec<&RawValue> =
        serde_json::from_str(list.get()).map_err(|_| ToolFilterError::Unreadable)?;
    let mut allowed: Vec<&str> = Vec::new();
    for tool in &tools {
        // A cache point in front of everything is refused.
        let is_kept = match tool_name(tool)? {
            Some(name) => rule(&[&name]),
            None => !allowed.is_empty(),
        };
        allowed.extend(is_kept.then_some(tool.get()));
    }
    if allowed.len() == tools.len() {
        return Ok(None);
    }
    // Without tools the whole member is refused.
    Ok(Some((!allowed.is_empty()).then(|| {
        let list = json_array(allowed);
        let members = fields.iter().map(|(name, value)| match name {
            "tools" => (name, list.as_str()),
            name => (name, value.get()),
        });
        json_object(members)
    })))
}

/// Refuses a request that insists on a tool which may not be offered.
fn check_choice(config: &Fields<'_>, rule: ToolRule<'_>) -> Result<(), ToolFilterError> {
    let Some(choice) = config
        .get(&["toolChoice"])
        .filter(|raw| raw.get() != "null")
    else {
        return Ok(());
    };
    let choice: Value =
        serde_json::from_str(choice.get()).map_err(|_| ToolFilterError::Unreadable)?;
    match pointer_or_null(&choice, "/tool/name") {
        Value::Null => Ok(()),
        Value::String(tool) if rule(&[tool]) => Ok(()),
        Value::String(tool) => Err(ToolFilterError::Denied {
            option: "toolConfig.toolChoice".to_owned(),
            tool: tool.clone(),
        }),
        _ => Err(ToolFilterError::Unreadable),
    }
}

/// The name of a tool; `None` for a cache point, which is none.
fn tool_name(tool: &RawValue) -> Result<Option<String>, ToolFilterError> {
    let fields = Fields::parse(tool.get()).map_err(|_| ToolFilterError::Unreadable)?;
    let (member, value) = single_member(&fields).ok_or(ToolFilterError::Unreadable)?;
    if member == "cachePoint" {
        return Ok(None);
    }
    let mut fields = Fields::parse(value.get()).map_err(|_| ToolFilterError::Unreadable)?;
    let name = fields.take_string(&["name"]);
    let name = name.map_err(|_| ToolFilterError::Unreadable)?;
    // Fails closed: a tool without a name cannot be judged.
    name.ok_or(ToolFilterError::Unreadable).map(Some)
}

/// Returns an error of the proxy in the shape of Bedrock's; its kind is in a header.
pub(super) fn error_body(message: &str) -> String {
    json!({"message": message}).to_string()
}

/// The kind of an error, as the header `x-amzn-errortype` names it.
pub(super) const fn error_type(status: u16) -> &'static str {
    match status {
        401 | 403 => "AccessDeniedException",
        404 => "ResourceNotFoundException",
        408 | 504 => "ModelTimeoutException",
        429 => "ThrottlingException",
        400..=499 => "ValidationException",
        502 | 503 => "ServiceUnavailableException",
        _ => "InternalServerException",
    }
}

/// The blocks of a message.
#[derive(Debug, Default)]
struct BedrockBlocks {
    is_later_round: bool,
    indexes: ClientIndexes,
}

impl StreamEdits for BedrockBlocks {
    fn edit_event(&mut self, event: &mut Value, is_server_tool: IsServerTool<'_>) -> EventAction {
        let members = event.as_object_mut().into_iter().flatten();
        let Some((name, payload)) = members.into_iter().next() else {
            return EventAction::Show;
        };
        match name.as_str() {
            // The client has got the start of the first round: a second one would begin another message.
            "messageStart" if self.is_later_round => return EventAction::Drop,
            // The end of a round is the client's end only if no other round follows.
            "messageStop" | "metadata" => return EventAction::Hold,
            "contentBlockStart" | "contentBlockDelta" | "contentBlockStop" => {}
            _ => return EventAction::Show,
        }
        let Some(index) = pointer_or_null(payload, "/contentBlockIndex").as_u64() else {
            return EventAction::Show;
        };
        // Text and thoughts have no start: whatever comes first of a block begins it.
        let is_shown = || !is_server_tool(pointer_or_null(payload, "/start/toolUse/name"));
        let Some(client_index) = self.indexes.get_or_begin(index, is_shown) else {
            return EventAction::Drop;
        };
        set_member(payload, INDEX, client_index);
        EventAction::Show
    }

    fn begin_next_round(&mut self) {
        self.is_later_round = true;
        self.indexes.begin_next_round();
    }

    fn rewrite_end(&mut self, event: &mut Value, merged: Option<&Value>) {
        let Some(merged) = merged else {
            return;
        };
        let reason = pointer_or_null(merged, "/stopReason").clone();
        set_member_in(event, "/messageStop", "stopReason", reason);
        let usage = pointer_or_null(merged, &format!("/{}", MEMBERS.usage)).clone();
        set_member_in(event, "/metadata", MEMBERS.usage, usage);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filtered(body: &str) -> Result<Option<String>, ToolFilterError> {
        Bedrock.filter_tools(body, &|names| !names.contains(&"bad"))
    }

    #[test]
    fn forbidden_tools_are_taken_out() {
        let tool = |name: &str| format!(r#"{{"toolSpec":{{"name":"{name}"}}}}"#);
        let (good, bad, point) = (
            tool("good"),
            tool("bad"),
            r#"{"cachePoint":{"type":"default"}}"#,
        );
        let body = |tools: &str| {
            format!(
                r#"{{"messages":[],"toolConfig":{{"tools":[{tools}],"toolChoice":{{"any":{{}}}}}}}}"#
            )
        };
        assert_eq!(filtered(&body(&format!("{good}, {point}"))), Ok(None));
        assert_eq!(
            filtered(&body(&format!("{bad},{point},{good},{point}"))),
            Ok(Some(body(&format!("{good},{point}"))))
        );
        let none = Ok(Some(r#"{"messages":[]}"#.to_owned()));
        assert_eq!(filtered(&body(&bad)), none);
        assert_eq!(filtered(r#"{"toolConfig":null}"#), Ok(None));
        let system = r#"{"systemTool":{"name":"bad"}}"#;
        assert_eq!(filtered(&body(system)), none);
        for unreadable in [
            "1",
            r#"{"toolSpec":{}}"#,
            r#"{"toolSpec":{"name":"good"},"x":1}"#,
        ] {
            assert_eq!(
                filtered(&body(unreadable)),
                Err(ToolFilterError::Unreadable)
            );
        }
        // The last of two equal names counts for some parsers and the first for others.
        for name in ["tools", "toolChoice"] {
            let twice = format!(r#"{{"toolConfig":{{"{name}":[],"{name}":[]}}}}"#);
            assert_eq!(filtered(&twice), Err(ToolFilterError::Unreadable));
        }
        let inner = r#"{"additionalModelRequestFields":{"tools":[{"type":"computer","name":"bad"}],"top_k":1}}"#;
        let left = r#"{"additionalModelRequestFields":{"top_k":1}}"#;
        assert_eq!(filtered(inner), Ok(Some(left.to_owned())));
    }

    #[test]
    fn a_choice_of_a_forbidden_tool_is_refused() {
        let body = r#"{"toolConfig":{"tools":[],"toolChoice":{"tool":{"name":"bad"}}}}"#;
        let denied = ToolFilterError::Denied {
            option: "toolConfig.toolChoice".to_owned(),
            tool: "bad".to_owned(),
        };
        assert_eq!(filtered(body), Err(denied));
    }

    #[test]
    fn no_tool_has_to_be_used_in_a_last_round() {
        let with = r#"{"toolConfig":{"tools":[],"toolChoice":{"any":{}}}}"#;
        let without = r#"{"toolConfig":{"tools":[]}}"#;
        assert_eq!(Bedrock.forbid_tool_calls(with), without);
        assert_eq!(Bedrock.forbid_tool_calls(without), without);
    }

    #[test]
    fn blocks_are_numbered_over_all_rounds() {
        let mut edits = BedrockBlocks::default();
        let mut show = |event: Value| {
            let mut event = event;
            let action = edits.edit_event(&mut event, &|name| name == "own");
            (action == EventAction::Show).then_some(event)
        };
        let call = |index: u64, name: &str| json!({"contentBlockStart": {INDEX: index, "start": {"toolUse": {"name": name}}}});
        let delta = |index: u64| json!({"contentBlockDelta": {INDEX: index, "delta": {}}});
        assert_eq!(show(call(0, "own")), None);
        assert_eq!(show(delta(0)), None);
        assert_eq!(show(delta(1)), Some(delta(0)));
        assert_eq!(show(call(2, "f")), Some(call(1, "f")));
        assert_eq!(show(json!({"messageStop": {}})), None);
        edits.begin_next_round();
        let mut start = json!({"messageStart": {}});
        let action = edits.edit_event(&mut start, &|_| false);
        assert_eq!(action, EventAction::Drop);
        let mut next = delta(0);
        edits.edit_event(&mut next, &|_| false);
        assert_eq!(next, delta(2));
    }
}
