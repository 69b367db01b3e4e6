//! Fields of a part that the AI SDK does not know.
//!
//! Validation drops them, and with them what an application attached. So lifting keeps them beside the item, as the
//! difference between the part as it came and the part as it is understood, and folding puts them back where the part still
//! has the place for them. Values are not parsed.

use contexture_ir::{Extra, Fields, Item, Raw};
use serde_json::value::RawValue;

use super::ui_only_fields::wire_fields;
use super::validate_part::CheckedPart;
use crate::model::loss::{LossKind, Losses};

/// The field beside an item or a part that holds the difference.
const UNKNOWN: &str = "unknown";
/// Members that an object has more.
const OWN: &str = "own";
/// Differences of its members, or of its elements by their index.
const INSIDE: &str = "inside";

/// Levels of a part at which fields are known, with room to spare.
const DEPTH: u8 = 16;

/// Whether folded messages have the fields that the AI SDK does not know.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum UnknownFields {
    /// As they came.
    Kept,
    /// Left out, as the SDK's own validation leaves them out.
    #[default]
    Dropped,
}

/// Notes among an item's own fields what of a part was not understood.
pub(super) fn record_unknown(fields: &mut Extra, part: &Raw, checked: &CheckedPart<'_>) {
    // Most parts have no such field, and are not compared.
    if !checked.members.dropped.is_empty()
        && let Some(unknown) = difference(part.get(), checked.to_raw().get())
    {
        fields.set(UNKNOWN, unknown);
    }
}

/// The part with what was not understood of it, as noted beside the item.
pub(super) fn restore_unknown(part: Raw, extra: Option<&Extra>, wanted: UnknownFields) -> Raw {
    let noted = || extra.and_then(|extra| wire_fields(extra, UNKNOWN_FORMAT));
    match wanted {
        UnknownFields::Dropped => part,
        UnknownFields::Kept => match noted() {
            Some(fields) => restore_noted(part, &fields, wanted),
            None => part,
        },
    }
}

/// The same, of fields that were read already.
pub(super) fn restore_noted(part: Raw, fields: &Extra, wanted: UnknownFields) -> Raw {
    match (wanted, fields.get(UNKNOWN)) {
        (UnknownFields::Kept, Some(unknown)) => merge(part.get(), unknown, DEPTH).unwrap_or(part),
        _ => part,
    }
}

/// The format under which the fields of UI messages are kept.
const UNKNOWN_FORMAT: &str = "ui";

/// Names what a UI message has of its own that no provider's message has a place for: bookkeeping is sent to nobody.
pub(crate) fn report_message_fields(item: &Item, path: &str, losses: &mut Losses) {
    if let Item::Extension(own) = item
        && own.kind == "ctx:message"
        && let Some(fields) = own.raw.fields()
        && let Some(extra) = fields.get(&["extra"])
        && let Ok(extra) = Fields::parse(extra.get())
    {
        for (name, _) in extra.iter() {
            losses.push(format!("{path}.{name}"), LossKind::Field, "a field of ui");
        }
    }
}

/// What `original` has and `known` has not.
fn difference(original: &str, known: &str) -> Option<Raw> {
    // What the check left alone is not looked into, however deep it is: only levels that the table knows are left.
    if original == known {
        return None;
    }
    let (mut own, mut inside) = (Extra::new(), Extra::new());
    if original.starts_with('{') {
        let (original, known) = (Fields::parse(original).ok()?, Fields::parse(known).ok()?);
        for (name, value) in original.iter() {
            match known.get(&[name]) {
                None => own.set(name, Raw::from(value)),
                Some(found) => {
                    if let Some(deeper) = difference(value.get(), found.get()) {
                        inside.set(name, deeper);
                    }
                }
            }
        }
    } else if original.starts_with('[') {
        let (original, known) = (elements(original)?, elements(known)?);
        for (index, (value, found)) in original.iter().zip(&known).enumerate() {
            if let Some(deeper) = difference(value.get(), found.get()) {
                inside.set(&index.to_string(), deeper);
            }
        }
    }
    let mut all = Extra::new();
    for (name, fields) in [(OWN, own), (INSIDE, inside)] {
        if !fields.is_empty() {
            all.set(name, Raw::from_value(&fields).ok()?);
        }
    }
    if all.is_empty() {
        return None;
    }
    Raw::from_value(&all).ok()
}

/// The value with a difference put back. A place that is no longer there takes nothing, and no known field is replaced.
fn merge(known: &str, unknown: &Raw, depth: u8) -> Option<Raw> {
    // A note that came from outside may be of any depth.
    let depth = depth.checked_sub(1)?;
    let unknown = unknown.fields()?;
    let part_of = |name: &str| Fields::parse(unknown.get(&[name])?.get()).ok();
    let (own, inside) = (part_of(OWN), part_of(INSIDE));
    if known.starts_with('[') {
        let mut list: Vec<Raw> = serde_json::from_str(known).ok()?;
        for (index, deeper) in inside.iter().flat_map(Fields::iter) {
            let element = index
                .parse::<usize>()
                .ok()
                .and_then(|index| list.get_mut(index));
            if let Some(element) = element {
                *element = merge(element.get(), &Raw::from(deeper), depth)?;
            }
        }
        return Raw::from_value(&list).ok();
    }
    let mut object = Fields::parse(known).ok()?.into_extra();
    for (name, deeper) in inside.iter().flat_map(Fields::iter) {
        if let Some(value) = object.get(name) {
            let merged = merge(value.get(), &Raw::from(deeper), depth)?;
            object.set(name, merged);
        }
    }
    for (name, value) in own.iter().flat_map(Fields::iter) {
        if object.get(name).is_none() {
            object.set(name, Raw::from(value));
        }
    }
    Raw::from_value(&object).ok()
}

fn elements(list: &str) -> Option<Vec<&RawValue>> {
    serde_json::from_str(list).ok()
}
