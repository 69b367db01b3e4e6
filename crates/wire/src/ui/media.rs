//! File parts ↔ pictures and files in a message item.
//!
//! A media type is kept only where the URL does not already say it. A file known by a provider's id
//! is a `providerReference`; a picture's detail is OpenAI's `imageDetail`.

use contexture_ir::{Extra, Fields, FilePart, ImagePart, Part, Raw};
use serde::Serialize;

use super::metadata::{OPENAI, ProviderMetadata, provider_alias, record_alias};
use super::ui_only_fields::part_hints;
use super::validate_part::{CheckedPart, decode_string};
use crate::model::media::DataUrl;

const ANY_IMAGE: &str = "image/*";
const ANY_FILE: &str = "application/octet-stream";

pub(super) fn lift_file(checked: &CheckedPart<'_>) -> Part {
    let text = |name: &str| Some(decode_string(checked.get(name)?.get()).0.into_owned());
    let url = text("url").unwrap_or_default();
    let media_type = text("mediaType").unwrap_or_default();
    let image = media_type.starts_with("image/");
    let mut hints = Extra::new();
    let mut extra = Extra::new();
    let detail = lift_file_metadata(checked, image, &mut hints, &mut extra);
    let file_id = checked
        .get("providerReference")
        .and_then(|raw| lift_reference(raw.get(), &mut hints));
    let filename = text("filename");
    let media_type = (media_type != implied_media_type(&url, image)).then_some(media_type);
    let keep = |mut extra: Extra, hints| {
        extra.set_wire_fields("ui", hints);
        extra
    };
    let url = (!url.is_empty()).then_some(url);
    if image {
        if let Some(filename) = &filename {
            hints.set("filename", Raw::string(filename));
        }
        return Part::InputImage(ImagePart {
            image_url: url,
            file_id,
            detail,
            media_type,
            extra: keep(extra, hints),
        });
    }
    let (file_data, file_url) = match url {
        Some(url) if url.starts_with("data:") => (Some(url), None),
        other => (None, other),
    };
    Part::InputFile(FilePart {
        file_data,
        file_id,
        file_url,
        filename,
        media_type,
        extra: keep(extra, hints),
    })
}

/// Reads the provider's metadata of a file and returns the detail of an image.
fn lift_file_metadata(
    checked: &CheckedPart<'_>,
    image: bool,
    hints: &mut Extra,
    extra: &mut Extra,
) -> Option<String> {
    let raw = checked.get("providerMetadata")?;
    // Metadata that is no object of objects is kept as it came.
    let Some(mut metadata) = ProviderMetadata::parse(raw.get()) else {
        hints.set("providerMetadata", raw.to_raw());
        return None;
    };
    let mut detail = None;
    if image && let Some((name, word)) = metadata.take_string(OPENAI, "imageDetail") {
        record_alias(hints, OPENAI, name);
        detail = Some(word);
    }
    metadata.extract_linked_fields(hints, extra);
    if let Some(rest) = metadata.remaining_json() {
        hints.set("providerMetadata", rest);
    }
    detail
}

/// The media type a URL has when none is stated.
fn implied_media_type(url: &str, image: bool) -> &str {
    let general = if image { ANY_IMAGE } else { ANY_FILE };
    match DataUrl::parse(url) {
        Some(data)
            if !data.media_type.is_empty() && image == data.media_type.starts_with("image/") =>
        {
            data.media_type
        }
        _ => general,
    }
}

/// Reads a reference to files: one provider's file is a file id; several are stored as they are.
fn lift_reference(raw: &str, hints: &mut Extra) -> Option<String> {
    let fields = Fields::parse(raw).ok()?;
    let mut members = fields.iter();
    if let (Some((provider, id)), None) = (members.next(), members.next()) {
        record_provider(hints, provider);
        return Some(decode_string(id.get()).0.into_owned());
    }
    hints.set("providerReference", Raw::parse(raw).ok()?);
    None
}

fn record_provider(hints: &mut Extra, provider: &str) {
    if OPENAI.first() != Some(&provider) {
        hints.set("~reference", Raw::string(provider));
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct FilePartJson<'a> {
    r#type: &'static str,
    media_type: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<Raw>,
    url: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_reference: Option<Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_metadata: Option<Raw>,
}

/// A picture of a message as a part.
pub(super) fn fold_image(part: &ImagePart) -> Raw {
    let hints = part_hints(&part.extra);
    let url = part.image_url.as_deref().unwrap_or_default();
    let media_type = part.media_type.as_deref();
    file_part(&FilePartJson {
        r#type: "file",
        media_type: media_type.unwrap_or_else(|| implied_media_type(url, true)),
        filename: hints.get("filename").cloned(),
        url,
        provider_reference: provider_reference(part.file_id.as_deref(), &hints),
        provider_metadata: provider_metadata(part.detail.as_deref(), &hints, &part.extra),
    })
}

/// A file of a message as a part.
pub(super) fn fold_file(part: &FilePart) -> Raw {
    let hints = part_hints(&part.extra);
    let media_type = part.media_type.as_deref();
    let built;
    let url = match (part.file_data.as_deref(), part.file_url.as_deref()) {
        (Some(data), _) if data.starts_with("data:") => data,
        // Some hosts take bare base64.
        (Some(data), _) => {
            built = DataUrl::build(media_type.unwrap_or(ANY_FILE), data);
            &built
        }
        (None, url) => url.unwrap_or_default(),
    };
    file_part(&FilePartJson {
        r#type: "file",
        media_type: media_type.unwrap_or_else(|| implied_media_type(url, false)),
        filename: part.filename.as_deref().map(Raw::string),
        url,
        provider_reference: provider_reference(part.file_id.as_deref(), &hints),
        provider_metadata: provider_metadata(None, &hints, &part.extra),
    })
}

fn file_part(file: &FilePartJson<'_>) -> Raw {
    Raw::from_value(file).unwrap_or_else(|_| Raw::null())
}

fn provider_reference(file_id: Option<&str>, hints: &Extra) -> Option<Raw> {
    let Some(id) = file_id else {
        return hints.get("providerReference").cloned();
    };
    let noted = hints.get("~reference").and_then(Raw::as_string);
    let provider = noted
        .as_deref()
        .or(OPENAI.first().copied())
        .unwrap_or_default();
    let (provider, id) = (
        contexture_ir::quote_json(provider),
        contexture_ir::quote_json(id),
    );
    Raw::parse(format!("{{{provider}:{id}}}")).ok()
}

fn provider_metadata(detail: Option<&str>, hints: &Extra, extra: &Extra) -> Option<Raw> {
    let kept = hints.get("providerMetadata");
    let mut metadata = match kept {
        Some(raw) => match ProviderMetadata::parse(raw.get()) {
            Some(metadata) => metadata,
            None => return kept.cloned(),
        },
        None => ProviderMetadata::default(),
    };
    if let Some(detail) = detail {
        metadata.set_string(provider_alias(hints, OPENAI), "imageDetail", detail);
    }
    metadata.insert_linked_fields(hints, extra);
    metadata.remaining_json()
}
