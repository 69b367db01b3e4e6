//! Parts, written.

use contexture_ir::{ExtensionPart, Extra, FilePart, ImagePart, Part, TextPart, quote_json};

use super::content::{EMPTY, SLUG, audio_format, has_only_hints};
use super::spec::NAME;
use crate::model::format_extras::{hint, report_foreign_fields};
use crate::model::json::{ObjectWriter, json_array};
use crate::model::loss::{LossKind, Losses};
use crate::model::media::{DataUrl, default_filename};
use crate::openai::shared::{strip_key_prefix, without_key_prefixes};

/// A part as written: its JSON, and its text if it is nothing but text.
pub(super) struct EncodedPart {
    pub(super) json: String,
    pub(super) plain: Option<String>,
}

/// Writes a text part; nothing if it is empty and did not come so.
pub(super) fn encode_text(part: &TextPart, path: &str, losses: &mut Losses) -> Option<EncodedPart> {
    report_foreign_fields(&part.extra, NAME, path, losses);
    let wire = part.extra.wire_fields(NAME);
    if part.text.is_empty() && hint(&wire, EMPTY).is_none() {
        return None;
    }
    let mut object = ObjectWriter::new();
    object
        .string("type", "text")
        .string("text", &part.text)
        .extra_fields(&wire);
    let plain = has_only_hints(&wire).then(|| part.text.clone());
    Some(EncodedPart {
        json: object.finish(),
        plain,
    })
}

/// Writes a refusal as a part.
pub(super) fn encode_refusal(part: &TextPart) -> EncodedPart {
    let mut object = ObjectWriter::new();
    object
        .string("type", "refusal")
        .string("refusal", &part.text)
        .extra_fields(&part.extra.wire_fields(NAME));
    EncodedPart {
        json: object.finish(),
        plain: None,
    }
}

/// Writes a part of Chat's own that we do not know; nothing, with a loss, if it is another's.
pub(super) fn encode_extension(
    part: &ExtensionPart,
    path: &str,
    losses: &mut Losses,
) -> Option<EncodedPart> {
    if part.kind.starts_with(SLUG)
        && let Some(inner) = part.raw.fields().and_then(|fields| fields.get(&["part"]))
    {
        return Some(EncodedPart {
            json: inner.get().to_owned(),
            plain: None,
        });
    }
    losses.push(
        path,
        LossKind::Part,
        format!("{NAME} has no part `{}`", part.kind),
    );
    None
}

/// Writes a picture or a file; nothing, with a loss, where Chat has no word for it.
pub(super) fn encode_media(part: &Part, path: &str, losses: &mut Losses) -> Option<EncodedPart> {
    let json = match part {
        Part::InputImage(image) => encode_image(image, path, losses),
        Part::InputFile(file) => encode_file(file, path, losses),
        _ => None,
    }?;
    Some(EncodedPart { json, plain: None })
}

fn encode_image(image: &ImagePart, path: &str, losses: &mut Losses) -> Option<String> {
    report_foreign_fields(&image.extra, NAME, path, losses);
    let Some(url) = image.image_url.as_deref() else {
        let why = "a picture by a provider's file id has no place in a message";
        losses.push(path, LossKind::Part, why);
        return None;
    };
    if image.file_id.is_some() {
        losses.push(
            format!("{path}.file_id"),
            LossKind::Field,
            "the picture is written by its URL",
        );
    }
    report_media_type(image.media_type.as_deref(), url, path, losses);
    let wire = image.extra.wire_fields(NAME);
    let mut object = ObjectWriter::new();
    object.string("type", "image_url");
    if hint(&wire, "~image_url").is_some() && image.detail.is_none() {
        object.string("image_url", url);
    } else {
        let mut inner = ObjectWriter::new();
        inner.string("url", url);
        inner.string_if_some("detail", image.detail.as_deref());
        inner.extra_fields(&strip_key_prefix("image_url.", &wire));
        object.raw("image_url", &inner.finish());
    }
    object.extra_fields(&without_key_prefixes(&["image_url."], &wire));
    Some(object.finish())
}

