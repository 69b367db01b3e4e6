//! The sources of images and documents, read.
//!
//! Text sources become base64 `data:` URLs, as every file's bytes do in an item. A source with a
//! member we do not know, or nested content, is kept verbatim beside its nearest reading.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contexture_ir::{Error, Extra, Fields, FilePart, ImagePart, Part, Raw};
use serde_json::value::RawValue;

use super::spec::FORMAT;
use crate::model::format_extras::to_extras;
use crate::model::media::DataUrl;

/// What a source points at.
#[derive(Default)]
struct MediaSource {
    data: Option<String>,
    url: Option<String>,
    file_id: Option<String>,
    /// The source itself, where the fields above do not say all of it.
    verbatim: Option<Raw>,
}

/// An `image` block, `type` already taken.
pub(super) fn parse_image(mut fields: Fields<'_>) -> Result<Part, Error> {
    let source = take_source(&mut fields)?;
    let mut part = ImagePart {
        image_url: source.data.or(source.url),
        file_id: source.file_id,
        ..ImagePart::default()
    };
    part.extra
        .set_wire_fields(FORMAT, extra_with_source(fields, source.verbatim));
    Ok(Part::InputImage(part))
}

/// A `document` block, `type` already taken. Its title is the file's name.
pub(super) fn parse_document(mut fields: Fields<'_>) -> Result<Part, Error> {
    let source = take_source(&mut fields)?;
    let mut part = FilePart {
        // A document by URL is a PDF, always.
        media_type: source.url.is_some().then(|| "application/pdf".to_owned()),
        file_data: source.data,
        file_url: source.url,
        file_id: source.file_id,
        filename: fields.take_string(&["title"])?,
        extra: Extra::new(),
    };
    part.extra
        .set_wire_fields(FORMAT, extra_with_source(fields, source.verbatim));
    Ok(Part::InputFile(part))
}

fn extra_with_source(fields: Fields<'_>, source: Option<Raw>) -> Extra {
    let mut extra = to_extras(fields.into_extra());
    if let Some(source) = source {
        extra.set("source", source);
    }
    extra
}

fn take_source(block: &mut Fields<'_>) -> Result<MediaSource, Error> {
    let raw = block.take_present(&["source"])?.ok_or(Error::Missing {
        path: String::new(),
        field: "source",
    })?;
    parse_source(raw).map_err(|error| error.at_segment("source"))
}

fn parse_source(raw: &RawValue) -> Result<MediaSource, Error> {
    let mut fields = Fields::parse(raw.get())?;
    let kind = fields.need_string(&["type"])?;
    let mut source = MediaSource::default();
    match kind.as_str() {
        "base64" => {
            let media_type = fields.need_string(&["media_type"])?;
            let data = fields.need_string(&["data"])?;
            let url = DataUrl::build(&media_type, &data);
            let whole = DataUrl {
                media_type: &media_type,
                base64: &data,
            };
            // A media type with a comma or `;base64` in it would be cut elsewhere when read back.
            if DataUrl::parse(&url) != Some(whole) {
                source.verbatim = Some(raw.into());
            }
            source.data = Some(url);
        }
        "text" => {
            let media_type = fields.take_string(&["media_type"])?;
            let text = fields.need_string(&["data"])?;
            // The item's data URL says `text/plain`; another or an absent type would be lost.
            if media_type.as_deref() != Some("text/plain") {
                source.verbatim = Some(raw.into());
            }
            source.data = Some(text_data_url(&text));
        }
        // Blocks become their text for other targets; the provider gets the blocks back.
        "content" => {
            let text = fields
                .get(&["content"])
                .map(nested_text)
                .unwrap_or_default();
            source.data = Some(text_data_url(&text));
            source.verbatim = Some(raw.into());
            return Ok(source);
        }
        "url" => source.url = Some(fields.need_string(&["url"])?),
        "file" => source.file_id = Some(fields.need_string(&["file_id"])?),
        _ => source.verbatim = Some(raw.into()),
    }
    // Members that the fields above do not express: the source is kept whole beside them.
    if !fields.is_empty() {
        source.verbatim = Some(raw.into());
    }
    Ok(source)
}

/// Text as the `data:` URL of a plain text file.
fn text_data_url(text: &str) -> String {
    DataUrl::build("text/plain", &STANDARD.encode(text))
}

/// The texts of a source that is a string or blocks.
fn nested_text(content: &RawValue) -> String {
    if let Ok(text) = serde_json::from_str::<String>(content.get()) {
        return text;
    }
    let blocks: Vec<&RawValue> = serde_json::from_str(content.get()).unwrap_or_default();
    let texts: Vec<String> = blocks
        .into_iter()
        .filter_map(|block| {
            Fields::parse(block.get())
                .ok()?
                .take_string(&["text"])
                .ok()?
        })
        .collect();
    texts.join("\n")
}
