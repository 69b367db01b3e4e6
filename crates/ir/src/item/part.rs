//! Parts: the content inside an item.
//!
//! Names and fields are those of Open Responses: `input_text`, `output_text`, `refusal`,
//! `summary_text`, `reasoning_text`, `input_image`, `input_file`. Two fields are ours: `media_type`
//! on images and files, which several providers demand beside a URL. A part of another type is kept
//! whole.

use serde::ser::{Serialize, SerializeMap, Serializer};
use serde_json::value::RawValue;

use crate::error::Error;
use crate::raw::{Extra, Fields, Raw};

/// One piece of an item's content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Part {
    /// Text said to the model.
    InputText(TextPart),
    /// Text said by the model; `annotations` and `logprobs` stay in its extra fields.
    OutputText(TextPart),
    /// The model's refusal.
    Refusal(TextPart),
    /// A summary: of reasoning, or of what a compaction covers.
    SummaryText(TextPart),
    /// Reasoning in full.
    ReasoningText(TextPart),
    /// An image, by URL, file id or data.
    InputImage(ImagePart),
    /// A file: a document, sound, video.
    InputFile(FilePart),
    /// A type this version does not know, kept whole.
    Extension(ExtensionPart),
}

/// A part that is text.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TextPart {
    /// The text of the part.
    pub text: String,
    /// Fields that have no member here.
    pub extra: Extra,
}

/// A picture, by URL (`data:` or another) or by a provider's file id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ImagePart {
    /// `data:<media type>;base64,…` or a URL. Bytes are inline only as a data URL.
    pub image_url: Option<String>,
    /// The id of a file at the provider.
    pub file_id: Option<String>,
    /// `auto`, `low`, `high`; what a provider adds later is kept as it is.
    pub detail: Option<String>,
    /// The media type, where the source stated it and the URL does not.
    pub media_type: Option<String>,
    /// Fields that have no member here.
    pub extra: Extra,
}

/// A file, by data URL, URL or a provider's file id.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePart {
    /// The content as a `data:<media type>;base64,…` URL.
    pub file_data: Option<String>,
    /// The id of a file at the provider.
    pub file_id: Option<String>,
    /// URL of the file.
    pub file_url: Option<String>,
    /// A name to show.
    pub filename: Option<String>,
    /// The media type, where the source stated it and the data URL does not.
    pub media_type: Option<String>,
    /// Fields that have no member here.
    pub extra: Extra,
}

/// A part of a type this version does not know.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExtensionPart {
    /// The part's `type` in JSON.
    pub kind: String,
    /// The whole object.
    pub raw: Raw,
}

impl Part {
    /// Text said to the model.
    #[must_use]
    pub fn input_text(text: impl Into<String>) -> Self {
        Self::InputText(TextPart::new(text))
    }

    /// Text said by the model.
    #[must_use]
    pub fn output_text(text: impl Into<String>) -> Self {
        Self::OutputText(TextPart::new(text))
    }

    /// The `type` on the wire.
    #[must_use]
    pub fn kind(&self) -> &str {
        match self {
            Self::InputText(_) => "input_text",
            Self::OutputText(_) => "output_text",
            Self::Refusal(_) => "refusal",
            Self::SummaryText(_) => "summary_text",
            Self::ReasoningText(_) => "reasoning_text",
            Self::InputImage(_) => "input_image",
            Self::InputFile(_) => "input_file",
            Self::Extension(part) => &part.kind,
        }
    }

    /// The text, of a part that is text.
    #[must_use]
    pub fn as_text(&self) -> Option<&str> {
        match self {
            Self::InputText(part)
            | Self::OutputText(part)
            | Self::Refusal(part)
            | Self::SummaryText(part)
            | Self::ReasoningText(part) => Some(&part.text),
            Self::InputImage(_) | Self::InputFile(_) | Self::Extension(_) => None,
        }
    }

    /// The fields no typed field claimed; `None` for an extension, which is kept whole.
    #[must_use]
    pub fn extra(&self) -> Option<&Extra> {
        match self {
            Self::InputText(part)
            | Self::OutputText(part)
            | Self::Refusal(part)
            | Self::SummaryText(part)
            | Self::ReasoningText(part) => Some(&part.extra),
            Self::InputImage(part) => Some(&part.extra),
            Self::InputFile(part) => Some(&part.extra),
            Self::Extension(_) => None,
        }
    }

