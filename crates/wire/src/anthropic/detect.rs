//! What in a document speaks for Anthropic Messages.

use contexture_ir::Fields;
use serde_json::value::RawValue;

use crate::model::evidence::{Evidence, has_chat_words, member_elements, member_objects};
use crate::model::json::string_field;

/// Types of blocks that other formats do not have.
const BLOCK_TYPES: &[&str] = &[
    "tool_use",
    "tool_result",
    "thinking",
    "redacted_thinking",
    "document",
    "image",
];

/// What was seen in a request.
const REQUEST: &str = "an object with `messages` and `system`, `anthropic_version`, a Claude model or tools with `input_schema`";

pub(super) fn detect_object(object: &Fields<'_>) -> Option<Evidence> {
    let has = |name: &str| object.get(&[name]).is_some();
    if has("content") && string_field(object, "type").as_deref() == Some("message") {
        return Some(Evidence::new(
            Evidence::SHARED_MEMBER - 2,
            "an object of type `message` with `content`",
        ));
    }
    let is_request = has("messages") && has_request_words(object);
    is_request.then_some(Evidence::new(Evidence::OWN_WORDS + 9, REQUEST))
}

/// Whether a request uses words of this format, and none that contradict them whatever the model is called.
fn has_request_words(request: &Fields<'_>) -> bool {
    let has = |name: &str| request.get(&[name]).is_some();
    let is_claude = || string_field(request, "model").is_some_and(|model| model.contains("claude"));
    let is_own = has("system") || has("anthropic_version") || is_claude();
    (is_own || has_input_schema(request)) && !has_chat_words(&member_objects(request, "messages"))
}

fn has_input_schema(request: &Fields<'_>) -> bool {
    let mut tools = member_elements(request, "tools").into_iter();
    tools.any(|tool| {
        Fields::parse(tool.get()).is_ok_and(|tool| tool.get(&["input_schema"]).is_some())
    })
}

pub(super) fn detect_messages(messages: &[Fields<'_>]) -> Option<Evidence> {
    let has_role = messages.first()?.get(&["role"]).is_some();
    (has_role && messages.iter().any(has_own_blocks)).then_some(Evidence::new(
        Evidence::OWN_WORDS + 1,
        "messages with content blocks such as `tool_use` or `thinking`",
    ))
}

fn has_own_blocks(message: &Fields<'_>) -> bool {
    let mut blocks = member_elements(message, "content").into_iter();
    blocks.any(|block: &RawValue| {
        let block = Fields::parse(block.get()).unwrap_or_default();
        string_field(&block, "type").is_some_and(|kind| BLOCK_TYPES.contains(&kind.as_str()))
    })
}
