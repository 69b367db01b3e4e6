//! Inline bytes and files by address, read and written.
//!
//! The provider also takes the URL-safe alphabet of base64; items hold the standard one, with a hint.

use contexture_ir::{Error, Extra, Fields, FilePart, ImagePart, Part, Raw};
use serde_json::value::RawValue;

use super::names::SnakeCaseFields;
use crate::model::format_extras::{hint, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::model::media::DataUrl;

/// The hint of a media type that is not written as the item has it.
const MEDIA_TYPE: &str = "~mimeType";
/// Its word for a media type that came empty.
const EMPTY: &str = "empty";

/// Reads `inlineData`; `None` if there is no data, or the media type cannot stand in a data URL.
pub(super) fn parse_inline_data(
    value: &RawValue,
    names: &mut SnakeCaseFields,
    wire: &mut Extra,
) -> Result<Option<Part>, Error> {
    let mut fields = Fields::parse(value.get())?;
    let media_type = names.take_string(&mut fields, "mimeType")?;
    // Without bytes there is nothing that a part could hold; the caller keeps it whole.
    let Some(data) = names.take_string(&mut fields, "data")? else {
        return Ok(None);
    };
    let name = names.take_string(&mut fields, "displayName")?;
    let media_type = record_media_type(media_type, wire);
    let media_type = media_type.unwrap_or_default();
    let base64 = to_standard_base64(data, wire);
    let url = DataUrl::build(&media_type, &base64);
    let whole = DataUrl {
        media_type: &media_type,
        base64: &base64,
    };
    // Only a URL that reads back as these very bytes may stand for them.
    if DataUrl::parse(&url) != Some(whole) {
        return Ok(None);
    }
    store_nested(wire, "inlineData", fields)?;
    Ok(Some(if media_type.starts_with("image/") {
        let part = ImagePart {
            image_url: Some(url),
            ..ImagePart::default()
        };
        named_image(part, name, wire)
    } else {
        Part::InputFile(FilePart {
            file_data: Some(url),
            filename: name,
            ..FilePart::default()
        })
    }))
}

/// Reads `fileData`; `None` if there is no address.
pub(super) fn parse_file_data(
    value: &RawValue,
    names: &mut SnakeCaseFields,
    wire: &mut Extra,
) -> Result<Option<Part>, Error> {
    let mut fields = Fields::parse(value.get())?;
    let media_type = names.take_string(&mut fields, "mimeType")?;
    let Some(url) = names.take_string(&mut fields, "fileUri")? else {
        return Ok(None);
    };
    let name = names.take_string(&mut fields, "displayName")?;
    let media_type = record_media_type(media_type, wire);
    store_nested(wire, "fileData", fields)?;
    let is_image = media_type
        .as_deref()
        .is_some_and(|kind| kind.starts_with("image/"));
    Ok(Some(if is_image {
        let part = ImagePart {
            image_url: Some(url),
            media_type,
            ..ImagePart::default()
        };
        named_image(part, name, wire)
    } else {
        Part::InputFile(FilePart {
            file_url: Some(url),
            media_type,
            filename: name,
            ..FilePart::default()
        })
    }))
}

/// Notes that a document states no media type, or an empty one, which says as little.
fn record_media_type(stated: Option<String>, wire: &mut Extra) -> Option<String> {
    match stated.as_deref() {
        None => set_hint(wire, MEDIA_TYPE, "absent"),
        Some("") => set_hint(wire, MEDIA_TYPE, EMPTY),
        Some(_) => {}
    }
    stated.filter(|kind| !kind.is_empty())
}

/// Stores what is left of a nested object under its name.
pub(super) fn store_nested(wire: &mut Extra, name: &str, fields: Fields<'_>) -> Result<(), Error> {
    if !fields.is_empty() {
        wire.set(name, Raw::from_value(&to_extras(fields.into_extra()))?);
    }
    Ok(())
}

/// Returns what was stored of a nested object.
pub(super) fn nested_fields(wire: &Extra, name: &str) -> Extra {
    wire.get(name)
        .and_then(Raw::fields)
        .map(Fields::into_extra)
        .unwrap_or_default()
}

/// Makes an image part; items have no name for images, so it is stored as a hint.
fn named_image(part: ImagePart, name: Option<String>, wire: &mut Extra) -> Part {
    if let Some(name) = name {
        set_hint(wire, "displayName", &name);
    }
    Part::InputImage(part)
}

fn to_standard_base64(data: String, wire: &mut Extra) -> String {
    // Almost all data is in the standard alphabet; the copy is spared.
    if !data.contains(['-', '_']) {
        return data;
    }
    let mut base64: String = data
        .chars()
        .map(|c| match c {
            '-' => '+',
            '_' => '/',
            other => other,
        })
        .collect();
    // Data URLs want padding; the hint says whether the source had it.
    let missing = (4 - base64.len() % 4) % 4;
    set_hint(
        wire,
        "~base64",
        if missing == 0 { "url" } else { "url-bare" },
    );
    base64.push_str("=".repeat(missing).get(..missing).unwrap_or_default());
    base64
}

/// The bytes in the alphabet they came in.
fn to_original_base64(base64: &str, wire: &Extra) -> String {
    let Some(alphabet) = hint(wire, "~base64") else {
        return base64.to_owned();
    };
    let text = if alphabet == "url-bare" {
        base64.trim_end_matches('=')
    } else {
        base64
    };
    text.chars()
        .map(|c| match c {
            '+' => '-',
            '/' => '_',
            other => other,
        })
        .collect()
}

/// What a picture or file is written from.
struct MediaInput<'a> {
    data: Option<&'a str>,
    url: Option<&'a str>,
    file_id: Option<&'a str>,
    media_type: Option<&'a str>,
    name: Option<String>,
    fallback: &'static str,
}

