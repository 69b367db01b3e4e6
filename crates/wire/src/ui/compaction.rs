//! Compactions that OpenAI made, as the AI SDK hands them on: a `custom` part of the provider's own kind.
//!
//! Data parts, whatever their name, are the host's and stay data: nobody's page may put a summary in the
//! place of a history.

use contexture_ir::{Compaction, Extra, Fields, Raw};

use super::ui_only_fields::part_hints;
use super::validate_part::{CheckedPart, CheckedValue, decode_string};

/// The part's kind.
const KIND: &str = "openai.compaction";
/// Whose compaction it is, in an item.
const MAKER: &str = "openai-responses-v1";
/// The hint that holds the part as it came.
const PART: &str = "~part";

/// The compaction that a part is; nothing if it is another custom part.
pub(super) fn lift_compaction(part: &CheckedPart<'_>) -> Option<Compaction> {
    let kind = part.get("kind").map(CheckedValue::get)?;
    let metadata = part.get("providerMetadata").map(CheckedValue::get)?;
    if decode_string(kind).0 != KIND {
        return None;
    }
    let metadata = Fields::parse(metadata).ok()?;
    let mut own = Fields::parse(metadata.get(&["openai"])?.get()).ok()?;
    if own.take_string(&["type"]).ok()?? != "compaction" {
        return None;
    }
    let mut compaction = Compaction {
        id: own.take_string(&["itemId"]).ok()?,
        encrypted_content: Some(own.take_string(&["encryptedContent"]).ok()??),
        format: Some(MAKER.to_owned()),
        ..Compaction::default()
    };
    let mut hints = Extra::new();
    hints.set(PART, part.to_raw());
    compaction.extra.set_wire_fields("ui", hints);
    Some(compaction)
}

/// The part as it came; nothing if the compaction did not come in one.
pub(super) fn compaction_part(item: &Compaction) -> Option<Raw> {
    part_hints(&item.extra).get(PART).cloned()
}
