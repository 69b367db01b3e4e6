//! Pictures and files, written as image and document blocks.
//!
//! The provider takes pictures of four kinds, PDFs, and text; text goes as a `text` source, never as
//! base64. A file id is the provider's own: one that another provider issued names nothing here.

use base64::Engine;
use base64::alphabet::STANDARD;
use base64::engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig};
use contexture_ir::{Extra, FilePart, ImagePart};

use super::spec::FORMAT;
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::model::media::DataUrl;

/// Writers differ in whether they pad.
const LENIENT: GeneralPurpose = GeneralPurpose::new(
    &STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// An image block; `None`, with a loss, if the provider would refuse it.
pub(super) fn encode_image(part: &ImagePart, path: &str, losses: &mut Losses) -> Option<String> {
    if part
        .detail
        .as_deref()
        .is_some_and(|detail| detail != "auto")
    {
        losses.push(
            format!("{path}.detail"),
            LossKind::Field,
            "pictures have one level of detail",
        );
    }
    let wire = part.extra.wire_fields(FORMAT);
    // A source that came from this format goes back whole.
    let source = match wire.get("source") {
        Some(source) => Ok(source.get().to_owned()),
        None => image_source(part, path, losses),
    };
    encode_source_block("image", source, &wire, None, path, losses)
}

/// A document block, or an image block for a picture that came as a file.
pub(super) fn encode_file(part: &FilePart, path: &str, losses: &mut Losses) -> Option<String> {
    let wire = part.extra.wire_fields(FORMAT);
    let title = part.filename.as_deref().filter(|name| !name.is_empty());
    if let Some(source) = wire.get("source") {
        return encode_source_block(
            "document",
            Ok(source.get().to_owned()),
            &wire,
            title,
            path,
            losses,
        );
    }
    let stated = part
        .file_data
        .as_deref()
        .and_then(DataUrl::parse)
        .map(|url| url.media_type);
    let media_type = stated.or(part.media_type.as_deref()).unwrap_or_default();
    // A document block takes no pictures, so a picture gets a block of its own.
    if media_type.starts_with("image/") {
        let picture = ImagePart {
            image_url: part.file_data.clone().or_else(|| part.file_url.clone()),
            file_id: part.file_id.clone(),
            ..ImagePart::default()
        };
        let source = image_source(&picture, path, losses);
        return encode_source_block("image", source, &wire, None, path, losses);
    }
    let source = document_source(part, media_type, path, losses);
    encode_source_block("document", source, &wire, title, path, losses)
}

fn encode_source_block(
    kind: &str,
    source: Result<String, String>,
    wire: &Extra,
    title: Option<&str>,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    match source {
        Ok(source) => {
            let mut object = ObjectWriter::new();
            object.string("type", kind).raw("source", &source);
            object.string_if_some("title", title).extra_fields(wire);
            Some(object.finish())
        }
        Err(why) => {
            losses.push(path, LossKind::Part, why);
            None
        }
    }
}

fn image_source(part: &ImagePart, path: &str, losses: &mut Losses) -> Result<String, String> {
    if let Some(id) = &part.file_id {
        return file_source(id);
    }
    let url = part
        .image_url
        .as_deref()
        .ok_or("the picture has neither bytes nor an address")?;
    // The provider names the four types that it can see; others make it refuse the request.
    let Some(mut data) = DataUrl::parse(url) else {
        return url_source(url);
    };
    if !data.is_base64() {
        return Err("the picture's bytes are not base64".to_owned());
    }
    // The provider looks at the bytes, too, and refuses others than the stated ones (anthropics/claude-code#15746).
    if let Some(actual) = data
        .picture_type()
        .filter(|actual| *actual != data.media_type)
    {
        let why = format!("the bytes are of type `{actual}`");
        losses.push(format!("{path}.media_type"), LossKind::Value, why);
        data.media_type = actual;
    }
    match data.media_type {
        "image/jpeg" | "image/png" | "image/gif" | "image/webp" => Ok(base64_source(data)),
        other => Err(format!("pictures of type `{other}` are not accepted")),
    }
}

fn document_source(
    part: &FilePart,
    media_type: &str,
    path: &str,
    losses: &mut Losses,
) -> Result<String, String> {
    if let Some(id) = &part.file_id {
        return file_source(id);
    }
    if let Some(data) = &part.file_data {
        let data = DataUrl::parse(data).ok_or("the file's bytes are not a base64 data URL")?;
        if data.media_type == "application/pdf" {
            if !data.is_base64() {
                return Err("the file's bytes are not base64".to_owned());
            }
            return Ok(base64_source(data));
        }
        return text_source(data, path, losses);
    }
    let url = part
        .file_url
        .as_deref()
        .ok_or("the file has neither bytes nor an address")?;
    // By address the provider fetches PDF only; without a type that is assumed.
    match media_type {
        "" | "application/pdf" => url_source(url),
        other => Err(format!(
            "files of type `{other}` are not accepted by address"
        )),
    }
}

/// Bytes that are text, as a text source.
fn text_source(data: DataUrl<'_>, path: &str, losses: &mut Losses) -> Result<String, String> {
    // Parameters such as a charset do not change what kind of text it is.
    let essence = data.media_type.split(';').next().unwrap_or_default();
    if !is_textual(essence) {
        return Err(format!("files of type `{essence}` are not accepted"));
    }
    let bytes = LENIENT
        .decode(data.base64)
        .map_err(|_| "the file's bytes are not base64")?;
    // JSON can hold valid Unicode only.
    let text = String::from_utf8(bytes).map_err(|_| "the file's text is not UTF-8")?;
    if essence != "text/plain" {
        let why = format!("`{essence}` is written as plain text");
        losses.push(format!("{path}.media_type"), LossKind::Value, why);
    }
    let mut source = ObjectWriter::new();
    source
        .string("type", "text")
        .string("media_type", "text/plain")
        .string("data", &text);
    Ok(source.finish())
}

fn is_textual(essence: &str) -> bool {
    essence.starts_with("text/")
        || essence.ends_with("+json")
        || essence.ends_with("+xml")
        || matches!(
            essence,
            "application/json"
                | "application/xml"
                | "application/yaml"
                | "application/x-yaml"
                | "application/javascript"
                | "application/toml"
                | "application/x-ndjson"
        )
}

fn base64_source(data: DataUrl<'_>) -> String {
    let mut source = ObjectWriter::new();
    source
        .string("type", "base64")
        .string("media_type", data.media_type);
    source.string("data", data.base64);
    source.finish()
}

fn url_source(url: &str) -> Result<String, String> {
    // The provider fetches nothing else, so another scheme would fail the whole request.
    if !url.starts_with("https://") && !url.starts_with("http://") {
        return Err("only http addresses are fetched".to_owned());
    }
    let mut source = ObjectWriter::new();
    source.string("type", "url").string("url", url);
    Ok(source.finish())
}

fn file_source(id: &str) -> Result<String, String> {
    // OpenAI writes `file-…`, Anthropic `file_…`.
    if id.starts_with("file-") {
        return Err("the file is stored at another provider".to_owned());
    }
    let mut source = ObjectWriter::new();
    source.string("type", "file").string("file_id", id);
    Ok(source.finish())
}
