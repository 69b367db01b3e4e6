//! Text parts ↔ text in a message item.
//!
//! `state` is the message's status, OpenAI's `itemId` the message's id; a refusal, which the SDK has
//! no part for, is text marked in our own provider metadata. Whatever else a part carries stays
//! beside the text.

use contexture_ir::{Extra, Part, Raw, Role, Status, TextPart};
use serde::Serialize;

use super::metadata::{OPENAI, OWN, ProviderMetadata, provider_alias, record_alias};
use super::ui_only_fields::part_hints;
use super::validate_part::{CheckedPart, decode_string};

/// A text part, read.
pub(super) struct LiftedText {
    pub(super) part: Part,
    pub(super) status: Option<Status>,
    pub(super) id: Option<String>,
}

/// The status that a `state` means.
pub(super) fn status_from_state(state: Option<&str>) -> Option<Status> {
    match state {
        Some("\"streaming\"") => Some(Status::InProgress),
        Some("\"done\"") => Some(Status::Completed),
        _ => None,
    }
}

/// The `state` that a status means.
pub(super) fn state_from_status(status: Option<Status>) -> Option<&'static str> {
    match status {
        Some(Status::InProgress) => Some("streaming"),
        Some(Status::Completed) => Some("done"),
        Some(Status::Incomplete | Status::Failed) | None => None,
    }
}

pub(super) fn lift_text(checked: &CheckedPart<'_>, role: Role) -> LiftedText {
    let (mut hints, mut extra) = (Extra::new(), Extra::new());
    let (mut id, mut refusal) = (None, false);
    if let Some(raw) = checked.get("providerMetadata") {
        match ProviderMetadata::parse(raw.get()) {
            Some(mut metadata) => {
                if role == Role::Assistant
                    && let Some((name, text)) = metadata.take_string(OPENAI, "itemId")
                {
                    record_alias(&mut hints, OPENAI, name);
                    id = Some(text);
                }
                if metadata
                    .get_value(OWN, "refusal")
                    .is_some_and(|raw| raw.get() == "true")
                {
                    refusal = true;
                    metadata.remove(OWN, "refusal");
                }
                metadata.extract_linked_fields(&mut hints, &mut extra);
                if let Some(rest) = metadata.remaining_json() {
                    hints.set("providerMetadata", rest);
                }
            }
            None => hints.set("providerMetadata", raw.to_raw()),
        }
    }
    if let Some(citations) = checked.get("citations") {
        hints.set("citations", citations.to_raw());
    }
    extra.set_wire_fields("ui", hints);
    let (text, _) = decode_string(checked.get("text").map_or("\"\"", |raw| raw.get()));
    let text = TextPart {
        text: text.into_owned(),
        extra,
    };
    LiftedText {
        part: match (refusal, role) {
            (true, _) => Part::Refusal(text),
            (false, Role::Assistant) => Part::OutputText(text),
            (false, _) => Part::InputText(text),
        },
        status: status_from_state(checked.get("state").map(|raw| raw.get())),
        id,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct TextPartJson<'a> {
    r#type: &'static str,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    citations: Option<&'a Raw>,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_metadata: Option<Raw>,
}

/// A text of a message as a part.
pub(super) fn fold_text(
    part: &TextPart,
    status: Option<Status>,
    id: Option<&str>,
    refusal: IsRefusal,
) -> Raw {
    let hints = part_hints(&part.extra);
    let mut metadata = match hints.get("providerMetadata") {
        Some(raw) => match ProviderMetadata::parse(raw.get()) {
            Some(metadata) => metadata,
            // Kept whole because its keys repeat.
            None => return text_part(part, &hints, status, Some(raw.clone())),
        },
        None => ProviderMetadata::default(),
    };
    if let Some(id) = id {
        metadata.set_string(provider_alias(&hints, OPENAI), "itemId", id);
    }
    if matches!(refusal, IsRefusal::Yes)
        && let Ok(yes) = Raw::parse("true")
    {
        metadata.set_value(OWN, "refusal", yes);
    }
    metadata.insert_linked_fields(&hints, &part.extra);
    text_part(part, &hints, status, metadata.remaining_json())
}

/// Whether a text is a refusal.
#[derive(Clone, Copy)]
pub(super) enum IsRefusal {
    Yes,
    No,
}

fn text_part(part: &TextPart, hints: &Extra, status: Option<Status>, metadata: Option<Raw>) -> Raw {
    let text = TextPartJson {
        r#type: "text",
        text: &part.text,
        citations: hints.get("citations"),
        state: state_from_status(status),
        provider_metadata: metadata,
    };
    Raw::from_value(&text).unwrap_or_else(|_| Raw::null())
}

/// The sources a model's text names in its annotations, as parts of their own; none for a text that
/// came from a UI message, whose sources stand beside it already.
pub(super) fn source_parts(part: &TextPart, first: usize) -> Vec<Raw> {
    let Some(annotations) = part.extra.get("annotations") else {
        return Vec::new();
    };
    let list: Vec<&serde_json::value::RawValue> = annotations.parse_as().unwrap_or_default();
    let mut out = Vec::new();
    for annotation in list {
        out.extend(source_part(annotation.get(), first + out.len()));
    }
    out
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct SourcePartJson<'a> {
    r#type: &'static str,
    source_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    url: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    media_type: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    title: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    filename: Option<String>,
}

fn source_part(annotation: &str, number: usize) -> Option<Raw> {
    let fields = contexture_ir::Fields::parse(annotation).ok()?;
    let text = |name: &str| {
        let raw = fields.get(&[name])?;
        raw.get()
            .starts_with('"')
            .then(|| decode_string(raw.get()).0.into_owned())
    };
    let source_id = format!("source-{number}");
    let source = match text("type")?.as_str() {
        "url_citation" => SourcePartJson {
            r#type: "source-url",
            source_id,
            url: Some(text("url")?),
            media_type: None,
            title: text("title"),
            filename: None,
        },
        "file_citation" | "container_file_citation" => {
            let filename = text("filename");
            SourcePartJson {
                r#type: "source-document",
                source_id: text("file_id").unwrap_or(source_id),
                url: None,
                media_type: Some("text/plain"),
                title: Some(
                    filename
                        .clone()
                        .or_else(|| text("file_id"))
                        .unwrap_or_default(),
                ),
                filename,
            }
        }
        _ => return None,
    };
    Raw::from_value(&source).ok()
}
