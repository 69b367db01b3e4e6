//! What the two OpenAI formats say in other shapes: Chat puts the members of a custom tool, of its choice
//! and of a citation into an object of their own, Responses beside the type.

use contexture_ir::{Extra, Fields, Raw};

use crate::carry::keep;
use crate::json::{Object, array};
use crate::loss::{LossKind, Losses};

const CUSTOM: &str = "custom";
const CITATION: &str = "url_citation";
const GRAMMAR: &str = "grammar";

/// A custom tool of Chat's, or the choice of one, as Responses has it; nothing if it is neither.
pub(crate) fn custom_of_chat(raw: &Raw, path: &str, losses: &mut Losses) -> Option<String> {
    let mut fields = typed(raw, CUSTOM)?;
    let inner = Fields::parse(fields.take(&[CUSTOM]).ok()??.get()).ok()?;
    let format = inner.get(&["format"]).map(|format| {
        let raw = Raw::from(format);
        flat(&raw, GRAMMAR).unwrap_or(raw)
    });
    let mut object = Object::new();
    object.string("type", CUSTOM);
    let told = members(inner.rest(), format, &mut object)?;
    tell(fields.rest(), path, losses);
    tell(told, path, losses);
    Some(object.finish())
}

/// A custom tool of Responses', or the choice of one, as Chat has it; nothing if it is neither.
pub(crate) fn custom_of_responses(raw: &Raw, path: &str, losses: &mut Losses) -> Option<String> {
    let fields = typed(raw, CUSTOM)?;
    let format = fields.get(&["format"]).map(|format| {
        let raw = Raw::from(format);
        nested(&raw, GRAMMAR).unwrap_or(raw)
    });
    let mut custom = Object::new();
    let told = members(fields.rest(), format, &mut custom)?;
    tell(told, path, losses);
    let mut object = Object::new();
    object.string("type", CUSTOM).raw(CUSTOM, &custom.finish());
    Some(object.finish())
}

/// Chat's citations as Responses' annotations; nothing unless all are.
pub(crate) fn citations_of_chat(list: &Raw) -> Option<Raw> {
    each(list, |one| flat(one, CITATION))
}

/// Responses' annotations as Chat's citations; nothing unless all are citations of pages.
pub(crate) fn citations_of_responses(list: &Raw) -> Option<Raw> {
    each(list, |one| nested(one, CITATION))
}

fn each(list: &Raw, shape: impl Fn(&Raw) -> Option<Raw>) -> Option<Raw> {
    let list: Vec<Raw> = list.to().ok()?;
    let shaped: Option<Vec<Raw>> = list.iter().map(shape).collect();
    let shaped = shaped.filter(|shaped| !shaped.is_empty())?;
    Raw::parse(array(shaped.iter().map(Raw::get))).ok()
}

/// The fields of an object of that type, without the type.
fn typed<'r>(raw: &'r Raw, kind: &str) -> Option<Fields<'r>> {
    let mut fields = raw.fields()?;
    let own = fields.take_string(&["type"]).ok()??;
    (own == kind).then_some(fields)
}

/// `{type, <type>: {…}}` as `{type, …}`; nothing if it says more.
fn flat(raw: &Raw, kind: &'static str) -> Option<Raw> {
    let mut fields = typed(raw, kind)?;
    let inner = Fields::parse(fields.take(&[kind]).ok()??.get()).ok()?;
    if !fields.is_empty() || inner.get(&["type"]).is_some() || inner.get(&[kind]).is_some() {
        return None;
    }
    let mut object = Object::new();
    object.string("type", kind).carried(&keep(inner.rest()));
    Raw::parse(object.finish()).ok()
}

/// `{type, …}` as `{type, <type>: {…}}`.
fn nested(raw: &Raw, kind: &'static str) -> Option<Raw> {
    let fields = typed(raw, kind)?;
    if fields.get(&[kind]).is_some() {
        return None;
    }
    let mut inner = Object::new();
    inner.carried(&keep(fields.rest()));
    let mut object = Object::new();
    object.string("type", kind).raw(kind, &inner.finish());
    Raw::parse(object.finish()).ok()
}

/// Writes what both formats know of a custom tool and gives back the rest; nothing without a name.
fn members(mut fields: Extra, format: Option<Raw>, object: &mut Object) -> Option<Extra> {
    object.raw("name", fields.remove("name")?.get());
    let description = fields.remove("description");
    object.maybe("description", description.as_ref().map(Raw::get));
    fields.remove("format");
    object.maybe("format", format.as_ref().map(Raw::get));
    Some(fields)
}

fn tell(fields: Extra, path: &str, losses: &mut Losses) {
    for (name, value) in fields.iter() {
        if value.get() != "null" {
            let why = "the other format of OpenAI has no such field of a custom tool";
            losses.push(format!("{path}.{name}"), LossKind::Field, why);
        }
    }
}
