//! Extras: the fields of one format that items have no field for, stored beside the item and reported when lost.
//!
//! Fields of a format are kept in `ctx:wire` under its name. A key that begins with `~` is a hint: it
//! says which of two equal shapes was written and carries no meaning, so losing it is no loss. A
//! native field that itself begins with `~` is kept with a second one in front.

use contexture_ir::{Extra, Raw};

use crate::model::loss::{LossKind, Losses};

/// Marks the first item of a native message that follows another one of the same role.
pub(crate) const START: &str = "~start";

/// Marks a request that chose among tools without offering any.
pub(crate) const ALONE: &str = "~alone";

/// Returns the key under which a native field is stored.
fn extra_key(key: &str) -> String {
    if key.starts_with('~') {
        format!("~{key}")
    } else {
        key.to_owned()
    }
}

/// Returns the native key of a stored field; `None` for hints.
pub(crate) fn original_key(key: &str) -> Option<&str> {
    match key.strip_prefix('~') {
        None => Some(key),
        Some(rest) => rest.starts_with('~').then_some(rest),
    }
}

/// Returns native fields under the keys they are stored by.
pub(crate) fn to_extras(fields: Extra) -> Extra {
    // A native `~key` would be taken for a hint; copying the fields is worth it only in that rare
    // case.
    if fields.iter().any(|(key, _)| key.starts_with('~')) {
        fields
            .iter()
            .map(|(k, v)| (extra_key(k), v.clone()))
            .collect()
    } else {
        fields
    }
}

/// Sets a hint.
pub(crate) fn set_hint(fields: &mut Extra, key: &str, word: &str) {
    fields.set(key, Raw::string(word));
}

/// The word of a hint.
pub(crate) fn hint(fields: &Extra, key: &str) -> Option<String> {
    fields.get(key).and_then(Raw::as_string)
}

/// Whether a value tells a reader anything.
fn has_content(value: &Raw) -> bool {
    !matches!(value.get(), "null" | "[]" | "{}" | "\"\"")
}

/// Fields whose value only their maker can read.
const OPAQUE: [&str; 7] = [
    "signature",
    "thoughtSignature",
    "thought_signature",
    "encrypted_content",
    "encryptedContent",
    "encrypted_index",
    "data",
];

/// Fields that hold answers beyond the first.
const ALTERNATIVES: [&str; 2] = ["choices", "(candidates)"];

/// Options that ask for something by being there.
const ASKS: [&str; 1] = ["web_search_options"];

/// Objects of options, whose members are reported one by one.
const GROUPS: [&str; 2] = ["generationConfig", "toolConfig"];

/// Reports every field of `extra` that `format` cannot express.
pub(crate) fn report_foreign_fields(extra: &Extra, format: &str, path: &str, losses: &mut Losses) {
    report_foreign_fields_as(extra, format, path, LossKind::Field, losses);
}

/// As [`report_foreign_fields`], under another kind of loss.
pub(crate) fn report_foreign_fields_as(
    extra: &Extra,
    format: &str,
    path: &str,
    what: LossKind,
    losses: &mut Losses,
) {
    if extra.is_empty() {
        return;
    }
    let mut tell = |key: &str, value: &Raw, whose: &str| {
        // An empty object is usually nothing lost, but here its presence turns a tool on.
        let asks = ASKS.contains(&key) && value.get() == "{}";
        if !has_content(value) && !asks {
            return;
        }
        // The kind follows from the field's name, whatever the caller reports: sealed content stays
        // `opaque` in every report.
        let what = match key {
            key if OPAQUE.contains(&key) => LossKind::Opaque,
            key if ALTERNATIVES.contains(&key) => LossKind::Alternative,
            _ => what,
        };
        let place = if path.is_empty() {
            key.to_owned()
        } else {
            format!("{path}.{key}")
        };
        losses.push(
            place,
            what,
            format!("{format} has no place for this field of {whose}"),
        );
    };
    // Members of ours are sent to nobody; leaving them out is no loss.
    let is_ours = |key: &str| key.starts_with("ctx:");
    for (key, value) in extra.own_members().filter(|(key, _)| !is_ours(key)) {
        tell(key, value, "the item");
    }
    for (whose, fields) in extra.wire_fields_by_format() {
        if whose == format {
            continue;
        }
        for (key, value) in fields.iter() {
            let Some(key) = original_key(key).filter(|key| !is_ours(key)) else {
                continue;
            };
            // Options nested in one object are lost one by one, so that a report names each of
            // them.
            match value.fields().filter(|_| GROUPS.contains(&key)) {
                Some(members) => {
                    for (member, value) in members.into_extra().iter() {
                        tell(&format!("{key}.{member}"), value, &whose);
                    }
                }
                None => tell(key, value, &whose),
            }
        }
    }
}