/// A picture's part without its braces closed: `inlineData` or `fileData`.
pub(super) fn encode_image(
    part: &ImagePart,
    wire: &Extra,
    path: &str,
    losses: &mut Losses,
) -> Option<ObjectWriter> {
    if part
        .detail
        .as_deref()
        .is_some_and(|detail| detail != "auto")
    {
        let why = "levels of detail are said differently";
        losses.push(format!("{path}.detail"), LossKind::Field, why);
    }
    // A picture's URL may hold the bytes themselves; a file has a member for each.
    let url = part.image_url.as_deref();
    let is_data = url.is_some_and(|url| url.starts_with("data:"));
    let medium = MediaInput {
        data: url.filter(|_| is_data),
        url: url.filter(|_| !is_data),
        file_id: part.file_id.as_deref(),
        media_type: part.media_type.as_deref(),
        name: hint(wire, "displayName"),
        fallback: "image/jpeg",
    };
    encode_media(&medium, wire, path, losses)
}

/// A file's part, as [`encode_image`] writes it.
pub(super) fn encode_file(
    part: &FilePart,
    wire: &Extra,
    path: &str,
    losses: &mut Losses,
) -> Option<ObjectWriter> {
    let medium = MediaInput {
        data: part.file_data.as_deref(),
        url: part.file_url.as_deref(),
        file_id: part.file_id.as_deref(),
        media_type: part.media_type.as_deref(),
        name: part.filename.clone(),
        fallback: "application/octet-stream",
    };
    encode_media(&medium, wire, path, losses)
}

/// Adds a string member in the spelling, camelCase or snake_case, that the item came with.
fn write_spelled(
    object: &mut ObjectWriter,
    names: &SnakeCaseFields,
    key: &'static str,
    value: &str,
) {
    object.raw_as(key, &names.spelled_name(key), &quote_text(value));
}

