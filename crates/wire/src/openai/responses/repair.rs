//! What the provider refuses about single items.

use contexture_ir::{Item, Raw};

use super::extension::{is_given_id, repair_extension};
use super::parse::id_prefix;
use super::spec::NAME;
use crate::model::repair_rules::ItemRepair;

/// How ids begin that OpenAI gave to other kinds of items, and ids of calls that clients write into the place of an
/// item's (jlcodes99/cockpit-tools#2090).
const KNOWN_PREFIXES: [&str; 6] = ["msg_", "fc_", "fco_", "rs_", "cm_", "call_"];
/// The member that says how far an item got.
const STATUS: &str = "status";

/// Finds an item of an unknown type, an id that OpenAI gave to another kind of item, and a status that it does not know.
pub(super) fn repair_item(item: &Item) -> Option<ItemRepair> {
    if let Item::Extension(own) = item {
        return repair_extension(own);
    }
    let (id, status) = (has_refused_id(item), has_unknown_status(item));
    let what = match (id, status) {
        (false, false) => return None,
        (true, false) => "an id of another kind of item; written without it",
        (false, true) => "a status that the provider does not know; written without it",
        (true, true) => {
            "an id of another kind of item, and an unknown status; written without them"
        }
    };
    let mut mended = item.clone();
    if id {
        remove_id(&mut mended);
    }
    if let Some(extra) = mended.extra_mut().filter(|_| status) {
        extra.remove(STATUS);
    }
    Some(ItemRepair::Replace(mended, what))
}

/// Whether OpenAI gave an item's id to another kind of item. Ids of other forms are those of hosts that accept them.
fn has_refused_id(item: &Item) -> bool {
    let known = |id: &str| KNOWN_PREFIXES.iter().any(|prefix| id.starts_with(prefix));
    item.id()
        .is_some_and(|id| !id.starts_with(id_prefix(item)) && known(id))
}

/// Whether an item has a word for its status that is nobody's: a status that is known has a member of its own, and a newer
/// one comes with an item of the provider's.
fn has_unknown_status(item: &Item) -> bool {
    let status = item.extra().and_then(|extra| extra.get(STATUS));
    status.and_then(Raw::as_string).is_some() && !item.id().is_some_and(is_given_id)
}

fn remove_id(item: &mut Item) {
    match item {
        Item::Message(message) => message.id = None,
        Item::FunctionCall(call) => call.id = None,
        Item::FunctionCallOutput(output) => output.id = None,
        Item::Reasoning(thought) => thought.id = None,
        Item::Compaction(compaction) => compaction.id = None,
        Item::Extension(_) => return,
    }
    if let Some(extra) = item.extra_mut() {
        let mut hints = extra.wire_fields(NAME);
        hints.remove("~id");
        extra.set_wire_fields(NAME, hints);
    }
}