    /// As [`Part::extra`], to change them.
    pub fn extra_mut(&mut self) -> Option<&mut Extra> {
        match self {
            Self::InputText(part)
            | Self::OutputText(part)
            | Self::Refusal(part)
            | Self::SummaryText(part)
            | Self::ReasoningText(part) => Some(&mut part.extra),
            Self::InputImage(part) => Some(&mut part.extra),
            Self::InputFile(part) => Some(&mut part.extra),
            Self::Extension(_) => None,
        }
    }

    /// Reads one part; camelCase names of known fields are accepted.
    pub fn parse(text: &str) -> Result<Self, Error> {
        let mut fields = Fields::parse(text)?;
        let kind = fields.need_string(&["type"])?;
        Ok(match kind.as_str() {
            "input_text" => Self::InputText(TextPart::from_fields(fields, "text")?),
            "output_text" => Self::OutputText(TextPart::from_fields(fields, "text")?),
            "refusal" => Self::Refusal(TextPart::from_fields(fields, "refusal")?),
            "summary_text" => Self::SummaryText(TextPart::from_fields(fields, "text")?),
            "reasoning_text" => Self::ReasoningText(TextPart::from_fields(fields, "text")?),
            "input_image" => Self::InputImage(ImagePart {
                image_url: fields.take_string(&["image_url", "imageUrl"])?,
                file_id: fields.take_string(&["file_id", "fileId"])?,
                detail: fields.take_string(&["detail"])?,
                media_type: fields.take_string(&["media_type", "mediaType"])?,
                extra: fields.into_extra(),
            }),
            "input_file" => Self::InputFile(FilePart {
                file_data: fields.take_string(&["file_data", "fileData"])?,
                file_id: fields.take_string(&["file_id", "fileId"])?,
                file_url: fields.take_string(&["file_url", "fileUrl"])?,
                filename: fields.take_string(&["filename"])?,
                media_type: fields.take_string(&["media_type", "mediaType"])?,
                extra: fields.into_extra(),
            }),
            // Kept as the whole object and not by member, so that lowering to the same format gives back every
            // byte.
            _ => Self::Extension(ExtensionPart {
                kind,
                raw: Raw::parse(text)?,
            }),
        })
    }

    /// Reads an array of parts.
    pub fn parse_all(text: &str) -> Result<Vec<Self>, Error> {
        let parts: Vec<&RawValue> = serde_json::from_str(text)
            .map_err(|_| Error::unexpected_value("an array of parts", text))?;
        let read = |(index, part): (usize, &&RawValue)| {
            Self::parse(part.get()).map_err(|error| error.at_index(index))
        };
        parts.iter().enumerate().map(read).collect()
    }
}

impl TextPart {
    /// Text without other fields.
    #[must_use]
    pub fn new(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            extra: Extra::new(),
        }
    }

    fn from_fields(mut fields: Fields<'_>, name: &'static str) -> Result<Self, Error> {
        Ok(Self {
            text: fields.need_string(&[name])?,
            extra: fields.into_extra(),
        })
    }
}

impl Serialize for Part {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Written as it came. The typed path would put `type` first and lose the order of members.
        if let Self::Extension(part) = self {
            return part.raw.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind())?;
        match self {
            Self::Refusal(part) => map.serialize_entry("refusal", &part.text)?,
            Self::InputImage(part) => {
                write_entry(&mut map, "image_url", part.image_url.as_deref())?;
                write_entry(&mut map, "file_id", part.file_id.as_deref())?;
                write_entry(&mut map, "detail", part.detail.as_deref())?;
                write_entry(&mut map, "media_type", part.media_type.as_deref())?;
            }
            Self::InputFile(part) => {
                write_entry(&mut map, "file_data", part.file_data.as_deref())?;
                write_entry(&mut map, "file_id", part.file_id.as_deref())?;
                write_entry(&mut map, "file_url", part.file_url.as_deref())?;
                write_entry(&mut map, "filename", part.filename.as_deref())?;
                write_entry(&mut map, "media_type", part.media_type.as_deref())?;
            }
            _ => map.serialize_entry("text", self.as_text().unwrap_or_default())?,
        }
        // Last, so that known fields keep their places whatever an older version did not know.
        if let Some(extra) = self.extra() {
            extra.write_members(&mut map)?;
        }
        map.end()
    }
}

fn write_entry<M: SerializeMap>(
    map: &mut M,
    key: &str,
    value: Option<&str>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}
