//! Parts, written; and the hints of how they came.

use contexture_ir::{Extra, FilePart, ImagePart, Part, TextPart};

use super::spec::NAME;
use crate::model::format_extras::{hint, report_foreign_fields, set_hint};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::model::media::{DataUrl, default_filename};

/// Who says a part: it decides the word for text.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Voice {
    User,
    Model,
}

/// A part as written: its JSON, and its text if it is nothing but text.
pub(super) struct EncodedPart {
    pub(super) json: String,
    pub(super) plain: Option<String>,
}

/// Notes how a part came where that is not how it would be written.
pub(super) fn record_part_shape(part: &mut Part) {
    let mut hints = Extra::new();
    match part {
        Part::OutputText(text) | Part::InputText(text) if text.text.is_empty() => {
            set_hint(&mut hints, "~empty", "kept");
        }
        _ => {}
    }
    // The writer adds what the format wants; the hint says that the document did without.
    match part {
        Part::OutputText(text) if text.extra.get("annotations").is_none() => {
            set_hint(&mut hints, "~annotations", "absent");
        }
        Part::InputImage(image) if image.detail.is_none() => {
            set_hint(&mut hints, "~detail", "absent")
        }
        Part::InputFile(file) => {
            if file.file_data.is_some() && file.filename.is_none() {
                set_hint(&mut hints, "~filename", "absent");
            }
            if file_media_type(file).is_some_and(|kind| !is_document(kind)) {
                set_hint(&mut hints, "~media", "kept");
            }
        }
        _ => {}
    }
    if let Some(extra) = part.extra_mut() {
        extra.set_wire_fields(NAME, hints);
    }
}

fn file_media_type(file: &FilePart) -> Option<&str> {
    file.file_data
        .as_deref()
        .and_then(DataUrl::parse)
        .map(|url| url.media_type)
}

/// Pictures have a part of their own; sound and video are refused.
fn is_document(media_type: &str) -> bool {
    !["image/", "audio/", "video/"]
        .iter()
        .any(|kind| media_type.starts_with(kind))
}

/// The fields of an item or a part that are its own, to be written verbatim.
pub(super) fn own_fields(extra: &Extra) -> Extra {
    if extra.is_empty() {
        return Extra::new();
    }
    let own = extra
        .own_members()
        .filter(|(key, _)| !key.starts_with("ctx:"));
    own.map(|(key, value)| (key.to_owned(), value.clone()))
        .collect()
}

/// Reports the loss of other formats' stored fields; the item's own fields are written.
pub(super) fn report_foreign_wires(extra: &Extra, path: &str, losses: &mut Losses) {
    if let Some(wire) = extra.get("ctx:wire") {
        let mut only = Extra::new();
        only.set("ctx:wire", wire.clone());
        report_foreign_fields(&only, NAME, path, losses);
    }
}

/// Writes one part; nothing if it is empty text, or, with a loss, if there is no word for it.
pub(super) fn encode_part(
    part: &Part,
    voice: Voice,
    path: &str,
    losses: &mut Losses,
) -> Option<EncodedPart> {
    if let Some(extra) = part.extra() {
        report_foreign_wires(extra, path, losses);
    }
    let json = match part {
        // Only the model's messages have refusals; elsewhere one is written as text.
        Part::Refusal(text) if voice == Voice::Model => {
            let mut object = ObjectWriter::new();
            object
                .string("type", "refusal")
                .string("refusal", &text.text)
                .extra_fields(&own_fields(&text.extra));
            object.finish()
        }
        Part::InputText(text)
        | Part::OutputText(text)
        | Part::Refusal(text)
        | Part::SummaryText(text)
        | Part::ReasoningText(text) => return encode_text(text, voice),
        Part::InputImage(_) | Part::InputFile(_) if voice == Voice::Model => {
            losses.push(
                path,
                LossKind::Part,
                "the model's message takes no pictures or files",
            );
            return None;
        }
        Part::InputImage(image) => encode_image(image, path, losses),
        Part::InputFile(file) => encode_file(file, path, losses)?,
        // A prefix names another provider's part; bare words are types of this format.
        Part::Extension(part) if part.kind.contains(':') => {
            losses.push(
                path,
                LossKind::Part,
                format!("{NAME} has no part `{}`", part.kind),
            );
            return None;
        }
        Part::Extension(part) => part.raw.get().to_owned(),
    };
    Some(EncodedPart { json, plain: None })
}

fn encode_text(part: &TextPart, voice: Voice) -> Option<EncodedPart> {
    let hints = part.extra.wire_fields(NAME);
    if part.text.is_empty() && hint(&hints, "~empty").is_none() {
        return None;
    }
    let mut own = own_fields(&part.extra);
    let mut object = ObjectWriter::new();
    if voice == Voice::Model {
        object
            .string("type", "output_text")
            .string("text", &part.text);
        if own.get("annotations").is_none() && hint(&hints, "~annotations").is_none() {
            object.raw("annotations", "[]");
        }
    } else {
        object
            .string("type", "input_text")
            .string("text", &part.text);
        // Only texts of the model have these members.
        own.remove("annotations");
        own.remove("logprobs");
    }
    object.extra_fields(&own);
    Some(EncodedPart {
        json: object.finish(),
        plain: own.is_empty().then(|| part.text.clone()),
    })
}

fn encode_image(image: &ImagePart, path: &str, losses: &mut Losses) -> String {
    let url = image.image_url.as_deref();
    if image.media_type.is_some() && url.and_then(DataUrl::parse).is_none() {
        report_media_type(path, losses);
    }
    let hints = image.extra.wire_fields(NAME);
    let detail = match image.detail.as_deref() {
        None if hint(&hints, "~detail").is_some() => None,
        // The format wants a detail; `auto` is what the provider takes by default.
        None => Some("auto"),
        some => some,
    };
    let mut object = ObjectWriter::new();
    object.string("type", "input_image");
    object.string_if_some("image_url", url);
    object.string_if_some("file_id", image.file_id.as_deref());
    object.string_if_some("detail", detail);
    object.extra_fields(&own_fields(&image.extra));
    object.finish()
}

fn report_media_type(path: &str, losses: &mut Losses) {
    let why = "a media type beside a URL has no place in a part";
    losses.push(format!("{path}.media_type"), LossKind::Field, why);
}

fn encode_file(file: &FilePart, path: &str, losses: &mut Losses) -> Option<String> {
    let hints = file.extra.wire_fields(NAME);
    let media = file_media_type(file);
    // Pictures in a file's data are written as pictures, unless the document had a file there.
    if let Some(kind) = media.filter(|kind| !is_document(kind) && hint(&hints, "~media").is_none())
    {
        if kind.starts_with("image/") {
            let image = ImagePart {
                image_url: file.file_data.clone(),
                ..ImagePart::default()
            };
            return Some(encode_image(&image, path, losses));
        }
        losses.push(path, LossKind::Part, format!("{NAME} takes no {kind}"));
        return None;
    }
    if file.media_type.is_some() && media.is_none() {
        report_media_type(path, losses);
    }
    let name = file.filename.clone().or_else(|| {
        let absent = hint(&hints, "~filename").is_some();
        (file.file_data.is_some() && !absent).then(|| default_filename(media.unwrap_or_default()))
    });
    let mut object = ObjectWriter::new();
    object.string("type", "input_file");
    object.string_if_some("file_data", file.file_data.as_deref());
    object.string_if_some("file_id", file.file_id.as_deref());
    object.string_if_some("file_url", file.file_url.as_deref());
    object.string_if_some("filename", name.as_deref());
    object.extra_fields(&own_fields(&file.extra));
    Some(object.finish())
}
