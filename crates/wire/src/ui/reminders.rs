//! Reminders in messages of `@deepagents/context`, which writes them into a person's text for the model.
//!
//! The message's metadata says where: `reminders` lists for each the part and the range in its text, in UTF-16 units, end
//! exclusive; `synthetic` marks a message that is nothing else. So what a person wrote is known by fields, never by its text.

use std::collections::BTreeMap;

use contexture_ir::{Extra, Fields, Raw, UiMessage};
use serde::Deserialize;

/// Where a reminder stands.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct ReminderRange {
    part_index: usize,
    start: usize,
    end: usize,
}

#[derive(Deserialize)]
struct Synthetic {
    source: String,
}

/// Takes the reminders out of a message, and the note about them out of its metadata, as people see it.
///
/// ```
/// use contexture_ir::UiMessage;
/// let mut message = UiMessage::parse(
///     r#"{"role":"user","metadata":{"reminders":[{"partIndex":0,"start":4,"end":14}]},
///         "parts":[{"type":"text","text":"Fine<r>Now</r>"}]}"#,
/// )?;
/// contexture_wire::ui::strip_reminders(&mut message);
/// assert_eq!((message.joined_text().as_str(), message.metadata), ("Fine", None));
/// # Ok::<(), contexture_ir::Error>(())
/// ```
pub fn strip_reminders(message: &mut UiMessage) {
    let Some(metadata) = message.metadata.as_ref().and_then(Raw::fields) else {
        return;
    };
    let mut metadata = metadata.into_extra();
    let read = |value: &Raw| value.parse_as::<Vec<ReminderRange>>().ok();
    let ranges = metadata.get("reminders").and_then(read);
    let synthetic = metadata
        .get("synthetic")
        .and_then(|value| value.parse_as::<Synthetic>().ok());
    if synthetic.is_some_and(|synthetic| synthetic.source == "reminder") {
        message.parts.retain(|part| part_text(part).is_none());
        metadata.remove("synthetic");
    } else if let Some(ranges) = ranges {
        cut_ranges(&mut message.parts, &ranges);
        metadata.remove("reminders");
    } else {
        return;
    }
    message.metadata = match metadata.is_empty() {
        true => None,
        false => Raw::from_value(&metadata).ok(),
    };
}

fn cut_ranges(parts: &mut Vec<Raw>, ranges: &[ReminderRange]) {
    let mut by_part: BTreeMap<usize, Vec<&ReminderRange>> = BTreeMap::new();
    for range in ranges {
        by_part.entry(range.part_index).or_default().push(range);
    }
    let mut index = 0;
    parts.retain_mut(|part| {
        let ranges = by_part.get(&index);
        index += 1;
        let (Some(ranges), Some((mut fields, text))) = (ranges, part_text(part)) else {
            return true;
        };
        let left = text_outside(&text, ranges);
        fields.set("text", Raw::string(&left));
        if let Ok(changed) = Raw::from_value(&fields) {
            *part = changed;
        }
        !left.is_empty()
    });
}

/// The text without these ranges of UTF-16 units.
fn text_outside(text: &str, ranges: &[&ReminderRange]) -> String {
    let mut at = 0;
    let outside = text.chars().filter(|c| {
        let start = at;
        at += c.len_utf16();
        // A character that is cut in half belongs to the reminder.
        !ranges
            .iter()
            .any(|range| start < range.end && range.start < start + c.len_utf16())
    });
    let outside: String = outside.collect();
    outside.trim_end().to_owned()
}

/// The members of a text part, and its text.
fn part_text(part: &Raw) -> Option<(Extra, String)> {
    let fields: Fields<'_> = part.fields()?;
    let fields = fields.into_extra();
    let is_text = fields
        .get("type")
        .is_some_and(|kind| kind.get() == "\"text\"");
    let text = fields.get("text").and_then(Raw::as_string);
    text.filter(|_| is_text).map(|text| (fields, text))
}
