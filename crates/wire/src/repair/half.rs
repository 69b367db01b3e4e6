//! Which items are the two halves of a call.

use std::borrow::Cow;

use contexture_ir::{Extension, Item};

/// Calls that are no function's, and whose outputs the host owes under the type `<call>_output`.
const EXTENSION_CALLS: [&str; 5] = [
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];

/// What an item is in a pair.
pub(super) enum Half<'a> {
    Call(&'a str, Cow<'a, str>),
    Output(&'a str, Cow<'a, str>),
    Neither,
}

pub(super) fn half(item: &Item) -> Half<'_> {
    match item {
        Item::FunctionCall(call) => Half::Call("", Cow::Borrowed(&call.call_id)),
        Item::FunctionCallOutput(output) => Half::Output("", Cow::Borrowed(&output.call_id)),
        Item::Extension(item) => {
            let (kind, output) = match item.kind.strip_suffix("_output") {
                Some(kind) => (kind, true),
                None => (item.kind.as_str(), false),
            };
            let Some(kind) = EXTENSION_CALLS.into_iter().find(|known| *known == kind) else {
                return Half::Neither;
            };
            match extension_call_id(item) {
                Some(id) if output => Half::Output(kind, Cow::Owned(id)),
                Some(id) => Half::Call(kind, Cow::Owned(id)),
                None => Half::Neither,
            }
        }
        _ => Half::Neither,
    }
}

/// The call id inside a provider's own item.
pub(super) fn extension_call_id(item: &Extension) -> Option<String> {
    let fields = item.raw.fields()?;
    serde_json::from_str(fields.get(&["call_id"])?.get()).ok()
}
