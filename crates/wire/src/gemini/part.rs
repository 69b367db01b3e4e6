//! Single parts, written.

use contexture_ir::{Extra, Raw, quote_json};

use super::ids::is_synthetic;
use super::names::{SnakeCaseFields, peek_field};
use super::spec::{CONTENT, FORMAT};
use crate::model::json::{ObjectWriter, as_object};

/// The id as it is written: not at all if it is one of ours.
pub(super) fn encode_call_id(id: &str) -> Option<String> {
    (!id.is_empty() && !is_synthetic(id)).then(|| quote_json(id))
}

/// A part around the object that says something.
pub(super) fn wrap_part(
    key: &'static str,
    names: &SnakeCaseFields,
    inner: ObjectWriter,
    wire: &Extra,
) -> String {
    let mut object = ObjectWriter::new();
    object.raw_as(key, &names.spelled_name(key), &inner.finish());
    object.extra_fields(&without_content_fields(wire.clone()));
    object.finish()
}

/// A media part; what was nested or renamed in it is written already.
pub(super) fn finish_media_part(mut object: ObjectWriter, mut wire: Extra) -> String {
    for key in ["inlineData", "fileData", "displayName"] {
        wire.remove(key);
    }
    object.extra_fields(&wire);
    object.finish()
}

pub(super) fn without_content_fields(mut wire: Extra) -> Extra {
    wire.remove(CONTENT);
    wire
}

/// The part inside an opaque item or part of this format.
pub(super) fn own_part(kind: &str, raw: &Raw) -> Option<String> {
    kind.strip_prefix(FORMAT)?.strip_prefix(':')?;
    let fields = raw.fields()?;
    as_object(peek_field(&fields, "block")?.get()).map(str::to_owned)
}
