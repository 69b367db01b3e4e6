//! Calls that are no function's: those of custom tools, which are kept in the shape Responses has for
//! them, and kinds we do not know, which are kept as they came.

use contexture_ir::{Error, Extension, Fields, Item, Part, Raw, quote_json};

use super::content::SLUG;
use crate::custom_calls::{CALL, OUTPUT};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::openai::shared::options::OMITTED;

/// Fields of a custom tool's call that Chat has, or that say nothing beside them.
const KNOWN: [&str; 6] = ["type", "id", "call_id", "name", "input", "status"];

/// What an extension is to Chat.
pub(super) enum ExtensionSide {
    Call,
    Output,
}

/// What an extension is to Chat; `None` if there is no word for it, as for a call without an id.
pub(super) fn extension_side(item: &Extension) -> Option<ExtensionSide> {
    match item.kind.as_str() {
        kind if kind.starts_with(SLUG) => Some(ExtensionSide::Call),
        CALL if has_call_id(item) => Some(ExtensionSide::Call),
        OUTPUT if has_call_id(item) => Some(ExtensionSide::Output),
        _ => None,
    }
}

fn has_call_id(item: &Extension) -> bool {
    let id = |fields: Fields<'_>| {
        fields
            .get(&["call_id"])
            .is_some_and(|id| id.get().starts_with('"'))
    };
    item.raw.fields().is_some_and(id)
}

/// Reads a custom tool's call; `fields` are those beside its id and type.
pub(super) fn parse_custom_call(
    call_id: &str,
    mut fields: Fields<'_>,
    path: &str,
    losses: &mut Losses,
) -> Result<Item, Error> {
    let custom = fields.take_field(&["custom"])?.ok_or(Error::Missing {
        path: String::new(),
        field: "custom",
    })?;
    let read = |text| {
        let mut inner = Fields::parse(text)?;
        let name = inner.need_string(&["name"])?;
        Ok((name, inner.need_string(&["input"])?, inner.is_empty()))
    };
    let (name, input, whole) =
        read(custom.get()).map_err(|error: Error| error.at_segment("custom"))?;
    if !whole || !fields.is_empty() {
        let why = "unknown fields of a custom tool's call";
        losses.push(path, LossKind::Field, why);
    }
    let mut object = ObjectWriter::new();
    object.string("type", CALL).string("call_id", call_id);
    object.string("name", &name).string("input", &input);
    extension_item(CALL, object)
}

/// Reads the output of a custom tool.
pub(super) fn parse_custom_output(call_id: &str, parts: &[Part]) -> Result<Item, Error> {
    let mut object = ObjectWriter::new();
    object.string("type", OUTPUT).string("call_id", call_id);
    object.string("output", &join_texts(parts));
    extension_item(OUTPUT, object)
}

fn extension_item(kind: &str, object: ObjectWriter) -> Result<Item, Error> {
    Ok(Item::Extension(Extension {
        kind: kind.to_owned(),
        id: None,
        raw: Raw::parse(object.finish())?,
    }))
}

fn join_texts(parts: &[Part]) -> String {
    let texts: Vec<&str> = parts.iter().filter_map(Part::as_text).collect();
    texts.join("\n")
}

/// Writes a call.
pub(super) fn encode_custom_call(item: &Extension, path: &str, losses: &mut Losses) -> String {
    let fields = item.raw.fields().unwrap_or_default();
    // A call of a kind that is not known here goes back byte for byte.
    if let Some(call) = fields
        .get(&["call"])
        .filter(|_| item.kind.starts_with(SLUG))
    {
        return call.get().to_owned();
    }
    for (name, _) in fields.iter().filter(|(name, _)| !KNOWN.contains(name)) {
        let why = "a custom tool's call has no such field";
        losses.push(format!("{path}.{name}"), LossKind::Field, why);
    }
    // The members are required, so a missing one becomes an empty text.
    let get = |name| fields.get(&[name]).map_or("\"\"", |value| value.get());
    let mut custom = ObjectWriter::new();
    custom.raw("name", get("name")).raw("input", get("input"));
    let mut object = ObjectWriter::new();
    object.raw("id", get("call_id")).string("type", "custom");
    object.raw("custom", &custom.finish());
    object.finish()
}

/// Writes the output of a custom tool. One without text is said to be left out: its call stands there
/// and must be answered.
pub(super) fn encode_custom_output(item: &Extension, path: &str, losses: &mut Losses) -> String {
    let fields = item.raw.fields().unwrap_or_default();
    let get = |name| fields.get(&[name]).map_or("\"\"", |value| value.get());
    let output = get("output");
    let text = if output.starts_with('"') {
        output.to_owned()
    } else {
        let parts = Part::parse_all(output).unwrap_or_default();
        let lost = parts.is_empty() && output != "[]";
        if lost || parts.iter().any(|part| part.as_text().is_none()) {
            let why = "a custom tool's output takes text only";
            losses.push(format!("{path}.output"), LossKind::Part, why);
        }
        quote_json(match join_texts(&parts).as_str() {
            "" => OMITTED,
            text => text,
        })
    };
    let mut object = ObjectWriter::new();
    object.string("role", "tool");
    object.raw("tool_call_id", get("call_id"));
    object.raw("content", &text);
    object.finish()
}
