//! What only UI messages can say, kept beside an item or a part.
//!
//! Folding asks this of every item, so it looks before it parses.

use contexture_ir::{Extra, Fields, Raw};

/// The key under which an item keeps the fields of wire formats.
const WIRE: &str = "ctx:wire";

/// By far the most frequent hint: what the SDK streams begins with a step.
const BEGINS_STEP: &str = r#"{"ui":{"~step":true}}"#;

/// Returns the fields stored for UI messages; empty if there are none.
pub(super) fn part_hints(extra: &Extra) -> Extra {
    if extra
        .get(WIRE)
        .is_some_and(|kept| kept.get() == BEGINS_STEP)
        && let Ok(yes) = Raw::parse("true")
    {
        let mut hints = Extra::new();
        hints.set("~step", yes);
        return hints;
    }
    wire_fields(extra, "ui").unwrap_or_default()
}

/// Returns the fields stored for a format; `None` if nothing is stored for it.
pub(super) fn wire_fields(extra: &Extra, format: &str) -> Option<Extra> {
    let kept = extra.get(WIRE)?;
    if !kept.get().contains(format) {
        return None;
    }
    let fields = kept.fields()?;
    Some(
        Fields::parse(fields.get(&[format])?.get())
            .ok()?
            .into_extra(),
    )
}

/// The whole of a value, if it is `true` or `false`.
pub(super) fn as_flag(raw: &Raw) -> Option<bool> {
    match raw.get() {
        "true" => Some(true),
        "false" => Some(false),
        _ => None,
    }
}
