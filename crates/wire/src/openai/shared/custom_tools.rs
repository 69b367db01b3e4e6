//! What the two OpenAI formats say in other shapes: Chat puts the members of a custom tool, of its choice
//! and of a citation into an object of their own, Responses beside the type.

use contexture_ir::{Extra, Fields, Raw};

use crate::model::format_extras::to_extras;
use crate::model::json::{ObjectWriter, json_array};
use crate::model::loss::{LossKind, Losses};

const CUSTOM: &str = "custom";
const CITATION: &str = "url_citation";
const GRAMMAR: &str = "grammar";

/// A custom tool of Chat's, or the choice of one, as Responses has it; nothing if it is neither.
pub(in crate::openai) fn chat_custom_to_responses(
    raw: &Raw,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    let mut fields = fields_of_type(raw, CUSTOM)?;
    let inner = Fields::parse(fields.take_field(&[CUSTOM]).ok()??.get()).ok()?;
    let format = inner.get(&["format"]).map(|format| {
        let raw = Raw::from(format);
        flatten_object(&raw, GRAMMAR).unwrap_or(raw)
    });
    let mut object = ObjectWriter::new();
    object.string("type", CUSTOM);
    let told = write_custom_members(inner.into_extra(), format, &mut object)?;
    report_extra_fields(fields.into_extra(), path, losses);
    report_extra_fields(told, path, losses);
    Some(object.finish())
}

/// A custom tool of Responses', or the choice of one, as Chat has it; nothing if it is neither.
pub(in crate::openai) fn responses_custom_to_chat(
    raw: &Raw,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    let fields = fields_of_type(raw, CUSTOM)?;
    let format = fields.get(&["format"]).map(|format| {
        let raw = Raw::from(format);
        nest_object(&raw, GRAMMAR).unwrap_or(raw)
    });
    let mut custom = ObjectWriter::new();
    let told = write_custom_members(fields.into_extra(), format, &mut custom)?;
    report_extra_fields(told, path, losses);
    let mut object = ObjectWriter::new();
    object.string("type", CUSTOM).raw(CUSTOM, &custom.finish());
    Some(object.finish())
}

/// Chat's citations as Responses' annotations; nothing unless all are.
pub(in crate::openai) fn chat_citations_to_responses(list: &Raw) -> Option<Raw> {
    convert_each(list, |one| flatten_object(one, CITATION))
}

/// Responses' annotations as Chat's citations; nothing unless all are citations of pages.
pub(in crate::openai) fn responses_citations_to_chat(list: &Raw) -> Option<Raw> {
    convert_each(list, |one| nest_object(one, CITATION))
}

fn convert_each(list: &Raw, shape: impl Fn(&Raw) -> Option<Raw>) -> Option<Raw> {
    let list: Vec<Raw> = list.parse_as().ok()?;
    let shaped: Option<Vec<Raw>> = list.iter().map(shape).collect();
    // All or nothing: a list in two shapes would be read by neither format.
    let shaped = shaped.filter(|shaped| !shaped.is_empty())?;
    Raw::parse(json_array(shaped.iter().map(Raw::get))).ok()
}

/// The fields of an object of that type, without the type.
fn fields_of_type<'r>(raw: &'r Raw, kind: &str) -> Option<Fields<'r>> {
    let mut fields = raw.fields()?;
    let own = fields.take_string(&["type"]).ok()??;
    (own == kind).then_some(fields)
}

/// `{type, <type>: {…}}` as `{type, …}`; nothing if it says more.
fn flatten_object(raw: &Raw, kind: &'static str) -> Option<Raw> {
    let mut fields = fields_of_type(raw, kind)?;
    let inner = Fields::parse(fields.take_field(&[kind]).ok()??.get()).ok()?;
    if !fields.is_empty() || inner.get(&["type"]).is_some() || inner.get(&[kind]).is_some() {
        return None;
    }
    let mut object = ObjectWriter::new();
    object
        .string("type", kind)
        .extra_fields(&to_extras(inner.into_extra()));
    Raw::parse(object.finish()).ok()
}

/// `{type, …}` as `{type, <type>: {…}}`.
fn nest_object(raw: &Raw, kind: &'static str) -> Option<Raw> {
    let fields = fields_of_type(raw, kind)?;
    if fields.get(&[kind]).is_some() {
        return None;
    }
    let mut inner = ObjectWriter::new();
    inner.extra_fields(&to_extras(fields.into_extra()));
    let mut object = ObjectWriter::new();
    object.string("type", kind).raw(kind, &inner.finish());
    Raw::parse(object.finish()).ok()
}

/// Writes what both formats know of a custom tool and gives back the rest; nothing without a name.
fn write_custom_members(
    mut fields: Extra,
    format: Option<Raw>,
    object: &mut ObjectWriter,
) -> Option<Extra> {
    object.raw("name", fields.remove("name")?.get());
    let description = fields.remove("description");
    object.raw_if_some("description", description.as_ref().map(Raw::get));
    fields.remove("format");
    object.raw_if_some("format", format.as_ref().map(Raw::get));
    Some(fields)
}

fn report_extra_fields(fields: Extra, path: &str, losses: &mut Losses) {
    for (name, value) in fields.iter() {
        if value.get() != "null" {
            let why = "the other format of OpenAI has no such field of a custom tool";
            losses.push(format!("{path}.{name}"), LossKind::Field, why);
        }
    }
}
