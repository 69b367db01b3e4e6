//! The content of a message: a string, `null`, nothing, or an array of parts.
//!
//! A string is the canonical shape of one plain text part. The other shapes that mean the same are
//! kept as the hint [`CONTENT`].

use contexture_ir::{
    Error, ExtensionPart, Extra, Fields, FilePart, ImagePart, Part, Raw, TextPart,
};
use serde_json::value::RawValue;

use super::words::NAME;
use crate::carry::{hint, keep, native_key};
use crate::json::Object;
use crate::media::DataUrl;
use crate::openai::{prefixed, unexpected};

/// The hint of a message's content: `absent`, `null`, `empty` (a string), `array`, or `list`, which is
/// an array in a response and would be a string in a request.
pub(super) const CONTENT: &str = "~content";
/// The hint of a text part that is empty.
pub(super) const EMPTY: &str = "~empty";
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

pub(super) fn only_hints(wire: &Extra) -> bool {
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

pub(super) fn audio_format(media_type: &str) -> Option<&str> {
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
