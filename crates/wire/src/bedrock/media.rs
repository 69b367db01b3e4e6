//! Pictures, documents, videos and sounds: blocks with a `format` and a `source`, read and written.
//!
//! Bytes become base64 `data:` URLs, S3 locations URLs. The provider fetches nothing over HTTP. A document has a name,
//! which the model reads; only plain characters may stand in it.

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use contexture_ir::{Error, Extra, Fields, FilePart, ImagePart, Part, Raw};
use serde_json::value::RawValue;

use super::block::single_member;
use super::spec::FORMAT;
use crate::model::format_extras::{hint, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::model::media::DataUrl;

/// The kinds of media: the block's member, the provider's word for the format, the media type. Of words for one type the
/// first is written.
const FORMATS: [(&str, &str, &str); 40] = [
    ("image", "png", "image/png"),
    ("image", "jpeg", "image/jpeg"),
    ("image", "gif", "image/gif"),
    ("image", "webp", "image/webp"),
    ("document", "pdf", "application/pdf"),
    ("document", "csv", "text/csv"),
    ("document", "doc", "application/msword"),
    ("document", "docx", DOCX),
    ("document", "xls", "application/vnd.ms-excel"),
    ("document", "xlsx", XLSX),
    ("document", "html", "text/html"),
    ("document", "txt", PLAIN),
    ("document", "md", "text/markdown"),
    ("video", "mkv", "video/x-matroska"),
    ("video", "mov", "video/quicktime"),
    ("video", "mp4", "video/mp4"),
    ("video", "webm", "video/webm"),
    ("video", "flv", "video/x-flv"),
    ("video", "mpeg", "video/mpeg"),
    ("video", "mpg", "video/mpeg"),
    ("video", "wmv", "video/x-ms-wmv"),
    ("video", "three_gp", "video/3gpp"),
    ("audio", "mp3", "audio/mpeg"),
    ("audio", "opus", "audio/opus"),
    ("audio", "wav", "audio/wav"),
    ("audio", "aac", "audio/aac"),
    ("audio", "flac", "audio/flac"),
    ("audio", "mp4", "audio/mp4"),
    ("audio", "ogg", "audio/ogg"),
    ("audio", "mkv", "audio/x-matroska"),
    ("audio", "mka", "audio/x-matroska"),
    ("audio", "x-aac", "audio/x-aac"),
    ("audio", "m4a", "audio/mp4"),
    ("audio", "mpeg", "audio/mpeg"),
    ("audio", "mpga", "audio/mpeg"),
    ("audio", "pcm", "audio/pcm"),
    ("audio", "webm", "audio/webm"),
    // Types that other formats write.
    ("image", "jpeg", "image/jpg"),
    ("audio", "mp3", "audio/mp3"),
    ("audio", "wav", "audio/x-wav"),
];
const DOCX: &str = "application/vnd.openxmlformats-officedocument.wordprocessingml.document";
const XLSX: &str = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet";
const PLAIN: &str = "text/plain";
/// The name of a document that has none.
const UNNAMED: &str = "document";
/// The longest name of a document, in bytes.
const MAX_NAME: usize = 200;

/// What a block's source points at.
#[derive(Default)]
struct Location {
    base64: Option<String>,
    uri: Option<String>,
}

/// Reads a block's value; `None` if its source or format is of a kind that items have no field for.
pub(super) fn parse_media(member: &str, value: &RawValue) -> Result<Option<Part>, Error> {
    let mut fields = Fields::parse(value.get())?;
    let mut wire = Extra::new();
    let word = fields.take_string(&["format"])?;
    let Some(media_type) = media_type_of(member, word.as_deref(), &mut wire) else {
        return Ok(None);
    };
    let Some(source) = fields.take_present(&["source"])? else {
        return Ok(None);
    };
    let Some(location) = parse_source(source, &mut wire)? else {
        return Ok(None);
    };
    let data = location
        .base64
        .map(|base64| DataUrl::build(media_type, &base64));
    // A URL does not say of what type it is; data does.
    let stated = location.uri.is_some().then(|| media_type.to_owned());
    // Only documents have a name.
    let name = match member {
        "document" => take_name(&mut fields, &mut wire)?,
        _ => None,
    };
    let mut part = if member == "image" {
        Part::InputImage(ImagePart {
            image_url: data.or(location.uri),
            media_type: stated,
            ..ImagePart::default()
        })
    } else {
        Part::InputFile(FilePart {
            file_data: data,
            file_url: location.uri,
            media_type: stated,
            filename: name,
            ..FilePart::default()
        })
    };
    wire.extend(to_extras(fields.into_extra()));
    if let Some(extra) = part.extra_mut() {
        extra.set_wire_fields(FORMAT, wire);
    }
    Ok(Some(part))
}

/// Takes a document's name; leaves a hint that a name which is not plain was accepted.
fn take_name(fields: &mut Fields<'_>, wire: &mut Extra) -> Result<Option<String>, Error> {
    let name = fields.take_string(&["name"])?;
    match &name {
        None => set_hint(wire, "~name", "absent"),
        Some(name) if !is_plain_name(name) => set_hint(wire, "~name", "own"),
        Some(_) => {}
    }
    Ok(name)
}

/// The media type of a provider's word; leaves a hint where the word cannot be told from the type.
fn media_type_of(member: &str, word: Option<&str>, wire: &mut Extra) -> Option<&'static str> {
    let Some(word) = word else {
        // Only a document may do without, and text is what it then is.
        set_hint(wire, "~format", "absent");
        return (member == "document").then_some(PLAIN);
    };
    let known = |(kind, name, _): &&(&str, &str, &str)| (*kind, *name) == (member, word);
    let (_, _, media_type) = FORMATS.iter().find(known)?;
    if format_word(media_type) != Some((member, word)) {
        set_hint(wire, "~format", word);
    }
    Some(media_type)
}

