//! Items of types that this library does not know, and which of them a request may hold.
//!
//! The provider refuses a request in which an item has a type that it does not know. It knows the types of its schema
//! ([`KNOWN`]), and those that are newer than the schema: such an item came in an answer, so it has an id that the provider
//! made. Any other item was made elsewhere: a history that is made ready to be sent goes without it, or has it as a
//! function's call if it is one by another name (see [`crate::custom_calls`]). The host's answer to a call of a newer type
//! has no id; it stays where its call stays.
//!
//! A document that is converted and not repaired keeps all of them.

use contexture_ir::{Extension, Item};

use super::spec::NAME;
use crate::model::call_ids::{HostedHalf, call_id};
use crate::model::loss::{LossKind, Losses};
use crate::model::repair_rules::ItemRepair;

/// Whose items with a prefix before their type this format's hosts read.
const HOSTS: [&str; 2] = ["openai:", "openrouter:"];

/// The types that the schema has for the items of a request, those apart that have types of their own here.
const KNOWN: [&str; 27] = [
    "additional_tools",
    "apply_patch_call",
    "apply_patch_call_output",
    "code_interpreter_call",
    "compaction_trigger",
    "computer_call",
    "computer_call_output",
    "configuration_update",
    "custom_tool_call",
    "custom_tool_call_output",
    "file_search_call",
    "image_generation_call",
    "item_reference",
    "local_shell_call",
    "local_shell_call_output",
    "mcp_approval_request",
    "mcp_approval_response",
    "mcp_call",
    "mcp_list_tools",
    "program",
    "program_output",
    "shell_call",
    "shell_call_output",
    "tool_search_call",
    "tool_search_output",
    "web_search_call",
    // What Codex called a compaction at first; older rollouts hold it.
    "compaction_summary",
];

/// How ids of calls begin at several providers. They stand in the place of an item's id where a client wrote the item.
const CALL_IDS: [&str; 5] = ["call", "chatcmpl", "srvtoolu", "toolu", "tooluse"];
/// The shortest that follows the prefix of an id that a provider made up.
const RANDOM_BYTES: usize = 16;

/// Writes an item as it came: this format's own types are bare words, a prefix names the host that made it. Bookkeeping is
/// written nowhere.
pub(super) fn encode_extension(
    item: &Extension,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    // An item of ours, which no provider is sent; leaving it out is no loss to report.
    if item.kind.starts_with("ctx:") {
        return None;
    }
    if is_another_hosts(&item.kind) {
        let why = format!("{NAME} has no word for `{}`", item.kind);
        losses.push(path, LossKind::Item, why);
        return None;
    }
    Some(item.raw.get().to_owned())
}

fn is_another_hosts(kind: &str) -> bool {
    kind.contains(':') && !HOSTS.iter().any(|host| kind.starts_with(host))
}

/// Takes out an item of a type that the provider does not know.
pub(super) fn repair_extension(item: &Extension) -> Option<ItemRepair> {
    // Items with a prefix are the writer's to judge, and outputs stay or go with their calls.
    let stays = item.kind.contains(':')
        || KNOWN.contains(&item.kind.as_str())
        || is_from_provider(item)
        || newer_output(item).is_some();
    (!stays).then_some(ItemRepair::Remove(
        "an item of a type that the provider does not know; taken out",
    ))
}

/// Finds the halves of calls of newer types.
pub(super) fn hosted_half(item: &Item) -> Option<HostedHalf> {
    let Item::Extension(own) = item else {
        return None;
    };
    if own.kind.contains(':') || KNOWN.contains(&own.kind.as_str()) {
        return None;
    }
    if let Some(pair) = newer_output(own) {
        return Some(HostedHalf::Result(pair));
    }
    let id = call_id(item).filter(|_| is_from_provider(own))?;
    Some(HostedHalf::Call(format!("{}:{id}", own.kind)))
}

/// The pair that an output of a newer type belongs to; `None` for any other item.
fn newer_output(item: &Extension) -> Option<String> {
    let call = item.kind.strip_suffix("_output")?;
    let fields = item.raw.fields()?;
    let id: String = serde_json::from_str(fields.get(&["call_id"])?.get()).ok()?;
    Some(format!("{call}:{id}"))
}

fn is_from_provider(item: &Extension) -> bool {
    item.id.as_deref().is_some_and(is_given_id)
}

/// Whether a provider of this API made an id: it is a short word for the kind of item, `_`, and a long random rest.
pub(super) fn is_given_id(id: &str) -> bool {
    let Some((kind, random)) = id.split_once('_') else {
        return false;
    };
    let is_word = !kind.is_empty() && kind.bytes().all(|byte| byte.is_ascii_lowercase());
    is_word
        && !CALL_IDS.contains(&kind)
        && random.len() >= RANDOM_BYTES
        && random.bytes().any(|byte| byte.is_ascii_digit())
        && random
            .bytes()
            .all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use serde_json::Value;

    use super::*;

    /// Types of items that are typed here.
    const TYPED: [&str; 5] = [
        "compaction",
        "function_call",
        "function_call_output",
        "message",
        "reasoning",
    ];

    /// Collects the types of the objects that a schema lists under `anyOf` and `items`.
    fn collect_types(schema: &Value, root: &Value, types: &mut BTreeSet<String>) {
        if let Some(name) = schema["$ref"].as_str() {
            let pointer = name.trim_start_matches('#');
            return collect_types(root.pointer(pointer).unwrap(), root, types);
        }
        types.extend(
            schema["properties"]["type"]["const"]
                .as_str()
                .map(str::to_owned),
        );
        for one in ["anyOf", "oneOf"] {
            for schema in schema[one].as_array().into_iter().flatten() {
                collect_types(schema, root, types);
            }
        }
        if schema["type"] == "array" {
            collect_types(&schema["items"], root, types);
        }
    }

    #[test]
    fn known_types_are_those_of_the_schema() {
        let root = contexture_testdata::schema("openai.responses.request");
        let mut types = BTreeSet::new();
        collect_types(&root["properties"]["input"], &root, &mut types);
        let ours: BTreeSet<String> = KNOWN.into_iter().chain(TYPED).map(str::to_owned).collect();
        let missing: Vec<_> = types.difference(&ours).collect();
        assert!(missing.is_empty(), "{missing:?}");
        // A reference may have no type, and the older name of a compaction is in no schema.
        let more: Vec<_> = ours.difference(&types).collect();
        assert_eq!(more, ["compaction_summary", "item_reference"]);
    }
}
