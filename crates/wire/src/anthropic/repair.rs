//! What the provider refuses: single items, server tools without their call, and histories that do not suit the
//! thinking of a request.

use contexture_ir::{Fields, Item, Raw, Transcript};

use super::options::encode_thinking;
use super::spec::FORMAT;
use crate::model::call_ids::HostedHalf;
use crate::model::format_extras::START;
use crate::model::json::string_field;
use crate::model::loss::Losses;
use crate::model::repair_rules::{ItemRepair, Thinking, ToolRules};

/// Schemas of arguments are objects and nothing beside (anthropics/claude-code#5319).
pub(super) const TOOL_RULES: ToolRules = ToolRules {
    combined_schemas: false,
    ..ToolRules::NONE
};

/// The member of a request that says how to think.
pub(super) const THINKING: &str = "thinking";

/// Finds thinking with an empty signature, as hosts of other models send it (kaitranntt/ccs#415), and a message of the
/// host's that is kept apart from the one before it (simonw/llm-anthropic#73). Thinking without any signature is never
/// written.
pub(super) fn repair_item(item: &Item) -> Option<ItemRepair> {
    match item {
        Item::Reasoning(thought) => {
            let signature = thought.signature.as_deref();
            let unsigned = thought.encrypted_content.is_none() && signature == Some("");
            let own = thought.format.as_deref();
            let refused = unsigned && own.is_some_and(|format| format.starts_with(FORMAT));
            let what = "a thought with an empty signature; taken out";
            refused.then_some(ItemRepair::Remove(what))
        }
        Item::Message(message) if message.role.is_instruction() && !message.extra.is_empty() => {
            let mut own = message.extra.wire_fields(FORMAT);
            own.remove(START)?;
            let mut joined = message.clone();
            joined.extra.set_wire_fields(FORMAT, own);
            let what = "two messages of the host's in a row; written as one";
            Some(ItemRepair::Replace(Item::Message(joined), what))
        }
        _ => None,
    }
}

/// Finds the halves of the provider's own tools: a result without its call is refused (anthropics/claude-code#64383).
pub(super) fn hosted_half(item: &Item) -> Option<HostedHalf> {
    let Item::Extension(extension) = item else {
        return None;
    };
    let kind = extension.kind.strip_prefix(FORMAT)?.strip_prefix(':')?;
    let is_call = matches!(kind, "server_tool_use" | "mcp_tool_use");
    if !is_call && !kind.ends_with("_tool_result") {
        return None;
    }
    let fields = extension.raw.fields()?;
    let block = Fields::parse(fields.get(&["block"])?.get()).ok()?;
    Some(if is_call {
        HostedHalf::Call(string_field(&block, "id")?)
    } else {
        HostedHalf::Result(string_field(&block, "tool_use_id")?)
    })
}

/// Reads how a request has its model think, as it will be written.
pub(super) fn request_thinking(request: &Transcript) -> Thinking {
    let stored = request.extra.wire_fields(FORMAT);
    let (options, mut losses) = (&request.options, Losses::default());
    let written = encode_thinking(options, &stored, options.max_output_tokens, &mut losses);
    let value = written.and_then(|json| Raw::parse(json).ok());
    value.map_or(Thinking::Off, |value| read_thinking(&value))
}

/// Reads the value of [`THINKING`].
pub(super) fn read_thinking(value: &Raw) -> Thinking {
    let fields = value.fields().unwrap_or_default();
    match string_field(&fields, "type").as_deref() {
        Some("enabled") => Thinking::Budgeted,
        Some("adaptive") => Thinking::Adaptive,
        _ => Thinking::Off,
    }
}

/// Takes the thinking out of a request; how hard the model tries stays.
pub(super) fn remove_thinking(request: &mut Transcript) {
    let mut stored = request.extra.wire_fields(FORMAT);
    stored.remove(THINKING);
    request.extra.set_wire_fields(FORMAT, stored);
    if let Some(reasoning) = &mut request.options.reasoning {
        (reasoning.budget_tokens, reasoning.summary) = (None, None);
        if *reasoning == contexture_ir::ReasoningOptions::default() {
            request.options.reasoning = None;
        }
    }
}
