//! What in a document speaks for Chat Completions.

use contexture_ir::Fields;

use crate::model::evidence::{Evidence, has_chat_words, text_member};

const WORDS: &str = "messages with `tool_calls`, `tool_call_id` or a system role";

pub(super) fn detect_object(object: &Fields<'_>) -> Option<Evidence> {
    Evidence::seen(
        object.get(&["choices"]).is_some(),
        Evidence::OWN_MEMBER,
        "an object with `choices`",
    )
}

pub(super) fn detect_messages(messages: &[Fields<'_>]) -> Option<Evidence> {
    messages.first()?.get(&["role"])?;
    // Anthropic's blocks stand between the two ranks of these words: they weigh more than a system role in the middle,
    // which newer Claude models accept, but less than a role that only tools have.
    Evidence::seen(has_chat_words(messages), Evidence::OWN_WORDS + 2, WORDS)
        .or_else(|| {
            Evidence::seen(
                messages.iter().any(has_system_role),
                Evidence::OWN_WORDS,
                WORDS,
            )
        })
        .or_else(|| {
            // Hosts of this format are the most, so plain messages are taken for theirs.
            Evidence::seen(
                true,
                Evidence::COMMON_SHAPE,
                "messages with `role` and `content`",
            )
        })
}

fn has_system_role(message: &Fields<'_>) -> bool {
    text_member(message, "role").as_deref() == Some("system")
}