/// The block's member and the provider's word for a media type.
fn format_word(media_type: &str) -> Option<(&'static str, &'static str)> {
    let found = FORMATS.iter().find(|(_, _, known)| *known == media_type);
    found.map(|(member, word, _)| (*member, *word))
}

/// Reads `source`; `None` if it is nested content or of a kind that is not known.
fn parse_source(source: &RawValue, wire: &mut Extra) -> Result<Option<Location>, Error> {
    let fields = Fields::parse(source.get())?;
    let Some((kind, value)) = single_member(&fields) else {
        return Ok(None);
    };
    let text = || serde_json::from_str::<String>(value.get()).ok();
    let mut location = Location::default();
    match kind.as_str() {
        "bytes" => location.base64 = text(),
        // Items hold the bytes of text as base64, as of every file.
        "text" => {
            set_hint(wire, "~source", "text");
            location.base64 = text().map(|text| STANDARD.encode(text));
        }
        "s3Location" => {
            let mut fields = Fields::parse(value.get())?;
            location.uri = fields.take_string(&["uri"])?;
            if !fields.is_empty() {
                let rest = to_extras(fields.into_extra());
                wire.set("s3Location", Raw::from_value(&rest)?);
            }
        }
        _ => return Ok(None),
    }
    let is_known = location.base64.is_some() || location.uri.is_some();
    Ok(is_known.then_some(location))
}

/// A block with a picture; `None`, with a loss, if the provider would refuse it.
pub(super) fn encode_image(part: &ImagePart, path: &str, losses: &mut Losses) -> Option<String> {
    if part
        .detail
        .as_deref()
        .is_some_and(|detail| detail != "auto")
    {
        let why = "pictures have one level of detail";
        losses.push(format!("{path}.detail"), LossKind::Field, why);
    }
    let url = part.image_url.as_deref();
    let is_data = url.is_some_and(|url| url.starts_with("data:"));
    let medium = Medium {
        data: url.filter(|_| is_data),
        url: url.filter(|_| !is_data),
        file_id: part.file_id.as_deref(),
        media_type: part.media_type.as_deref(),
        name: None,
        default_type: "image/png",
    };
    let wire = part.extra.wire_fields(FORMAT);
    encode_medium(&medium, &wire, path, losses)
}

/// A block with a file: a document, a video, a sound, or a picture that came as a file.
pub(super) fn encode_file(part: &FilePart, path: &str, losses: &mut Losses) -> Option<String> {
    let medium = Medium {
        data: part.file_data.as_deref(),
        url: part.file_url.as_deref(),
        file_id: part.file_id.as_deref(),
        media_type: part.media_type.as_deref(),
        name: part.filename.as_deref(),
        default_type: "application/pdf",
    };
    let wire = part.extra.wire_fields(FORMAT);
    encode_medium(&medium, &wire, path, losses)
}

/// Reports whether a written block is a sound.
pub(super) fn is_audio(block: &str) -> bool {
    block.starts_with(r#"{"audio":"#)
}

/// What a block is written from.
struct Medium<'a> {
    data: Option<&'a str>,
    url: Option<&'a str>,
    file_id: Option<&'a str>,
    media_type: Option<&'a str>,
    name: Option<&'a str>,
    /// What an address without a type is assumed to be.
    default_type: &'static str,
}

