//! What in a document speaks for Amazon Bedrock Converse.

use contexture_ir::Fields;
use serde_json::value::RawValue;

use super::block::single_member;
use crate::model::evidence::{Evidence, member_elements};

/// Members of a request that no other format has beside `messages`.
const REQUEST_MEMBERS: [&str; 8] = [
    "inferenceConfig",
    "toolConfig",
    "additionalModelRequestFields",
    "additionalModelResponseFieldPaths",
    "guardrailConfig",
    "performanceConfig",
    "promptVariables",
    "requestMetadata",
];
/// Members that name a block's kind.
const BLOCKS: [&str; 9] = [
    "text",
    "image",
    "document",
    "video",
    "toolUse",
    "toolResult",
    "reasoningContent",
    "guardContent",
    "cachePoint",
];

pub(super) fn detect_object(object: &Fields<'_>) -> Option<Evidence> {
    let has = |name: &str| object.get(&[name]).is_some();
    if has("messages") && REQUEST_MEMBERS.iter().any(|name| has(name)) {
        return Some(Evidence::new(
            Evidence::OWN_MEMBER + 5,
            "an object with `messages` and `inferenceConfig`, `toolConfig` or another member of Converse",
        ));
    }
    if is_answer(object) {
        return Some(Evidence::new(
            Evidence::OWN_MEMBER + 6,
            "an object with `output.message` and `stopReason`",
        ));
    }
    let messages = member_elements(object, "messages");
    let has_blocks = messages.iter().any(|message| {
        let message = Fields::parse(message.get()).unwrap_or_default();
        has_own_blocks(&message)
    });
    has_blocks.then_some(Evidence::new(
        Evidence::SHARED_MEMBER + 8,
        "an object with `messages` whose blocks have one member and no `type`",
    ))
}

fn is_answer(object: &Fields<'_>) -> bool {
    let output = object.get(&["output"]);
    let output = output.and_then(|output| Fields::parse(output.get()).ok());
    output.is_some_and(|output| output.get(&["message"]).is_some())
        && object.get(&["stopReason"]).is_some()
}

pub(super) fn detect_messages(messages: &[Fields<'_>]) -> Option<Evidence> {
    let has_role = messages.first()?.get(&["role"]).is_some();
    (has_role && messages.iter().any(has_own_blocks)).then_some(Evidence::new(
        Evidence::SHARED_MEMBER + 9,
        "messages with content blocks of one member and no `type`",
    ))
}

fn has_own_blocks(message: &Fields<'_>) -> bool {
    let mut blocks = member_elements(message, "content").into_iter();
    blocks.any(|block: &RawValue| {
        let block = Fields::parse(block.get()).unwrap_or_default();
        single_member(&block).is_some_and(|(member, _)| BLOCKS.contains(&member.as_str()))
    })
}
