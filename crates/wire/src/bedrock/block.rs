//! Single blocks: those kept whole, text, and cache points.

use contexture_ir::{Error, Extra, Fields, Raw, TextPart};
use serde_json::value::RawValue;

use super::spec::{FORMAT, MESSAGE};
use crate::model::format_extras::to_extras;
use crate::model::json::{ObjectWriter, as_object};
use crate::model::loss::{LossKind, Losses};

/// The key under which a cache point is stored with what it follows.
pub(super) const CACHE_POINT: &str = "(cachePoint)";
/// The member under which the block of an item or part that is kept whole stands.
const BLOCK: &str = "block";
/// The key of text that a guardrail looks at, and of its qualifiers.
pub(super) const GUARD: &str = "guardContent";
/// The key of text with citations, which stores the whole value.
pub(super) const CITATIONS: &str = "citationsContent";

/// Which body is being written; a response repeats what the provider said, blank or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Request,
    Response,
}

/// A value of the wrong type or an unknown word.
pub(super) fn unexpected_value(expected: &'static str, found: &str) -> Error {
    Error::Unexpected {
        path: String::new(),
        expected,
        found: found.chars().take(60).collect(),
    }
}

/// The elements of an array.
pub(super) fn parse_elements(array: &RawValue) -> Result<Vec<&RawValue>, Error> {
    serde_json::from_str(array.get()).map_err(|_| unexpected_value("an array", array.get()))
}

/// The member that names a block's kind; `None` for a block with more than one, which is kept whole.
pub(super) fn single_member<'a>(fields: &Fields<'a>) -> Option<(String, &'a RawValue)> {
    let mut members = fields.iter();
    let (name, value) = members.next()?;
    members.next().is_none().then(|| (name.to_owned(), value))
}

/// Wraps a block that is stored whole, and returns its kind.
pub(super) fn wrap_opaque_block(member: &str, block: &RawValue) -> (String, Raw) {
    let kind = format!("{FORMAT}:{member}");
    let mut object = ObjectWriter::new();
    object.string("type", &kind).raw(BLOCK, block.get());
    let raw = Raw::parse(object.finish()).unwrap_or_else(|_| Raw::null());
    (kind, raw)
}

/// The block inside an opaque item or part of this format.
pub(super) fn own_block(kind: &str, raw: &Raw) -> Option<String> {
    kind.strip_prefix(FORMAT)?.strip_prefix(':')?;
    let block = raw.fields()?.get(&[BLOCK])?.get().to_owned();
    as_object(&block).map(str::to_owned)
}

/// The fields beside the block of an opaque item or part.
pub(super) fn opaque_fields(raw: &Raw) -> Extra {
    raw.fields().map(Fields::into_extra).unwrap_or_default()
}

/// Adds a field to an opaque item or part.
pub(super) fn set_opaque_field(raw: &mut Raw, key: &str, value: Raw) {
    let mut fields = opaque_fields(raw);
    fields.set(key, value);
    if let Ok(changed) = Raw::from_value(&fields) {
        *raw = changed;
    }
}

/// The fields of a block among those its item carries.
pub(super) fn block_fields(wire: &Extra) -> Extra {
    let mut fields = wire.clone();
    for key in [MESSAGE, CACHE_POINT, GUARD, CITATIONS] {
        fields.remove(key);
    }
    fields
}

/// Adds the cache point that was stored with an item, part or tool.
pub(super) fn append_cache_point(blocks: &mut Vec<String>, wire: &Extra) {
    if let Some(point) = wire.get(CACHE_POINT) {
        blocks.push(format!(r#"{{"cachePoint":{}}}"#, point.get()));
    }
}

/// Reads text that a guardrail looks at; `None` if it is none.
pub(super) fn parse_guard_text(value: &RawValue) -> Option<TextPart> {
    let outer = Fields::parse(value.get()).ok()?;
    let (member, inner) = single_member(&outer)?;
    let mut inner = Fields::parse(inner.get())
        .ok()
        .filter(|_| member == "text")?;
    let mut part = TextPart::new(inner.take_string(&["text"]).ok()??);
    let mut wire = Extra::new();
    let rest = Raw::from_value(&to_extras(inner.into_extra())).ok()?;
    // Stored even without qualifiers: that a guardrail looks at the text is what the block says.
    let guard = Raw::parse(format!(r#"{{"text":{}}}"#, rest.get()));
    wire.set(GUARD, guard.ok()?);
    part.extra.set_wire_fields(FORMAT, wire);
    Some(part)
}

/// The fields of guarded text beside the text.
fn guard_fields(wire: &Extra) -> Option<Extra> {
    let inner = wire.get(GUARD)?.fields()?.get(&["text"])?;
    Some(Fields::parse(inner.get()).ok()?.into_extra())
}

/// Reads text with citations, the other members of the block beside it; `None` if its content is not text alone.
pub(super) fn parse_cited_text(value: &RawValue, siblings: Extra) -> Option<TextPart> {
    let mut part = TextPart::new(cited_text(value.get())?);
    let mut wire = to_extras(siblings);
    wire.set(CITATIONS, value.into());
    part.extra.set_wire_fields(FORMAT, wire);
    Some(part)
}

/// The text that citations belong to.
fn cited_text(value: &str) -> Option<String> {
    let fields = Fields::parse(value).ok()?;
    let pieces: Vec<&RawValue> = match fields.get(&["content"]) {
        Some(content) => serde_json::from_str(content.get()).ok()?,
        None => Vec::new(),
    };
    let text = |piece: &&RawValue| {
        Fields::parse(piece.get())
            .ok()?
            .take_string(&["text"])
            .ok()?
    };
    pieces.iter().map(text).collect()
}

/// A text block; blank text is left out of requests, because the provider refuses it.
pub(super) fn encode_text_block(
    part: &TextPart,
    purpose: BodyKind,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    if purpose == BodyKind::Request && part.text.trim().is_empty() {
        losses.push(path, LossKind::Part, "blank text is refused");
        return None;
    }
    let wire = part.extra.wire_fields(FORMAT);
    let fields = block_fields(&wire);
    let mut object = ObjectWriter::new();
    // The stored citations count only while the text is the one they belong to.
    let cited = wire
        .get(CITATIONS)
        .filter(|value| cited_text(value.get()).as_deref() == Some(part.text.as_str()));
    if let Some(value) = cited {
        object.raw(CITATIONS, value.get()).extra_fields(&fields);
    } else if let Some(rest) = guard_fields(&wire) {
        let mut inner = ObjectWriter::new();
        inner.string("text", &part.text).extra_fields(&rest);
        let guarded = format!(r#"{{"text":{}}}"#, inner.finish());
        object.raw(GUARD, &guarded).extra_fields(&fields);
    } else {
        object.string("text", &part.text).extra_fields(&fields);
    }
    Some(object.finish())
}
