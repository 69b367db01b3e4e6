//! Calls that a format does not know, as calls of functions.
//!
//! A custom tool takes a text instead of arguments; OpenAI's formats have such calls, and Codex edits files by one. In other
//! formats the call is a function's whose one argument is the text, so that what happened stays in the history and the turns
//! of both sides keep alternating.
//!
//! A call of a type that nobody knows, with the members of a function's, is a function's under another name: older clients
//! wrote such items. It is written as a function's, with the output that answers it under a type of its own, where the
//! target would leave it out.

use std::borrow::Cow;
use std::collections::BTreeSet;

use contexture_ir::{Extension, Extra, Item, Raw, Transcript, quote_json};

use crate::model::format::Format;
use crate::model::loss::{LossKind, Losses};
use crate::model::repair_rules::ItemRepair;

/// The type of a custom tool's call.
pub(crate) const CALL: &str = "custom_tool_call";
/// The type of its output.
pub(crate) const OUTPUT: &str = "custom_tool_call_output";
/// The member of a call that is its text, and the argument that the text becomes.
const INPUT: &str = "input";
/// What becomes of a custom tool's call, in a sentence fragment.
const CUSTOM: &str =
    "a custom tool's call; written as a function's, its text as the argument `input`";
/// What becomes of a call of an unknown type, in a sentence fragment.
const UNKNOWN: &str = "a call of a type that is not known; written as a function's";

/// A call or an output as a function's.
pub(crate) struct AsFunction {
    pub(crate) item: Item,
    /// What was done, of a call; its output changes with it.
    pub(crate) what: Option<&'static str>,
}

/// Returns for each item the call or the output of a function that stands for it where the target does not know it;
/// `sends` says whether it is to be made ready for a provider, which refuses what it does not know.
pub(crate) fn as_functions<'i>(
    items: impl Iterator<Item = &'i Item>,
    target: Format,
    sends: bool,
) -> Vec<Option<AsFunction>> {
    let mut unknown = BTreeSet::new();
    let adapted = items.map(|item| {
        let Item::Extension(extension) = item else {
            return None;
        };
        custom_as_function(extension, target)
            .or_else(|| unknown_as_function(item, extension, target, sends, &mut unknown))
    });
    adapted.collect()
}

/// A custom tool's call or output, for a target that knows none.
fn custom_as_function(extension: &Extension, target: Format) -> Option<AsFunction> {
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
    Some(AsFunction {
        item: read_as(fields, is_call)?,
        what: is_call.then_some(CUSTOM),
    })
}

/// A call of an unknown type, or the output of one that is in `calls` already.
fn unknown_as_function(
    item: &Item,
    extension: &Extension,
    target: Format,
    sends: bool,
    calls: &mut BTreeSet<String>,
) -> Option<AsFunction> {
    if extension.kind.contains(':') || !Format::PROVIDERS.contains(&target) {
        return None;
    }
    let fields = extension.raw.fields()?;
    let is_call = fields.get(&["arguments"]).is_some();
    let mut adapted = read_as(fields.into_extra(), is_call)?;
    match &mut adapted {
        Item::FunctionCall(call) if is_left_out(item, target, sends) => {
            calls.insert(call.call_id.clone());
            call.id = None;
        }
        Item::FunctionCallOutput(output) if calls.contains(&output.call_id) => output.id = None,
        _ => return None,
    }
    // Its other members mean nothing to the target, which may refuse them.
    *adapted.extra_mut()? = Extra::new();
    Some(AsFunction {
        item: adapted,
        what: is_call.then_some(UNKNOWN),
    })
}

/// Whether the target would go without an item of an unknown type.
fn is_left_out(item: &Item, target: Format, sends: bool) -> bool {
    let spec = target.spec();
    let refuses = || matches!(spec.repair_item(item), Some(ItemRepair::Remove(_)));
    !spec.identity().bare_extensions || (sends && refuses())
}

/// Reads members as those of a function's call or output.
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
    let functions = as_functions(transcript.items.iter(), target, false);
    for (index, function) in functions.into_iter().enumerate() {
        let Some(function) = function else {
            continue;
        };
        if let Some(what) = function.what {
            losses.push(format!("items[{index}]"), LossKind::Value, what);
        }
        if let Some(item) = adapted.to_mut().items.get_mut(index) {
            *item = function.item;
        }
    }
    adapted
}