fn encode_media(
    medium: &MediaInput<'_>,
    wire: &Extra,
    path: &str,
    losses: &mut Losses,
) -> Option<ObjectWriter> {
    let names = SnakeCaseFields::from_wire(wire);
    // The document stated no type there, so none is added.
    let came = hint(wire, MEDIA_TYPE);
    let untyped = came.is_some();
    let mut inner = ObjectWriter::new();
    if came.as_deref() == Some(EMPTY) {
        write_spelled(&mut inner, &names, "mimeType", "");
    }
    let key = if let Some(data) = medium.data {
        let Some(data) = DataUrl::parse(data).filter(DataUrl::is_base64) else {
            losses.push(path, LossKind::Part, "the bytes are not a base64 data URL");
            return None;
        };
        // The type inside the URL describes these very bytes, so it wins over the item's.
        let stated = Some(data.media_type)
            .filter(|kind| !kind.is_empty())
            .or(medium.media_type);
        if !untyped {
            let media_type = resolve_media_type(stated, "", medium.fallback, path, losses);
            write_spelled(&mut inner, &names, "mimeType", &media_type);
        }
        inner.string("data", &to_original_base64(data.base64, wire));
        "inlineData"
    } else if let Some(url) = medium.url {
        if !untyped {
            let stated = medium.media_type;
            let media_type = resolve_media_type(stated, url, medium.fallback, path, losses);
            write_spelled(&mut inner, &names, "mimeType", &media_type);
        }
        write_spelled(&mut inner, &names, "fileUri", url);
        "fileData"
    } else {
        let why = match medium.file_id {
            Some(_) => "the file is stored at another provider",
            None => "neither bytes nor an address",
        };
        losses.push(path, LossKind::Part, why);
        return None;
    };
    if let Some(name) = &medium.name {
        write_spelled(&mut inner, &names, "displayName", name);
    }
    inner.extra_fields(&nested_fields(wire, key));
    let mut object = ObjectWriter::new();
    object.raw_as(key, &names.spelled_name(key), &inner.finish());
    Some(object)
}

fn quote_text(text: &str) -> String {
    contexture_ir::quote_json(text)
}

/// A concrete media type: as stated, else by the address's ending, else a guess with a loss.
fn resolve_media_type(
    stated: Option<&str>,
    url: &str,
    fallback: &'static str,
    path: &str,
    losses: &mut Losses,
) -> String {
    // `image/*` and its like are no types that the provider accepts.
    if let Some(stated) = stated.filter(|kind| !kind.is_empty() && !kind.ends_with("/*")) {
        return stated.to_owned();
    }
    // The provider demands a concrete type, and an address often shows it.
    if let Some(known) = media_type_by_extension(url) {
        return known.to_owned();
    }
    let why = format!("nobody states the kind; `{fallback}` is written");
    losses.push(format!("{path}.media_type"), LossKind::Value, why);
    fallback.to_owned()
}

fn media_type_by_extension(url: &str) -> Option<&'static str> {
    // A query and a fragment are no part of the file's name.
    let path = url.split(['?', '#']).next()?;
    let name = path.rsplit('/').next()?;
    let (_, ending) = name.rsplit_once('.')?;
    Some(match ending.to_ascii_lowercase().as_str() {
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "heic" => "image/heic",
        "heif" => "image/heif",
        "svg" => "image/svg+xml",
        "pdf" => "application/pdf",
        "json" => "application/json",
        "txt" | "text" => "text/plain",
        "md" => "text/markdown",
        "html" | "htm" => "text/html",
        "csv" => "text/csv",
        "xml" => "text/xml",
        "mp3" => "audio/mp3",
        "wav" => "audio/wav",
        "ogg" => "audio/ogg",
        "flac" => "audio/flac",
        "aac" => "audio/aac",
        "mp4" => "video/mp4",
        "mov" => "video/quicktime",
        "webm" => "video/webm",
        "mpeg" | "mpg" => "video/mpeg",
        _ => return None,
    })
}
