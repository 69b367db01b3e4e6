//! The content of a message: a string, `null`, nothing, or an array of parts.
//!
//! A string is the canonical shape of one plain text part. The other shapes that mean the same are
//! kept as the hint [`CONTENT`].

use contexture_ir::{
    Error, ExtensionPart, Extra, Fields, FilePart, ImagePart, Part, Raw, TextPart, quote,
};
use serde_json::value::RawValue;

use super::NAME;
use crate::carry::{hint, hinted, keep, native_key, tell_foreign};
use crate::json::{Object, array};
use crate::loss::{LossKind, Losses};
use crate::media::{DataUrl, default_filename};
use crate::openai::{prefixed, unexpected, unprefixed, without};

/// The hint of a message's content: `absent`, `null`, `empty` (a string), `array`, or `list`, which is
/// an array in a response and would be a string in a request.
pub(super) const CONTENT: &str = "~content";
/// The hint of a text part that is empty.
const EMPTY: &str = "~empty";
/// The kind of Chat parts and calls we do not know, before their type.
pub(super) const SLUG: &str = "openai-chat:";

/// Content as read.
pub(super) struct Content {
    pub(super) parts: Vec<Part>,
    pub(super) shape: Option<&'static str>,
    pub(super) is_array: bool,
}

impl Content {
    pub(super) fn keep_shape(&self, wire: &mut Extra) {
        if let Some(shape) = self.shape {
            hint(wire, CONTENT, shape);
        }
    }
}

/// Takes `content` out of a message's fields.
pub(super) fn read(fields: &mut Fields<'_>, model: bool) -> Result<Content, Error> {
    let Some(value) = fields.take(&["content"])? else {
        return Ok(bare(Vec::new(), Some("absent")));
    };
    let text = value.get();
    if text == "null" {
        return Ok(bare(Vec::new(), Some("null")));
    }
    if text.starts_with('"') {
        let text: String =
            serde_json::from_str(text).map_err(|_| unexpected("a string", text).at("content"))?;
        return Ok(if text.is_empty() {
            bare(Vec::new(), Some("empty"))
        } else {
            bare(vec![text_part(model, TextPart::new(text))], None)
        });
    }
    let values: Vec<&RawValue> = serde_json::from_str(text)
        .map_err(|_| unexpected("a string, null or an array of parts", text).at("content"))?;
    let read = |(index, value): (usize, &&RawValue)| {
        read_part(value.get(), model).map_err(|error| error.at_index(index).at("content"))
    };
    let parts: Vec<Part> = values
        .iter()
        .enumerate()
        .map(read)
        .collect::<Result<_, _>>()?;
    let alone = match parts.as_slice() {
        [] => true,
        [Part::InputText(text) | Part::OutputText(text)] => only_hints(&text.extra.wire(NAME)),
        _ => false,
    };
    Ok(Content {
        is_array: true,
        ..bare(parts, alone.then_some("array"))
    })
}

fn only_hints(wire: &Extra) -> bool {
    wire.iter().all(|(key, _)| native_key(key).is_none())
}

fn bare(parts: Vec<Part>, shape: Option<&'static str>) -> Content {
    Content {
        parts,
        shape,
        is_array: false,
    }
}

pub(super) fn text_part(model: bool, part: TextPart) -> Part {
    if model {
        Part::OutputText(part)
    } else {
        Part::InputText(part)
    }
}

/// Fields as this format's own, in an otherwise empty extra.
pub(super) fn wired(fields: Extra) -> Extra {
    let mut extra = Extra::new();
    extra.set_wire(NAME, fields);
    extra
}

fn read_part(text: &str, model: bool) -> Result<Part, Error> {
    let mut fields = Fields::parse(text)?;
    let kind = fields.need_string(&["type"])?;
    match kind.as_str() {
        "text" => {
            let text = fields.need_string(&["text"])?;
            let mut wire = keep(fields.rest());
            if text.is_empty() {
                hint(&mut wire, EMPTY, "kept");
            }
            let extra = wired(wire);
            Ok(text_part(model, TextPart { text, extra }))
        }
        "refusal" => Ok(Part::Refusal(TextPart {
            text: fields.need_string(&["refusal"])?,
            extra: wired(keep(fields.rest())),
        })),
        "image_url" => read_image(fields),
        "input_audio" => read_audio(fields),
        "file" => read_file(fields),
        _ => extension(&kind, "part", text).map(|raw| {
            Part::Extension(ExtensionPart {
                kind: format!("{SLUG}{kind}"),
                raw,
            })
        }),
    }
}

/// A native object we do not know, wrapped so that no other format mistakes it for its own.
pub(super) fn extension(kind: &str, field: &'static str, text: &str) -> Result<Raw, Error> {
    let mut object = Object::new();
    object
        .string("type", &format!("{SLUG}{kind}"))
        .raw(field, text);
    Raw::parse(object.finish())
}

