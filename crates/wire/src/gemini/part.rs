//! Single parts, written.

use contexture_ir::{Extra, Raw, quote};

use super::ids::is_synthetic;
use super::names::{Names, peek};
use super::words::{CONTENT, FORMAT};
use crate::json::{Object, as_object};

/// The id as it is written: not at all if it is one of ours.
pub(super) fn written_id(id: &str) -> Option<String> {
    (!id.is_empty() && !is_synthetic(id)).then(|| quote(id))
}

/// A part around the object that says something.
pub(super) fn outer(key: &'static str, names: &Names, inner: Object, wire: &Extra) -> String {
    let mut object = Object::new();
    object.renamed(key, &names.spell(key), &inner.finish());
    object.carried(&without_content(wire.clone()));
    object.finish()
}

/// A media part; what was nested or renamed in it is written already.
pub(super) fn medium(mut object: Object, mut wire: Extra) -> String {
    for key in ["inlineData", "fileData", "displayName"] {
        wire.remove(key);
    }
    object.carried(&wire);
    object.finish()
}

pub(super) fn without_content(mut wire: Extra) -> Extra {
    wire.remove(CONTENT);
    wire
}

/// The part inside an opaque item or part of this format.
pub(super) fn own_part(kind: &str, raw: &Raw) -> Option<String> {
    kind.strip_prefix(FORMAT)?.strip_prefix(':')?;
    let fields = raw.fields()?;
    as_object(peek(&fields, "block")?.get()).map(str::to_owned)
}
