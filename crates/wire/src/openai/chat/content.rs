//! The content of a message: a string, `null`, nothing, or an array of parts.
//!
//! A string is the canonical shape of one plain text part. The other shapes that mean the same are
//! kept as the hint [`CONTENT`].

use contexture_ir::{
    Error, ExtensionPart, Extra, Fields, FilePart, ImagePart, Part, Raw, TextPart,
};
use serde_json::value::RawValue;

use super::spec::NAME;
use crate::model::format_extras::{original_key, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::media::DataUrl;
use crate::openai::shared::{unexpected_value, with_key_prefix};

/// The hint of a message's content: `absent`, `null`, `empty` (a string), `array`, or `list`, which is
/// an array in a response and would be a string in a request.
pub(super) const CONTENT: &str = "~content";
/// The hint of a text part that is empty.
pub(super) const EMPTY: &str = "~empty";
/// The kind of Chat parts and calls we do not know, before their type.
pub(super) const SLUG: &str = "openai-chat:";

/// Content as read.
pub(super) struct ParsedContent {
    pub(super) parts: Vec<Part>,
    pub(super) shape: Option<&'static str>,
    pub(super) is_array: bool,
}

impl ParsedContent {
    pub(super) fn store_shape(&self, wire: &mut Extra) {
        if let Some(shape) = self.shape {
            set_hint(wire, CONTENT, shape);
        }
    }
}

/// Takes `content` out of a message's fields.
pub(super) fn parse_content(fields: &mut Fields<'_>, model: bool) -> Result<ParsedContent, Error> {
    let Some(value) = fields.take_field(&["content"])? else {
        return Ok(content_of_shape(Vec::new(), Some("absent")));
    };
    let text = value.get();
    if text == "null" {
        return Ok(content_of_shape(Vec::new(), Some("null")));
    }
    if text.starts_with('"') {
        let text: String = serde_json::from_str(text)
            .map_err(|_| unexpected_value("a string", text).at_segment("content"))?;
        return Ok(if text.is_empty() {
            content_of_shape(Vec::new(), Some("empty"))
        } else {
            content_of_shape(vec![text_part(model, TextPart::new(text))], None)
        });
    }
    let values: Vec<&RawValue> = serde_json::from_str(text).map_err(|_| {
        unexpected_value("a string, null or an array of parts", text).at_segment("content")
    })?;
    let read = |(index, value): (usize, &&RawValue)| {
        parse_part(value.get(), model).map_err(|error| error.at_index(index).at_segment("content"))
    };
    let parts: Vec<Part> = values
        .iter()
        .enumerate()
        .map(read)
        .collect::<Result<_, _>>()?;
    // An array of one plain text means the same as the string, so only there the hint is needed;
    // other arrays can be nothing else.
    let alone = match parts.as_slice() {
        [] => true,
        [Part::InputText(text) | Part::OutputText(text)] => {
            has_only_hints(&text.extra.wire_fields(NAME))
        }
        _ => false,
    };
    Ok(ParsedContent {
        is_array: true,
        ..content_of_shape(parts, alone.then_some("array"))
    })
}

pub(super) fn has_only_hints(wire: &Extra) -> bool {
    wire.iter().all(|(key, _)| original_key(key).is_none())
}

fn content_of_shape(parts: Vec<Part>, shape: Option<&'static str>) -> ParsedContent {
    ParsedContent {
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
pub(super) fn extra_from_wire(fields: Extra) -> Extra {
    let mut extra = Extra::new();
    extra.set_wire_fields(NAME, fields);
    extra
}

fn parse_part(text: &str, model: bool) -> Result<Part, Error> {
    let mut fields = Fields::parse(text)?;
    let kind = fields.need_string(&["type"])?;
    match kind.as_str() {
        "text" => {
            let text = fields.need_string(&["text"])?;
            let mut wire = to_extras(fields.into_extra());
            if text.is_empty() {
                set_hint(&mut wire, EMPTY, "kept");
            }
            let extra = extra_from_wire(wire);
            Ok(text_part(model, TextPart { text, extra }))
        }
        "refusal" => Ok(Part::Refusal(TextPart {
            text: fields.need_string(&["refusal"])?,
            extra: extra_from_wire(to_extras(fields.into_extra())),
        })),
        "image_url" => parse_image(fields),
        "input_audio" => parse_audio(fields),
        "file" => parse_file(fields),
        // Types that are newer than this code stay whole; only a Chat host gets them back.
        _ => wrap_extension(&kind, "part", text).map(|raw| {
            Part::Extension(ExtensionPart {
                kind: format!("{SLUG}{kind}"),
                raw,
            })
        }),
    }
}

/// A native object we do not know, wrapped so that no other format mistakes it for its own.
pub(super) fn wrap_extension(kind: &str, field: &'static str, text: &str) -> Result<Raw, Error> {
    let mut object = ObjectWriter::new();
    object
        .string("type", &format!("{SLUG}{kind}"))
        .raw(field, text);
    Raw::parse(object.finish())
}

fn parse_image(mut fields: Fields<'_>) -> Result<Part, Error> {
    let value = fields.take_field(&["image_url"])?.ok_or(Error::Missing {
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
            Ok((url, fields.take_string(&["detail"])?, fields.into_extra()))
        };
        let (url, detail, rest) =
            read(value.get()).map_err(|error: Error| error.at_segment("image_url"))?;
        image.image_url = Some(url);
        image.detail = detail;
        inner = rest;
    }
    let mut wire: Extra = with_key_prefix("image_url.", inner).collect();
    wire.extend(to_extras(fields.into_extra()));
    if as_string {
        set_hint(&mut wire, "~image_url", "string");
    }
    image.extra = extra_from_wire(wire);
    Ok(Part::InputImage(image))
}

fn parse_audio(mut fields: Fields<'_>) -> Result<Part, Error> {
    let value = fields.take_field(&["input_audio"])?.ok_or(Error::Missing {
        path: String::new(),
        field: "input_audio",
    })?;
    let read = |text| {
        let mut fields = Fields::parse(text)?;
        let data = fields.need_string(&["data"])?;
        Ok((data, fields.need_string(&["format"])?, fields.into_extra()))
    };
    let (data, format, rest) =
        read(value.get()).map_err(|error: Error| error.at_segment("input_audio"))?;
    let media_type = match format.as_str() {
        "mp3" => "audio/mpeg".to_owned(),
        other => format!("audio/{other}"),
    };
    let mut wire: Extra = with_key_prefix("input_audio.", rest).collect();
    wire.extend(to_extras(fields.into_extra()));
    if audio_format(&media_type) != Some(&format) {
        set_hint(&mut wire, "~format", &format);
    }
    Ok(Part::InputFile(FilePart {
        file_data: Some(DataUrl::build(&media_type, &data)),
        extra: extra_from_wire(wire),
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

fn parse_file(mut fields: Fields<'_>) -> Result<Part, Error> {
    let value = fields.take_field(&["file"])?.ok_or(Error::Missing {
        path: String::new(),
        field: "file",
    })?;
    let read = |text| {
        let mut fields = Fields::parse(text)?;
        let data = fields.take_string(&["file_data"])?;
        let id = fields.take_string(&["file_id"])?;
        Ok((
            data,
            id,
            fields.take_string(&["filename"])?,
            fields.into_extra(),
        ))
    };
    let (file_data, file_id, filename, rest) =
        read(value.get()).map_err(|error: Error| error.at_segment("file"))?;
    let mut wire: Extra = with_key_prefix("file.", rest).collect();
    wire.extend(to_extras(fields.into_extra()));
    if file_data.is_some() && filename.is_none() {
        set_hint(&mut wire, "~filename", "absent");
    }
    // What another writer would have written as a picture or as sound, or not at all.
    let other = match file_data.as_deref().and_then(DataUrl::parse) {
        Some(url) => url.media_type.starts_with("image/") || url.media_type.starts_with("audio/"),
        None => file_data.is_none() && file_id.is_none(),
    };
    if other {
        set_hint(&mut wire, "~type", "file");
    }
    Ok(Part::InputFile(FilePart {
        file_data,
        file_id,
        filename,
        extra: extra_from_wire(wire),
        ..FilePart::default()
    }))
}