fn read_image(mut fields: Fields<'_>) -> Result<Part, Error> {
    let value = fields.take(&["image_url"])?.ok_or(Error::Missing {
        path: String::new(),
        field: "image_url",
    })?;
    let mut image = ImagePart::default();
    let mut inner = Extra::new();
    let mut as_string = false;
    if value.get().starts_with('"') {
        image.image_url = serde_json::from_str(value.get()).ok();
        as_string = true;
    } else {
        let read = |text| {
            let mut fields = Fields::parse(text)?;
            let url = fields.need_string(&["url"])?;
            Ok((url, fields.take_string(&["detail"])?, fields.rest()))
        };
        let (url, detail, rest) =
            read(value.get()).map_err(|error: Error| error.at("image_url"))?;
        image.image_url = Some(url);
        image.detail = detail;
        inner = rest;
    }
    let mut wire: Extra = prefixed("image_url.", inner).collect();
    wire.extend(keep(fields.rest()));
    if as_string {
        hint(&mut wire, "~image_url", "string");
    }
    image.extra = wired(wire);
    Ok(Part::InputImage(image))
}

fn read_audio(mut fields: Fields<'_>) -> Result<Part, Error> {
    let value = fields.take(&["input_audio"])?.ok_or(Error::Missing {
        path: String::new(),
        field: "input_audio",
    })?;
    let read = |text| {
        let mut fields = Fields::parse(text)?;
        let data = fields.need_string(&["data"])?;
        Ok((data, fields.need_string(&["format"])?, fields.rest()))
    };
    let (data, format, rest) = read(value.get()).map_err(|error: Error| error.at("input_audio"))?;
    let media_type = match format.as_str() {
        "mp3" => "audio/mpeg".to_owned(),
        other => format!("audio/{other}"),
    };
    let mut wire: Extra = prefixed("input_audio.", rest).collect();
    wire.extend(keep(fields.rest()));
    if audio_format(&media_type) != Some(&format) {
        hint(&mut wire, "~format", &format);
    }
    Ok(Part::InputFile(FilePart {
        file_data: Some(DataUrl::build(&media_type, &data)),
        extra: wired(wire),
        ..FilePart::default()
    }))
}

fn audio_format(media_type: &str) -> Option<&str> {
    Some(match media_type {
        "audio/mpeg" | "audio/mp3" => "mp3",
        "audio/wav" | "audio/x-wav" | "audio/wave" => "wav",
        _ => return None,
    })
}

fn read_file(mut fields: Fields<'_>) -> Result<Part, Error> {
    let value = fields.take(&["file"])?.ok_or(Error::Missing {
        path: String::new(),
        field: "file",
    })?;
    let read = |text| {
        let mut fields = Fields::parse(text)?;
        let data = fields.take_string(&["file_data"])?;
        let id = fields.take_string(&["file_id"])?;
        Ok((data, id, fields.take_string(&["filename"])?, fields.rest()))
    };
    let (file_data, file_id, filename, rest) =
        read(value.get()).map_err(|error: Error| error.at("file"))?;
    let mut wire: Extra = prefixed("file.", rest).collect();
    wire.extend(keep(fields.rest()));
    if file_data.is_some() && filename.is_none() {
        hint(&mut wire, "~filename", "absent");
    }
    // What another writer would have written as a picture or as sound, or not at all.
    let other = match file_data.as_deref().and_then(DataUrl::parse) {
        Some(url) => url.media_type.starts_with("image/") || url.media_type.starts_with("audio/"),
        None => file_data.is_none() && file_id.is_none(),
    };
    if other {
        hint(&mut wire, "~type", "file");
    }
    Ok(Part::InputFile(FilePart {
        file_data,
        file_id,
        filename,
        extra: wired(wire),
        ..FilePart::default()
    }))
}

/// A part as written: its JSON, and its text if it is nothing but text.
pub(super) struct Native {
    pub(super) json: String,
    pub(super) plain: Option<String>,
}

/// Writes a text part; nothing if it is empty and did not come so.
pub(super) fn write_text(part: &TextPart, path: &str, losses: &mut Losses) -> Option<Native> {
    tell_foreign(&part.extra, NAME, path, losses);
    let wire = part.extra.wire(NAME);
    if part.text.is_empty() && hinted(&wire, EMPTY).is_none() {
        return None;
    }
    let mut object = Object::new();
    object
        .string("type", "text")
        .string("text", &part.text)
        .carried(&wire);
    let plain = only_hints(&wire).then(|| part.text.clone());
    Some(Native {
        json: object.finish(),
        plain,
    })
}

/// Writes a refusal as a part.
pub(super) fn write_refusal(part: &TextPart) -> Native {
    let mut object = Object::new();
    object
        .string("type", "refusal")
        .string("refusal", &part.text)
        .carried(&part.extra.wire(NAME));
    Native {
        json: object.finish(),
        plain: None,
    }
}