fn encode_medium(
    medium: &Medium<'_>,
    wire: &Extra,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    let written = source_of(medium, wire).and_then(|(source, media_type)| {
        let (member, word) = written_format(&media_type, path, losses)?;
        Ok((source, member, word))
    });
    let (source, member, word) = match written {
        Ok(written) => written,
        Err(why) => {
            losses.push(path, LossKind::Part, why);
            return None;
        }
    };
    let mut inner = ObjectWriter::new();
    match hint(wire, "~format").as_deref() {
        Some("absent") => {}
        Some(own) => {
            inner.string("format", own);
        }
        None => {
            inner.string("format", word);
        }
    }
    if member == "document" {
        inner.string_if_some("name", document_name(medium.name, wire, path, losses));
    } else if medium.name.is_some_and(|name| !name.is_empty()) {
        let why = "only documents have a name";
        losses.push(format!("{path}.filename"), LossKind::Field, why);
    }
    let mut fields = wire.clone();
    for key in ["s3Location", super::block::CACHE_POINT] {
        fields.remove(key);
    }
    inner.raw("source", &source).extra_fields(&fields);
    let mut block = ObjectWriter::new();
    block.raw(member, &inner.finish());
    Some(block.finish())
}

/// The `source` of a medium and its media type, or why the provider would refuse it.
fn source_of(medium: &Medium<'_>, wire: &Extra) -> Result<(String, String), String> {
    let mut source = ObjectWriter::new();
    if let Some(data) = medium.data {
        let data = DataUrl::parse(data).ok_or("the bytes are not a base64 data URL")?;
        if hint(wire, "~source").as_deref() == Some("text")
            && let Some(text) = decode_text(data.base64)
        {
            source.string("text", &text);
        } else if !data.is_base64() {
            return Err("the bytes are none, or not base64".to_owned());
        } else {
            source.string("bytes", data.base64);
        }
        // Parameters such as a charset do not change what kind of file it is.
        let stated = data.media_type.split(';').next().unwrap_or_default();
        let stated = Some(stated).filter(|stated| !stated.is_empty());
        let media_type = stated.or(medium.media_type).unwrap_or(PLAIN);
        return Ok((source.finish(), media_type.to_owned()));
    }
    if let Some(url) = medium.url {
        if !url.starts_with("s3://") {
            return Err("the provider fetches nothing but S3 locations".to_owned());
        }
        let mut location = ObjectWriter::new();
        location.string("uri", url);
        let rest = wire.get("s3Location").and_then(Raw::fields);
        location.extra_fields(&rest.map(Fields::into_extra).unwrap_or_default());
        source.raw("s3Location", &location.finish());
        let media_type = medium.media_type.unwrap_or(medium.default_type);
        return Ok((source.finish(), media_type.to_owned()));
    }
    Err(match medium.file_id {
        Some(_) => "the file is stored at another provider".to_owned(),
        None => "neither bytes nor an address".to_owned(),
    })
}

fn decode_text(base64: &str) -> Option<String> {
    String::from_utf8(STANDARD.decode(base64).ok()?).ok()
}

/// The member and the word for a media type; text of other types is written as plain text.
fn written_format(
    media_type: &str,
    path: &str,
    losses: &mut Losses,
) -> Result<(&'static str, &'static str), String> {
    if let Some(known) = format_word(media_type) {
        return Ok(known);
    }
    let is_text = media_type.starts_with("text/")
        || ["+json", "+xml", "/json", "/xml", "/yaml", "/x-yaml"]
            .iter()
            .any(|ending| media_type.ends_with(ending));
    if !is_text {
        return Err(format!("files of type `{media_type}` are not accepted"));
    }
    let why = format!("`{media_type}` is written as plain text");
    losses.push(format!("{path}.media_type"), LossKind::Value, why);
    Ok(("document", "txt"))
}

/// The name of a document as the provider accepts it; `None` if it came without one.
///
/// Letters, digits, single spaces, hyphens, parentheses and brackets may stand in it; a dot may not.
fn document_name(
    name: Option<&str>,
    wire: &Extra,
    path: &str,
    losses: &mut Losses,
) -> Option<String> {
    let shape = hint(wire, "~name");
    let Some(name) = name else {
        return (shape.as_deref() != Some("absent")).then(|| UNNAMED.to_owned());
    };
    // A name that came in this format was accepted as it is.
    if shape.as_deref() == Some("own") || is_plain_name(name) {
        return Some(name.to_owned());
    }
    let plain = |c: char| if is_name_char(c) { c } else { '-' };
    let replaced: String = name.chars().map(plain).collect();
    let words: Vec<&str> = replaced.split_whitespace().collect();
    let mut new = words.join(" ");
    new.truncate(MAX_NAME);
    if new.is_empty() {
        UNNAMED.clone_into(&mut new);
    }
    let why = format!("names of documents are plainer; written `{new}`");
    losses.push(format!("{path}.filename"), LossKind::Value, why);
    Some(new)
}

fn is_plain_name(name: &str) -> bool {
    let is_single_spaced = !name.contains("  ") && name.trim() == name;
    (1..=MAX_NAME).contains(&name.len()) && is_single_spaced && name.chars().all(is_name_char)
}

fn is_name_char(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, ' ' | '-' | '(' | ')' | '[' | ']')
}
