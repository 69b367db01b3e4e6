//! Calls of custom tools as calls of functions, for the formats that know functions only.
//!
//! A custom tool takes a text instead of arguments; OpenAI's formats have such calls, and Codex edits files by one. In other
//! formats the call is a function's whose one argument is the text, so that what happened stays in the history and the turns
//! of both sides keep alternating.

use std::borrow::Cow;

use contexture_ir::{Extra, Item, Raw, Transcript, quote_json};

use crate::model::format::Format;
use crate::model::loss::{LossKind, Losses};

/// The type of a custom tool's call.
pub(crate) const CALL: &str = "custom_tool_call";
/// The type of its output.
pub(crate) const OUTPUT: &str = "custom_tool_call_output";
/// The member of a call that is its text, and the argument that the text becomes.
const INPUT: &str = "input";

/// What becomes of a call, in a sentence fragment.
pub(crate) const AS_FUNCTION: &str =
    "a custom tool's call; written as a function's, its text as the argument `input`";

/// Returns the call or the output as a function's if the target knows no custom tools; `None` for any other item.
pub(crate) fn as_function(item: &Item, target: Format) -> Option<Item> {
    let Item::Extension(extension) = item else {
        return None;
    };
    let is_call = extension.kind == CALL;
    if target.spec().structure().custom_calls || !(is_call || extension.kind == OUTPUT) {
        return None;
    }
    let mut fields = extension.raw.fields()?.into_extra();
    // Ids of items are the provider's own; a call is known by its call id.
    fields.remove("id");
    if is_call {
        let text = fields
            .remove(INPUT)
            .filter(|input| input.get().starts_with('"'))?;
        let arguments = format!("{{{}:{}}}", quote_json(INPUT), text.get());
        fields.set("arguments", Raw::string(&arguments));
    }
    read_as(fields, is_call)
}

/// Reads the members of a custom tool's call or output as those of a function's.
fn read_as(mut fields: Extra, is_call: bool) -> Option<Item> {
    let kind = match is_call {
        true => "function_call",
        false => "function_call_output",
    };
    fields.set("type", Raw::string(kind));
    Item::parse(Raw::from_value(&fields).ok()?.get()).ok()
}

/// Returns a transcript as the target can say it, with a loss for each call that had to change.
pub(crate) fn with_functions<'t>(
    transcript: &'t Transcript,
    target: Format,
    losses: &mut Losses,
) -> Cow<'t, Transcript> {
    let mut adapted = Cow::Borrowed(transcript);
    for (index, item) in transcript.items.iter().enumerate() {
        let Some(function) = as_function(item, target) else {
            continue;
        };
        if matches!(function, Item::FunctionCall(_)) {
            losses.push(format!("items[{index}]"), LossKind::Value, AS_FUNCTION);
        }
        if let Some(item) = adapted.to_mut().items.get_mut(index) {
            *item = function;
        }
    }
    adapted
}