/// A media type that stands beside a URL that does not state it.
fn report_media_type(media_type: Option<&str>, url: &str, path: &str, losses: &mut Losses) {
    if media_type.is_some() && DataUrl::parse(url).is_none() {
        let why = "a media type beside a URL has no place in a message";
        losses.push(format!("{path}.media_type"), LossKind::Field, why);
    }
}

fn encode_file(file: &FilePart, path: &str, losses: &mut Losses) -> Option<String> {
    report_foreign_fields(&file.extra, NAME, path, losses);
    let wire = file.extra.wire_fields(NAME);
    let data = file.file_data.as_deref();
    let url = data.and_then(DataUrl::parse);
    // With the hint the document had such data as a file, and it stays one.
    if let Some(url) = url
        && hint(&wire, "~type").is_none()
    {
        // Sounds and pictures have parts of their own in this format.
        if url.media_type.starts_with("audio/") {
            return encode_audio(url, &wire, path, losses);
        }
        if url.media_type.starts_with("image/") {
            let image = ImagePart {
                image_url: file.file_data.clone(),
                ..ImagePart::default()
            };
            return encode_image(&image, path, losses);
        }
        if url.media_type.starts_with("video/") {
            losses.push(path, LossKind::Part, format!("{NAME} takes no video"));
            return None;
        }
    }
    if data.is_none() && file.file_id.is_none() && hint(&wire, "~type").is_none() {
        losses.push(
            path,
            LossKind::Part,
            format!("{NAME} takes files by data or id, not by URL"),
        );
        return None;
    }
    if file.file_url.is_some() {
        let why = "the file is written by its data or id";
        losses.push(format!("{path}.file_url"), LossKind::Field, why);
    }
    let mut inner = ObjectWriter::new();
    inner.string_if_some("file_data", data);
    inner.string_if_some("file_id", file.file_id.as_deref());
    let name = file.filename.clone().or_else(|| {
        let absent = hint(&wire, "~filename").is_some();
        (data.is_some() && !absent).then(|| default_filename(url.map_or("", |url| url.media_type)))
    });
    inner.string_if_some("filename", name.as_deref());
    inner.extra_fields(&strip_key_prefix("file.", &wire));
    let mut object = ObjectWriter::new();
    object.string("type", "file").raw("file", &inner.finish());
    object.extra_fields(&without_key_prefixes(&["file."], &wire));
    Some(object.finish())
}

fn encode_audio(url: DataUrl<'_>, wire: &Extra, path: &str, losses: &mut Losses) -> Option<String> {
    let own = hint(wire, "~format");
    let Some(format) = own.as_deref().or_else(|| audio_format(url.media_type)) else {
        losses.push(
            path,
            LossKind::Part,
            format!("{NAME} takes wav and mp3, not {}", url.media_type),
        );
        return None;
    };
    let mut inner = ObjectWriter::new();
    inner.string("data", url.base64).string("format", format);
    inner.extra_fields(&strip_key_prefix("input_audio.", wire));
    let mut object = ObjectWriter::new();
    object
        .string("type", "input_audio")
        .raw("input_audio", &inner.finish());
    object.extra_fields(&without_key_prefixes(&["input_audio."], wire));
    Some(object.finish())
}

/// The value of `content` for some parts and the shape hint: a string for one plain text, an array
/// otherwise; for no parts what the hint says. `None` means: leave the member out.
pub(super) fn encode_content(
    natives: &[EncodedPart],
    shape: Option<&str>,
    none: &str,
) -> Option<String> {
    match (natives, shape) {
        ([], Some("absent")) => None,
        ([], Some("null")) => Some("null".to_owned()),
        ([], Some("empty")) => Some("\"\"".to_owned()),
        ([], Some("array")) => Some("[]".to_owned()),
        ([], _) => Some(none.to_owned()),
        // One plain text is written as a string, the form that every host takes.
        ([native], shape) if shape != Some("array") => Some(
            native
                .plain
                .as_deref()
                .map_or_else(|| json_array([&native.json]), quote_json),
        ),
        (natives, _) => Some(json_array(natives.iter().map(|native| &native.json))),
    }
}
