//! Text parts ↔ text in a message item.
//!
//! `state` is the message's status, OpenAI's `itemId` the message's id; a refusal, which the SDK has
//! no part for, is text marked in our own provider metadata. Whatever else a part carries stays
//! beside the text.

use contexture_ir::{Extra, Part, Raw, Role, Status, TextPart};
use serde::Serialize;

use super::check::{Checked, decode};
use super::hints::part_hints;
use super::metadata::{Metadata, OPENAI, OWN, alias, note_alias};

/// A text part, read.
pub(super) struct LiftedText {
    pub(super) part: Part,
    pub(super) status: Option<Status>,
    pub(super) id: Option<String>,
}

/// The status that a `state` means.
pub(super) fn status_of(state: Option<&str>) -> Option<Status> {
    match state {
        Some("\"streaming\"") => Some(Status::InProgress),
        Some("\"done\"") => Some(Status::Completed),
        _ => None,
    }
}

/// The `state` that a status means.
pub(super) fn state_of(status: Option<Status>) -> Option<&'static str> {
    match status {
        Some(Status::InProgress) => Some("streaming"),
        Some(Status::Completed) => Some("done"),
        Some(Status::Incomplete | Status::Failed) | None => None,
    }
}

pub(super) fn lift(checked: &Checked<'_>, role: Role) -> LiftedText {
    let (mut hints, mut extra) = (Extra::new(), Extra::new());
    let (mut id, mut refusal) = (None, false);
    if let Some(raw) = checked.get("providerMetadata") {
        match Metadata::read(raw.get()) {
            Some(mut metadata) => {
                if role == Role::Assistant
                    && let Some((name, text)) = metadata.take_string(OPENAI, "itemId")
                {
                    note_alias(&mut hints, OPENAI, name);
                    id = Some(text);
                }
                if metadata
                    .find(OWN, "refusal")
                    .is_some_and(|raw| raw.get() == "true")
                {
                    refusal = true;
                    metadata.remove(OWN, "refusal");
                }
                metadata.unlink(&mut hints, &mut extra);
                if let Some(rest) = metadata.rest() {
                    hints.set("providerMetadata", rest);
                }
            }
            None => hints.set("providerMetadata", raw.to_raw()),
        }
    }
    if let Some(citations) = checked.get("citations") {
        hints.set("citations", citations.to_raw());
    }
    extra.set_wire("ui", hints);
    let (text, _) = decode(checked.get("text").map_or("\"\"", |raw| raw.get()));
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
        status: status_of(checked.get("state").map(|raw| raw.get())),
        id,
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Text<'a> {
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
pub(super) fn fold(
    part: &TextPart,
    status: Option<Status>,
    id: Option<&str>,
    refusal: Refusal,
) -> Raw {
    let hints = part_hints(&part.extra);
    let mut metadata = match hints.get("providerMetadata") {
        Some(raw) => match Metadata::read(raw.get()) {
            Some(metadata) => metadata,
            // Kept whole because its keys repeat.
            None => return write(part, &hints, status, Some(raw.clone())),
        },
        None => Metadata::default(),
    };
    if let Some(id) = id {
        metadata.put_string(alias(&hints, OPENAI), "itemId", id);
    }
    if matches!(refusal, Refusal::Yes)
        && let Ok(yes) = Raw::parse("true")
    {
        metadata.put(OWN, "refusal", yes);
    }
    metadata.link(&hints, &part.extra);
    write(part, &hints, status, metadata.joined())
}

/// Whether a text is a refusal.
#[derive(Clone, Copy)]
pub(super) enum Refusal {
    Yes,
    No,
}

fn write(part: &TextPart, hints: &Extra, status: Option<Status>, metadata: Option<Raw>) -> Raw {
    let text = Text {
        r#type: "text",
        text: &part.text,
        citations: hints.get("citations"),
        state: state_of(status),
        provider_metadata: metadata,
    };
    Raw::from_value(&text).unwrap_or_else(|_| Raw::null())
}

/// The sources a model's text names in its annotations, as parts of their own; none for a text that
/// came from a UI message, whose sources stand beside it already.
pub(super) fn sources(part: &TextPart, first: usize) -> Vec<Raw> {
    let Some(annotations) = part.extra.get("annotations") else {
        return Vec::new();
    };
    let list: Vec<&serde_json::value::RawValue> = annotations.to().unwrap_or_default();
    let mut out = Vec::new();
    for annotation in list {
        out.extend(source(annotation.get(), first + out.len()));
    }
    out
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Source<'a> {
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

fn source(annotation: &str, number: usize) -> Option<Raw> {
    let fields = contexture_ir::Fields::parse(annotation).ok()?;
    let text = |name: &str| {
        let raw = fields.get(&[name])?;
        raw.get()
            .starts_with('"')
            .then(|| decode(raw.get()).0.into_owned())
    };
    let source_id = format!("source-{number}");
    let source = match text("type")?.as_str() {
        "url_citation" => Source {
            r#type: "source-url",
            source_id,
            url: Some(text("url")?),
            media_type: None,
            title: text("title"),
            filename: None,
        },
        "file_citation" | "container_file_citation" => {
            let filename = text("filename");
            Source {
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
