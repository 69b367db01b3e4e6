//! Single blocks, written.

use contexture_ir::{Extra, Raw, TextPart, quote_json};

use super::message_builder::EncodedBlock;
use super::spec::{FORMAT, MESSAGE};
use crate::model::json::{ObjectWriter, as_object};
use crate::model::loss::{LossKind, Losses};

/// Which body is being written; a response repeats what the provider said, blank or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum BodyKind {
    Request,
    Response,
}

/// The fields of a block among those its item carries.
pub(super) fn block_fields(wire: &Extra) -> Extra {
    let mut fields = wire.clone();
    fields.remove(MESSAGE);
    fields
}

/// The block inside an opaque item or part of this format.
pub(super) fn own_block(kind: &str, raw: &Raw) -> Option<String> {
    kind.strip_prefix(FORMAT)?.strip_prefix(':')?;
    let block = raw.fields()?.get(&["block"])?.get().to_owned();
    as_object(&block).map(str::to_owned)
}

/// A text block; blank text is left out of requests, because the provider refuses it.
pub(super) fn encode_text_block(
    part: &TextPart,
    purpose: BodyKind,
    path: &str,
    losses: &mut Losses,
) -> Option<EncodedBlock> {
    if purpose == BodyKind::Request && part.text.trim().is_empty() {
        losses.push(path, LossKind::Part, "blank text is refused");
        return None;
    }
    let wire = part.extra.wire_fields(FORMAT);
    let text = quote_json(&part.text);
    let mut object = ObjectWriter::new();
    object
        .string("type", "text")
        .raw("text", &text)
        .extra_fields(&wire);
    let plain = wire.is_empty().then_some(text);
    Some(EncodedBlock {
        json: object.finish(),
        plain,
    })
}
