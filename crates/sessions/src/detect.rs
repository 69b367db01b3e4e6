//! Detection of a log's format by what the text holds; the file's name only breaks ties.

use contexture_ir::Fields;
use contexture_wire::Format;
use serde::de::IgnoredAny;
use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::format::SessionFormat;
use crate::json::{excerpt, text_of};

/// A format and the evidence for it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Detected {
    /// The format.
    pub format: SessionFormat,
    /// What was seen, in a sentence fragment: `an array of objects with `traj``.
    pub evidence: String,
}

/// How many lines of a log, or elements of an array, are looked at.
const LINES: usize = 50;

/// Detects the format of a log.
///
/// # Errors
/// [`SessionError::NotJson`] where neither the text nor one of its first lines is JSON,
/// [`SessionError::Unknown`] where nothing in it speaks for a format.
pub fn detect_format(text: &str, file_name: &str) -> Result<Detected, SessionError> {
    let text = text.strip_prefix('\u{feff}').unwrap_or(text);
    // The whole text is checked first: a pretty-printed document has many lines, none of which is a record.
    match serde_json::from_str::<IgnoredAny>(text) {
        Ok(_) if text.trim_start().starts_with('[') => detect_array(text),
        Ok(_) => detect_object(text, file_name),
        // The error of the whole text is reported if no line is a record either: it has the place that a person
        // looks for.
        Err(source) => detect_lines(text, file_name)?.ok_or_else(|| SessionError::NotJson {
            line: source.line(),
            column: source.column(),
            source,
        }),
    }
}

fn detected_as(format: SessionFormat, evidence: &str) -> Detected {
    Detected {
        format,
        evidence: evidence.to_owned(),
    }
}

fn detected_wire(format: Format, evidence: &str) -> Detected {
    detected_as(SessionFormat::Wire(format), evidence)
}

/// A text of several lines of which at least one is a JSON object.
fn detect_lines(text: &str, file_name: &str) -> Result<Option<Detected>, SessionError> {
    let mut lines = text.lines().filter(|line| !line.trim().is_empty());
    let several = lines.clone().nth(1).is_some();
    // Bounded, because a log of lines may begin with megabytes that we do not know.
    let records = lines.by_ref().take(LINES);
    let mut first = None;
    for line in records {
        // A broken line proves nothing: logs are cut off while they are written.
        let Ok(fields) = Fields::parse(line) else {
            continue;
        };
        if let Some(detected) = detect_record(&fields) {
            return Ok(Some(detected));
        }
        first.get_or_insert(line);
    }
    // The name decides only where the lines are JSON objects of no known type.
    match first {
        Some(_) if file_name.starts_with("rollout-") => {
            let evidence = "a file named `rollout-…` of JSON lines";
            Ok(Some(detected_as(SessionFormat::Codex, evidence)))
        }
        Some(line) if several => Err(SessionError::Unknown {
            found: format!("JSON lines such as {}", excerpt(line)),
        }),
        _ => Ok(None),
    }
}

/// A record of a log of lines.
fn detect_record(fields: &Fields<'_>) -> Option<Detected> {
    let has = |name: &str| fields.get(&[name]).is_some();
    let kind = text_of(fields, "type")?;
    // Both conditions, for `type` alone is in nearly every format of lines.
    if has("payload") {
        let known = [
            "session_meta",
            "response_item",
            "event_msg",
            "turn_context",
            "compacted",
        ];
        if known.contains(&kind.as_str()) {
            let evidence = format!("a line of type `{kind}` with a `payload`");
            return Some(detected_as(SessionFormat::Codex, &evidence));
        }
    }
    // Older versions write some of these fields only.
    let linked = has("parentUuid") || has("sessionId") || has("leafUuid");
    if linked || (has("uuid") && has("message")) {
        let evidence = format!("a line of type `{kind}` with `uuid`, `sessionId` or `leafUuid`");
        return Some(detected_as(SessionFormat::ClaudeCode, &evidence));
    }
    None
}

