//! Items, read with the hints of how they came.

use contexture_ir::{
    Cancel, Error, Extension, Extra, Fields, Item, Message, Output, Part, Raw, Reasoning, Role,
    Status, Transcript,
};
use serde_json::value::RawValue;

use super::part::record_part_shape;
use super::spec::{FAMILY, ItemDirection, NAME};
use crate::model::format_extras::set_hint;
use crate::openai::shared::unexpected_value;

/// The hint of a system message that came among the items, not as `instructions`.
pub(super) const LISTED: &str = "~input";

/// The hint of how a content came that is not as it would be written.
pub(super) const CONTENT: &str = "~content";
/// The hint of a summary that did not come as a list.
pub(super) const SUMMARY: &str = "~summary";
/// The word of both hints for `null`.
pub(super) const NULL: &str = "null";

/// Reads an array of items: leading system and developer messages become instructions.
pub(super) fn parse_input(
    text: &str,
    transcript: &mut Transcript,
    cancel: Option<&Cancel>,
) -> Result<(), Error> {
    let items = parse_items(text, ItemDirection::Input, cancel)?;
    let leads = |item: &Item| item.role().is_some_and(Role::is_instruction);
    let mut rest = items.into_iter().peekable();
    // The host's messages are instructions until the first other item; later ones stay there.
    while let Some(Item::Message(mut message)) = rest.next_if(leads) {
        let mut hints = message.extra.wire_fields(NAME);
        // The hint tells them from the `instructions` member when they are written.
        set_hint(&mut hints, LISTED, "kept");
        message.extra.set_wire_fields(NAME, hints);
        transcript.instructions.push(message);
    }
    transcript.items = rest.collect();
    Ok(())
}

/// Reads an array of items.
pub(super) fn parse_items(
    text: &str,
    place: ItemDirection,
    cancel: Option<&Cancel>,
) -> Result<Vec<Item>, Error> {
    let items: Vec<&RawValue> =
        serde_json::from_str(text).map_err(|_| unexpected_value("an array of items", text))?;
    let read = |(index, item): (usize, &&RawValue)| {
        Cancel::check_optional(cancel)?;
        parse_item(item.get(), place).map_err(|error| error.at_index(index))
    };
    items.iter().enumerate().map(read).collect()
}

fn parse_item(text: &str, place: ItemDirection) -> Result<Item, Error> {
    let fields = Fields::parse(text)?;
    let has = |name: &str| {
        fields
            .get(&[name])
            .is_some_and(|value| value.get() != "null")
    };
    // An id with neither a type nor a role refers to an item that the provider keeps.
    if !has("type") && !has("role") && has("id") {
        return Ok(Item::Extension(Extension {
            kind: "item_reference".to_owned(),
            id: None,
            raw: Raw::parse(text)?,
        }));
    }
    let mut item = Item::parse(text)?;
    let mut hints = Extra::new();
    record_id_hint(&item, place, &mut hints);
    match &mut item {
        Item::Message(message) => {
            let content = fields.get(&["content"]).map_or("", |content| content.get());
            record_message_hints(message, has("type"), content, &mut hints);
        }
        Item::FunctionCallOutput(output) => {
            if let Output::Parts(parts) = &mut output.output {
                parts.iter_mut().for_each(record_part_shape);
            }
        }
        Item::Reasoning(reasoning) => {
            if reasoning.format.is_some() {
                set_hint(&mut hints, "~format", "kept");
            }
            record_reasoning_nulls(reasoning, &fields, &mut hints);
            reasoning.format.get_or_insert_with(|| FAMILY.to_owned());
        }
        Item::Compaction(compaction) => {
            if compaction.format.is_some() {
                set_hint(&mut hints, "~format", "kept");
            }
            compaction.format.get_or_insert_with(|| FAMILY.to_owned());
        }
        Item::FunctionCall(_) | Item::Extension(_) => {}
    }
    if let Some(extra) = item.extra_mut() {
        extra.set_wire_fields(NAME, hints);
    }
    Ok(item)
}

/// How the ids of this provider begin, by kind of item.
pub(super) fn id_prefix(item: &Item) -> &'static str {
    match item {
        Item::Message(_) => "msg",
        Item::FunctionCall(_) | Item::FunctionCallOutput(_) => "fc",
        Item::Reasoning(_) => "rs",
        Item::Compaction(_) => "cm",
        Item::Extension(_) => "",
    }
}

fn record_id_hint(item: &Item, place: ItemDirection, hints: &mut Extra) {
    match item.id() {
        Some(id) if !id.starts_with(id_prefix(item)) => set_hint(hints, "~id", "kept"),
        None if place == ItemDirection::Output || matches!(item, Item::Reasoning(_)) => {
            set_hint(hints, "~id", "absent")
        }
        _ => {}
    }
}

/// Notes which of the lists of a thought came as `null` or not at all.
fn record_reasoning_nulls(reasoning: &mut Reasoning, fields: &Fields<'_>, hints: &mut Extra) {
    let is_null = |name| fields.get(&[name]).is_some_and(|value| value.get() == NULL);
    if is_null("summary") {
        set_hint(hints, SUMMARY, NULL);
    } else if fields.get(&["summary"]).is_none() {
        set_hint(hints, SUMMARY, "absent");
    }
    if is_null("content") {
        set_hint(hints, CONTENT, NULL);
        reasoning.extra.remove("content");
    }
}

fn record_message_hints(message: &mut Message, typed: bool, content: &str, hints: &mut Extra) {
    message.content.iter_mut().for_each(record_part_shape);
    let long = message.id.is_some();
    match (long, typed) {
        (true, false) => set_hint(hints, "~type", "absent"),
        (false, true) => set_hint(hints, "~type", "present"),
        _ => {}
    }
    let is_string = content.starts_with('"');
    let plain = matches!(message.content.as_slice(), [Part::InputText(part) | Part::OutputText(part)]
        if part.extra.own_members().next().is_none());
    let model = message.role == Role::Assistant;
    if message.content.is_empty() {
        let word = match content {
            "[]" => "none",
            "null" => NULL,
            _ => "absent",
        };
        set_hint(hints, CONTENT, word);
    } else if long && is_string {
        set_hint(hints, CONTENT, "string");
    } else if !long && !is_string && (plain || model) {
        set_hint(hints, CONTENT, "array");
    }
    if !model {
        return;
    }
    match message.status {
        None if long && message.extra.get("status").is_none() => {
            set_hint(hints, "~status", "absent")
        }
        Some(Status::InProgress | Status::Completed | Status::Incomplete) if !long => {
            set_hint(hints, "~status", "kept");
        }
        _ => {}
    }
}
