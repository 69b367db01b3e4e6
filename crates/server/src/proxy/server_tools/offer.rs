//! The offer: when a request may offer a server tool.

use contexture::ir::{Fields, Item, ResponseFormat, ToolChoice};
use contexture::{CompiledCall, Format, lift};
use serde_json::value::RawValue;
use serde_json::{Value, json};

use crate::proxy::capture::ingest::ParsedRequest;
use crate::proxy::json::json_object;
use crate::proxy::json::{remove_member, set_member};
use crate::proxy::server_tools::tools::ServerTool;

/// Whether a request allows a server tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfferPermission {
    /// A model may call it.
    Free,
    /// Only if the history has calls of it: the client chooses the tools, or wants JSON, which joined texts of several rounds
    /// are not, or may continue from a round that is not the last.
    IfInHistory,
    /// It would be taken for a tool of the client, or the answers could not be merged.
    Never,
}

impl OfferPermission {
    /// Returns whether a request allows this tool.
    pub(crate) fn for_tool(tool: &ServerTool, format: Format, request: &ParsedRequest) -> Self {
        let mut theirs = request.transcript.tools.iter();
        let has_it = theirs.any(|one| one.name() == tool.name());
        if has_it || !is_single_answer(|name| request.body_field(name)) {
            return Self::Never;
        }
        let options = &request.transcript.options;
        let chooses = !matches!(options.tool_choice, None | Some(ToolChoice::Auto));
        let wants_json = !matches!(options.response_format, None | Some(ResponseFormat::Text));
        match chooses || wants_json || starts_with_response_id(format, request) {
            true => Self::IfInHistory,
            false => Self::Free,
        }
    }

    /// Whether a compiled call should offer the tool: it omits content that the tool reads, or its history has calls of it,
    /// which a provider may refuse without the definition.
    pub(crate) fn should_offer(self, tool: &ServerTool, call: &CompiledCall) -> bool {
        match self {
            // Previews and placeholders name the link by which the tool reads the rest.
            Self::Free => !call.report.rewritten.is_empty() || has_calls_of(tool, call),
            Self::IfInHistory => has_calls_of(tool, call),
            Self::Never => false,
        }
    }
}

/// Whether a request with these fields asks for a single answer, in the foreground.
fn is_single_answer<'r>(field: impl Fn(&str) -> Option<&'r RawValue>) -> bool {
    let value = |raw: &RawValue| -> Option<Value> { serde_json::from_str(raw.get()).ok() };
    let either = |names: [&str; 2]| names.into_iter().find_map(&field);
    let config = either(["generationConfig", "generation_config"]);
    let config = config.and_then(|config| Fields::parse(config.get()).ok());
    let candidates = config.as_ref().and_then(|config| {
        let count = config.get(&["candidateCount", "candidate_count"])?;
        value(count)
    });
    let is_many = |count: Option<Value>| count.and_then(|count| count.as_u64()) > Some(1);
    !is_many(field("n").and_then(value))
        && !is_many(candidates)
        && field("background").is_none_or(|background| background.get() != "true")
}

/// Whether a stream begins with the id by which the client may go on: a provider that keeps answers (Responses, unless
/// `store` is false) keeps each round by itself, and only the last can be gone on from.
fn starts_with_response_id(format: Format, request: &ParsedRequest) -> bool {
    let is = |name: &str, value: &str| {
        request
            .body_field(name)
            .is_some_and(|raw| raw.get() == value)
    };
    format == Format::OpenAiResponses && is("stream", "true") && !is("store", "false")
}

/// Whether the history of a call has calls of a tool.
fn has_calls_of(tool: &ServerTool, call: &CompiledCall) -> bool {
    let is_call =
        |item: &Item| matches!(item, Item::FunctionCall(call) if call.name == tool.name());
    let name = format!("\"{}\"", tool.name());
    // Parsing the payload is expensive: done only where the name occurs in it at all.
    call.payload
        .json_chunks()
        .any(|piece| piece.contains(&name))
        && lift(call.format(), &call.payload.to_json())
            .is_ok_and(|lifted| lifted.transcript.items.iter().any(is_call))
}

/// Returns the request with tool calls forbidden. The tools stay, as the history has calls of them.
pub(crate) fn forbid_tool_calls(format: Format, body: &str) -> String {
    let names: &[&str] = match format {
        Format::Gemini => &["toolConfig", "tool_config"],
        _ => &["tool_choice", "function_call"],
    };
    let Ok(fields) = Fields::parse(body) else {
        return body.to_owned();
    };
    let given = fields.get(names).map(|value| value.get());
    let given: Option<Value> = given.and_then(|given| serde_json::from_str(given).ok());
    let none = match format {
        Format::Anthropic => json!({"type": "none"}),
        Format::Gemini => {
            let mut config = given.filter(Value::is_object).unwrap_or_else(|| json!({}));
            // The other spelling must not contradict the one that is set.
            remove_member(&mut config, "function_calling_config");
            set_member(
                &mut config,
                "functionCallingConfig",
                json!({"mode": "NONE"}),
            );
            config
        }
        _ => json!("none"),
    };
    let none = none.to_string();
    let others = fields.iter().filter(|(name, _)| !names.contains(name));
    let mut members: Vec<(&str, &str)> = others.map(|(name, value)| (name, value.get())).collect();
    members.extend(names.first().map(|name| (*name, none.as_str())));
    json_object(members)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_answer_is_one() {
        for (body, expected) in [
            ("{}", true),
            (r#"{"n":1}"#, true),
            (r#"{"n":2}"#, false),
            (r#"{"background":true}"#, false),
            (r#"{"background":false,"n":null}"#, true),
            (r#"{"generationConfig":{"candidateCount":1}}"#, true),
            (r#"{"generation_config":{"candidate_count":3}}"#, false),
        ] {
            let fields = Fields::parse(body).unwrap();
            let is_one = is_single_answer(|name| fields.get(&[name]));
            assert_eq!(is_one, expected, "{body}");
        }
    }

    #[test]
    fn a_choice_is_taken_away_and_all_else_stays() {
        for (format, body, expected) in [
            (
                Format::OpenAiChat,
                r#"{"tool_choice":"auto","n":1.0}"#,
                r#"{"n":1.0,"tool_choice":"none"}"#,
            ),
            (
                Format::Anthropic,
                r#"{"x": 1e2}"#,
                r#"{"x":1e2,"tool_choice":{"type":"none"}}"#,
            ),
            (
                Format::Gemini,
                r#"{"toolConfig":{"retrievalConfig":{"languageCode":"en"}}}"#,
                r#"{"toolConfig":{"retrievalConfig":{"languageCode":"en"},"functionCallingConfig":{"mode":"NONE"}}}"#,
            ),
        ] {
            assert_eq!(forbid_tool_calls(format, body), expected);
        }
    }
}