fn detect_object(text: &str, file_name: &str) -> Result<Detected, SessionError> {
    let unknown = |found: String| SessionError::Unknown { found };
    let Ok(fields) = Fields::parse(text) else {
        return Err(unknown(format!("the JSON value {}", excerpt(text))));
    };
    let has = |name: &str| fields.get(&[name]).is_some();
    // Members that only one log has come first; those that several formats share are decided below.
    if has("traj") {
        return Ok(detected_as(
            SessionFormat::TauBench,
            "an object with `traj`",
        ));
    }
    // `history` stands in other documents beside `messages`; then the file's ending must agree.
    if has("history") && (!has("messages") || file_name.ends_with(".traj")) {
        return Ok(detected_as(
            SessionFormat::SweAgent,
            "an object with `history`",
        ));
    }
    // One record by itself is a log of one line.
    if let Some(detected) = detect_record(&fields) {
        return Ok(detected);
    }
    if ["chat", "messages", "branches", "checkpoints"]
        .into_iter()
        .all(has)
    {
        return Ok(detected_as(
            SessionFormat::DeepAgents,
            "an object with `chat`, `messages`, `branches` and `checkpoints`",
        ));
    }
    if let Some(detected) = detect_body(&fields) {
        return Ok(detected);
    }
    match fields.get(&["messages"]) {
        Some(list) => detect_message_request(&fields, list),
        None => Err(unknown(describe_members(&fields))),
    }
}

/// Detects a provider's request or response by a member that only one format has.
fn detect_body(fields: &Fields<'_>) -> Option<Detected> {
    let has = |name: &str| fields.get(&[name]).is_some();
    let is_message = text_of(fields, "type").as_deref() == Some("message");
    // From the most to the least telling member; `messages`, which three formats share, is not among them.
    let known = [
        (
            has("contents") || has("candidates"),
            Format::Gemini,
            "an object with `contents` or `candidates`",
        ),
        (has("items"), Format::Items, "an object with `items`"),
        (
            has("choices"),
            Format::OpenAiChat,
            "an object with `choices`",
        ),
        (
            has("input") || has("output"),
            Format::OpenAiResponses,
            "an object with `input` or `output`",
        ),
        (
            has("role") && has("parts"),
            Format::Ui,
            "a message with `parts`",
        ),
        (
            is_message && has("content"),
            Format::Anthropic,
            "an object of type `message` with `content`",
        ),
    ];
    let found = known.into_iter().find(|(matches, _, _)| *matches);
    found.map(|(_, format, evidence)| detected_wire(format, evidence))
}

/// Detects the format of a request whose history is `messages`.
fn detect_message_request(fields: &Fields<'_>, list: &RawValue) -> Result<Detected, SessionError> {
    let has = |name: &str| fields.get(&[name]).is_some();
    let elements: Vec<&RawValue> = serde_json::from_str(list.get()).unwrap_or_default();
    let model = text_of(fields, "model").unwrap_or_default();
    let claude = has("system") || has("anthropic_version") || model.contains("claude");
    // Words of Anthropic's requests; a leading system message or `tool_calls` contradicts them, whatever
    // the model is called.
    if (claude || has_input_schema(fields)) && !is_chat(&elements) {
        let evidence = "an object with `messages` and `system`, `anthropic_version`, a Claude model \
                        or tools with `input_schema`";
        return Ok(detected_wire(Format::Anthropic, evidence));
    }
    detect_messages(&elements)
}

/// Describes an object of no known format by its first members.
fn describe_members(fields: &Fields<'_>) -> String {
    // A few names are enough for a person to see what the file is.
    let names: Vec<String> = fields
        .iter()
        .take(8)
        .map(|(name, _)| format!("`{name}`"))
        .collect();
    if names.is_empty() {
        "an empty object".to_owned()
    } else {
        format!("an object with {}", names.join(", "))
    }
}

fn detect_array(text: &str) -> Result<Detected, SessionError> {
    let elements: Vec<&RawValue> = serde_json::from_str(text).unwrap_or_default();
    detect_messages(&elements)
}

fn detect_messages(elements: &[&RawValue]) -> Result<Detected, SessionError> {
    let Some(first) = elements.first() else {
        return Err(SessionError::Unknown {
            found: "an empty array".to_owned(),
        });
    };
    // A bad run among others does not make it something else.
    let is_run = |element: &&RawValue| {
        Fields::parse(element.get()).is_ok_and(|fields| fields.get(&["traj"]).is_some())
    };
    if elements.iter().take(LINES).any(is_run) {
        return Ok(detected_as(
            SessionFormat::TauBench,
            "an array of objects with `traj`",
        ));
    }
    let Ok(fields) = Fields::parse(first.get()) else {
        return Err(SessionError::Unknown {
            found: format!("an array of {}", excerpt(first.get())),
        });
    };
    detect_by_first_message(elements, first, &fields)
}

