//! Which items are the two halves of a call, and the ids that hold them together.
//!
//! Not here: which output answers which call, see [`crate::model::pairing`].

use std::borrow::Cow;

use contexture_ir::{Extension, Fields, Item, Raw};

use crate::model::structure::Structure;

/// Calls that are no function's, and whose outputs the host owes under the type `<call>_output`.
const EXTENSION_CALLS: [&str; 5] = [
    "custom_tool_call",
    "computer_call",
    "local_shell_call",
    "shell_call",
    "apply_patch_call",
];
/// Before the type of a call that only Chat Completions knows; a tool's message answers it as it does a
/// function's.
const CHAT_CALL: &str = "openai-chat:";
/// Where providers' own items keep their native form, in which the id is.
const NATIVE: [&str; 2] = ["call", "block"];

/// What an item is in a pair: a kind of call, and the id.
pub(crate) enum CallSide<'a> {
    Call(&'a str, Cow<'a, str>),
    Output(&'a str, Cow<'a, str>),
    Neither,
}

/// One half of a call that the provider makes and answers by itself, with the id that both halves share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum HostedHalf {
    /// The call, with the id.
    Call(String),
    /// The result of such a call.
    Result(String),
}

/// What an item is in a pair, for a target.
pub(crate) fn call_side<'i>(item: &'i Item, target: &Structure) -> CallSide<'i> {
    match item {
        // Functions have the empty kind: a provider's own call may share an id with one and is not
        // answered by its output.
        Item::FunctionCall(call) => CallSide::Call("", Cow::Borrowed(&call.call_id)),
        Item::FunctionCallOutput(output) => CallSide::Output("", Cow::Borrowed(&output.call_id)),
        Item::Extension(item) if item.kind.starts_with(CHAT_CALL) => {
            // Where nobody reads the call, its output answers nothing.
            match native_id(item) {
                Some(id) if target.chat_calls => CallSide::Call("", Cow::Owned(id)),
                _ => CallSide::Neither,
            }
        }
        Item::Extension(item) => {
            // Providers name the host's answer after the call: `shell_call` and
            // `shell_call_output`.
            let (kind, output) = match item.kind.strip_suffix("_output") {
                Some(kind) => (kind, true),
                None => (item.kind.as_str(), false),
            };
            let Some(kind) = EXTENSION_CALLS.into_iter().find(|known| *known == kind) else {
                return CallSide::Neither;
            };
            match native_id(item) {
                Some(id) if output => CallSide::Output(kind, Cow::Owned(id)),
                Some(id) => CallSide::Call(kind, Cow::Owned(id)),
                None => CallSide::Neither,
            }
        }
        _ => CallSide::Neither,
    }
}

/// The id of a call, or of a provider's own item: what repair keeps apart from other calls' ids. An
/// output has none of its own.
#[must_use]
pub fn call_id(item: &Item) -> Option<Cow<'_, str>> {
    match item {
        Item::FunctionCall(call) => Some(Cow::Borrowed(&call.call_id)),
        Item::Extension(item) => native_id(item).map(Cow::Owned),
        _ => None,
    }
}

/// The call id inside a provider's own item; of one that has none, its id.
fn native_id(item: &Extension) -> Option<String> {
    let fields = item.raw.fields()?;
    // A type with a slug (`anthropic:server_tool_use`) wraps the native form in an object of ours.
    let wrapped = item.kind.contains(':');
    let inner = NATIVE.into_iter().find_map(|key| fields.get(&[key]));
    let id = match inner.filter(|_| wrapped) {
        Some(inner) => Fields::parse(inner.get()).ok()?.get(&["id"])?,
        // Calls have both an item id and a call id; the call id is what the output repeats.
        None => fields.get(&["call_id"]).or_else(|| fields.get(&["id"]))?,
    };
    serde_json::from_str(id.get()).ok()
}

/// A provider's own call or output under another call id.
pub(crate) fn with_call_id(item: &Extension, id: &str) -> Option<Extension> {
    let mut fields = item.raw.fields()?.into_extra();
    match fields.get("call").cloned() {
        Some(call) if item.kind.starts_with(CHAT_CALL) => {
            let mut call = call.fields()?.into_extra();
            call.set("id", Raw::string(id));
            fields.set("call", Raw::from_value(&call).ok()?);
        }
        // A local shell's output names its call by `id`.
        _ if fields.get("call_id").is_none() => fields.set("id", Raw::string(id)),
        _ => fields.set("call_id", Raw::string(id)),
    }
    Some(Extension {
        raw: Raw::from_value(&fields).ok()?,
        ..item.clone()
    })
}
