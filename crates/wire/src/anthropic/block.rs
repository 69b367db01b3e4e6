//! Single blocks, written.

use contexture_ir::{Extra, Raw, TextPart, quote};

use super::group::Block;
use super::words::{FORMAT, MESSAGE};
use crate::json::{Object, as_object};
use crate::loss::{LossKind, Losses};

/// What is being written; a response repeats what the provider said, blank or not.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Use {
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
pub(super) fn text_block(
    part: &TextPart,
    purpose: Use,
    path: &str,
    losses: &mut Losses,
) -> Option<Block> {
    if purpose == Use::Request && part.text.trim().is_empty() {
        losses.push(path, LossKind::Part, "blank text is refused");
        return None;
    }
    let wire = part.extra.wire(FORMAT);
    let text = quote(&part.text);
    let mut object = Object::new();
    object
        .string("type", "text")
        .raw("text", &text)
        .carried(&wire);
    let plain = wire.is_empty().then_some(text);
    Some(Block {
        json: object.finish(),
        plain,
    })
}