/// Writes a part of Chat's own that we do not know; nothing, with a loss, if it is another's.
pub(super) fn write_extension(
    part: &ExtensionPart,
    path: &str,
    losses: &mut Losses,
) -> Option<Native> {
    if part.kind.starts_with(SLUG)
        && let Some(inner) = part.raw.fields().and_then(|fields| fields.get(&["part"]))
    {
        return Some(Native {
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
pub(super) fn write_media(part: &Part, path: &str, losses: &mut Losses) -> Option<Native> {
    let json = match part {
        Part::InputImage(image) => write_image(image, path, losses),
        Part::InputFile(file) => write_file(file, path, losses),
        _ => None,
    }?;
    Some(Native { json, plain: None })
}

fn write_image(image: &ImagePart, path: &str, losses: &mut Losses) -> Option<String> {
    tell_foreign(&image.extra, NAME, path, losses);
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
    tell_media_type(image.media_type.as_deref(), url, path, losses);
    let wire = image.extra.wire(NAME);
    let mut object = Object::new();
    object.string("type", "image_url");
    if hinted(&wire, "~image_url").is_some() && image.detail.is_none() {
        object.string("image_url", url);
    } else {
        let mut inner = Object::new();
        inner.string("url", url);
        inner.maybe("detail", image.detail.as_deref().map(quote).as_deref());
        inner.carried(&unprefixed("image_url.", &wire));
        object.raw("image_url", &inner.finish());
    }
    object.carried(&without(&["image_url."], &wire));
    Some(object.finish())
}

/// A media type that stands beside a URL that does not state it.
fn tell_media_type(media_type: Option<&str>, url: &str, path: &str, losses: &mut Losses) {
    if media_type.is_some() && DataUrl::parse(url).is_none() {
        let why = "a media type beside a URL has no place in a message";
        losses.push(format!("{path}.media_type"), LossKind::Field, why);
    }
}

fn write_file(file: &FilePart, path: &str, losses: &mut Losses) -> Option<String> {
    tell_foreign(&file.extra, NAME, path, losses);
    let wire = file.extra.wire(NAME);
    let data = file.file_data.as_deref();
    let url = data.and_then(DataUrl::parse);
    if let Some(url) = url
        && hinted(&wire, "~type").is_none()
    {
        if url.media_type.starts_with("audio/") {
            return write_audio(url, &wire, path, losses);
        }
        if url.media_type.starts_with("image/") {
            let image = ImagePart {
                image_url: file.file_data.clone(),
                ..ImagePart::default()
            };
            return write_image(&image, path, losses);
        }
        if url.media_type.starts_with("video/") {
            losses.push(path, LossKind::Part, format!("{NAME} takes no video"));
            return None;
        }
    }
    if data.is_none() && file.file_id.is_none() && hinted(&wire, "~type").is_none() {
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
    let mut inner = Object::new();
    inner.maybe("file_data", data.map(quote).as_deref());
    inner.maybe("file_id", file.file_id.as_deref().map(quote).as_deref());
    let name = file.filename.clone().or_else(|| {
        let absent = hinted(&wire, "~filename").is_some();
        (data.is_some() && !absent).then(|| default_filename(url.map_or("", |url| url.media_type)))
    });
    inner.maybe("filename", name.as_deref().map(quote).as_deref());
    inner.carried(&unprefixed("file.", &wire));
    let mut object = Object::new();
    object.string("type", "file").raw("file", &inner.finish());
    object.carried(&without(&["file."], &wire));
    Some(object.finish())
}

fn write_audio(url: DataUrl<'_>, wire: &Extra, path: &str, losses: &mut Losses) -> Option<String> {
    let own = hinted(wire, "~format");
    let Some(format) = own.as_deref().or_else(|| audio_format(url.media_type)) else {
        losses.push(
            path,
            LossKind::Part,
            format!("{NAME} takes wav and mp3, not {}", url.media_type),
        );
        return None;
    };
    let mut inner = Object::new();
    inner.string("data", url.base64).string("format", format);
    inner.carried(&unprefixed("input_audio.", wire));
    let mut object = Object::new();
    object
        .string("type", "input_audio")
        .raw("input_audio", &inner.finish());
    object.carried(&without(&["input_audio."], wire));
    Some(object.finish())
}

/// The value of `content` for some parts and the shape hint: a string for one plain text, an array
/// otherwise; for no parts what the hint says. `None` means: leave the member out.
pub(super) fn write(natives: &[Native], shape: Option<&str>, none: &str) -> Option<String> {
    match (natives, shape) {
        ([], Some("absent")) => None,
        ([], Some("null")) => Some("null".to_owned()),
        ([], Some("empty")) => Some("\"\"".to_owned()),
        ([], Some("array")) => Some("[]".to_owned()),
        ([], _) => Some(none.to_owned()),
        ([native], shape) if shape != Some("array") => Some(
            native
                .plain
                .as_deref()
                .map_or_else(|| array([&native.json]), quote),
        ),
        (natives, _) => Some(array(natives.iter().map(|native| &native.json))),
    }
}