/// The first message decides where all messages have the same shape; `any` is used where a mark may come late.
fn detect_by_first_message(
    elements: &[&RawValue],
    first: &RawValue,
    fields: &Fields<'_>,
) -> Result<Detected, SessionError> {
    let has = |name: &str| fields.get(&[name]).is_some();
    if has("parts") {
        // Gemini's parts have no `type` and its contents no `id`; one of either makes them UI messages.
        let is_ui = has("id") || elements.iter().any(|one| has_typed_parts(one.get()));
        return Ok(if is_ui {
            detected_wire(Format::Ui, "messages with `parts` that have a `type`")
        } else {
            detected_wire(Format::Gemini, "contents with `parts` that have no `type`")
        });
    }
    if elements
        .iter()
        .any(|one| kind_of(one.get()).is_some_and(is_item_kind))
    {
        return Ok(detected_wire(
            Format::Items,
            "an array of items: objects with an item's `type`",
        ));
    }
    if has("role") {
        return Ok(detect_role_messages(elements));
    }
    Err(SessionError::Unknown {
        found: format!("an array of {}", excerpt(first.get())),
    })
}

fn is_item_kind(kind: String) -> bool {
    let known = [
        "message",
        "function_call",
        "function_call_output",
        "reasoning",
        "compaction",
    ];
    // A colon marks an extension of ours, whatever its slug.
    known.contains(&kind.as_str()) || kind.contains(':')
}

/// Tells Anthropic's messages from those of Chat Completions; both have `role` and `content`.
fn detect_role_messages(elements: &[&RawValue]) -> Detected {
    let has_blocks = elements.iter().any(|one| has_anthropic_blocks(one.get()));
    // Anthropic's blocks weigh more than a system role in the middle, which newer Claude models accept.
    if is_chat(elements) || !has_blocks && elements.iter().any(|one| is_chat_message(one.get())) {
        let evidence = "messages with `tool_calls`, `tool_call_id` or a system role";
        return detected_wire(Format::OpenAiChat, evidence);
    }
    if has_blocks {
        let evidence = "messages with content blocks such as `tool_use` or `thinking`";
        return detected_wire(Format::Anthropic, evidence);
    }
    detected_wire(Format::OpenAiChat, "messages with `role` and `content`")
}

fn kind_of(element: &str) -> Option<String> {
    text_of(&Fields::parse(element).ok()?, "type")
}

fn has_typed_parts(message: &str) -> bool {
    let parts = Fields::parse(message).ok().and_then(|fields| {
        let parts = fields.get(&["parts"])?;
        serde_json::from_str::<Vec<&RawValue>>(parts.get()).ok()
    });
    parts
        .unwrap_or_default()
        .iter()
        .any(|part| kind_of(part.get()).is_some())
}

fn has_input_schema(request: &Fields<'_>) -> bool {
    let tools = request.get(&["tools"]).map(RawValue::get);
    let tools: Option<Vec<&RawValue>> = tools.and_then(|text| serde_json::from_str(text).ok());
    let schema = |tool: &&RawValue| {
        Fields::parse(tool.get()).is_ok_and(|tool| tool.get(&["input_schema"]).is_some())
    };
    tools.unwrap_or_default().iter().any(schema)
}

/// Whether messages that may be Anthropic's are certainly not: a system message there never comes first.
fn is_chat(elements: &[&RawValue]) -> bool {
    let mut roles = elements.iter().map(|one| role_of(one.get()));
    let leads = roles.clone().next().flatten();
    matches!(leads.as_deref(), Some("system" | "developer"))
        // These roles exist in OpenAI's formats only.
        || roles.any(|role| matches!(role.as_deref(), Some("tool" | "function" | "developer")))
        || elements.iter().any(|one| calls_tools(one.get()))
}

fn role_of(message: &str) -> Option<String> {
    text_of(&Fields::parse(message).ok()?, "role")
}

fn calls_tools(message: &str) -> bool {
    let fields = Fields::parse(message);
    fields.is_ok_and(|fields| {
        fields.get(&["tool_calls"]).is_some() || fields.get(&["tool_call_id"]).is_some()
    })
}

fn is_chat_message(message: &str) -> bool {
    let role = role_of(message).unwrap_or_default();
    matches!(role.as_str(), "system" | "developer" | "tool" | "function") || calls_tools(message)
}

fn has_anthropic_blocks(message: &str) -> bool {
    let blocks = Fields::parse(message).ok().and_then(|fields| {
        let content = fields.get(&["content"])?;
        serde_json::from_str::<Vec<&RawValue>>(content.get()).ok()
    });
    let anthropic = |kind: String| {
        let known = [
            "tool_use",
            "tool_result",
            "thinking",
            "redacted_thinking",
            "document",
            "image",
        ];
        known.contains(&kind.as_str())
    };
    let blocks = blocks.unwrap_or_default();
    blocks
        .iter()
        .any(|block| kind_of(block.get()).is_some_and(anthropic))
}
