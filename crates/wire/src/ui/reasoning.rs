//! Reasoning parts ↔ reasoning items.
//!
//! Opaque fields move between provider metadata and the item, so that the provider's own format finds
//! them: OpenAI's `itemId` and `reasoningEncryptedContent`, Anthropic's `signature` and
//! `redactedData`, Google's `thoughtSignature`. OpenAI's parts of one `itemId` are the summaries of
//! one item; the encrypted content stands on the last of them unless hinted otherwise.

use contexture_ir::{Extra, Part, Raw, Reasoning, TextPart};
use serde::Serialize;

use super::metadata::{
    ANTHROPIC, GOOGLE, OPENAI, OWN, ProviderMetadata, provider_alias, record_alias,
};
use super::text::{state_from_status, status_from_state};
use super::ui_only_fields::{as_flag, part_hints};
use super::unknown_fields::{UnknownFields, restore_noted};
use super::validate_part::{CheckedPart, decode_string};

pub(super) const OPENAI_FORMAT: &str = "openai-responses-v1";
pub(super) const ANTHROPIC_FORMAT: &str = "anthropic-claude-v1";
pub(super) const GOOGLE_FORMAT: &str = "google-gemini-v1";

/// Hint: whether the encrypted content stands on this part.
const SEALED: &str = "~sealed";

/// A reasoning part, read; or several of one OpenAI item.
#[derive(Debug, Default)]
pub(super) struct LiftedReasoning {
    item: Reasoning,
    parts: Vec<ReasoningPiece>,
}

#[derive(Debug)]
struct ReasoningPiece {
    text: String,
    hints: Extra,
    sealed: bool,
}

/// Reads a part; `hints` are those that it has already.
pub(super) fn lift_reasoning(checked: &CheckedPart<'_>, mut hints: Extra) -> LiftedReasoning {
    let mut item = Reasoning {
        status: status_from_state(checked.get("state").map(|raw| raw.get())),
        ..Reasoning::default()
    };
    if let Some(raw) = checked.get("providerMetadata") {
        match ProviderMetadata::parse(raw.get()) {
            Some(mut metadata) => {
                take_opaque_fields(&mut item, &mut metadata, &mut hints);
                if let Some(rest) = metadata.remaining_json() {
                    hints.set("providerMetadata", rest);
                }
            }
            None => hints.set("providerMetadata", raw.to_raw()),
        }
    }
    if let Some(id) = checked.get("id") {
        hints.set("id", id.to_raw());
    }
    let (text, _) = decode_string(checked.get("text").map_or("\"\"", |raw| raw.get()));
    let piece = ReasoningPiece {
        text: text.into_owned(),
        hints,
        sealed: item.encrypted_content.is_some(),
    };
    LiftedReasoning {
        item,
        parts: vec![piece],
    }
}

fn take_opaque_fields(item: &mut Reasoning, metadata: &mut ProviderMetadata, hints: &mut Extra) {
    if let Some((name, id)) = metadata.take_string(OPENAI, "itemId") {
        record_alias(hints, OPENAI, name);
        item.id = Some(id);
        item.format = Some(OPENAI_FORMAT.to_owned());
        let sealed = metadata.take_string(&[name], "reasoningEncryptedContent");
        item.encrypted_content = sealed.map(|(_, text)| text);
        item.signature = take_own_string(metadata, "signature");
        return;
    }
    let signature = metadata.take_string(ANTHROPIC, "signature");
    let redacted = metadata.take_string(ANTHROPIC, "redactedData");
    if signature.is_some() || redacted.is_some() {
        item.format = Some(ANTHROPIC_FORMAT.to_owned());
        item.signature = signature.map(|(_, text)| text);
        item.encrypted_content = redacted.map(|(_, text)| text);
        item.id = take_own_string(metadata, "id");
    } else if let Some((name, signature)) = metadata.take_string(GOOGLE, "thoughtSignature") {
        record_alias(hints, GOOGLE, name);
        item.format = Some(GOOGLE_FORMAT.to_owned());
        item.signature = Some(signature);
        item.encrypted_content = take_own_string(metadata, "encryptedContent");
        item.id = take_own_string(metadata, "id");
    } else {
        take_own_fields(item, metadata);
    }
}

/// What we wrote for reasoning of no provider above.
fn take_own_fields(item: &mut Reasoning, metadata: &mut ProviderMetadata) {
    let format = metadata.get_value(OWN, "format").and_then(Raw::as_string);
    let known = [OPENAI_FORMAT, ANTHROPIC_FORMAT, GOOGLE_FORMAT];
    if format.is_some_and(|format| !known.contains(&format.as_str())) {
        item.format = take_own_string(metadata, "format");
        item.id = take_own_string(metadata, "id");
    }
    item.encrypted_content = take_own_string(metadata, "encryptedContent");
    item.signature = take_own_string(metadata, "signature");
}

fn take_own_string(metadata: &mut ProviderMetadata, key: &str) -> Option<String> {
    metadata.take_string(&[OWN], key).map(|(_, text)| text)
}

impl LiftedReasoning {
    /// Adds a part of the same OpenAI item; gives it back if it is another's.
    pub(super) fn try_join(&mut self, mut next: Self) -> Option<Self> {
        let openai = self.item.format.as_deref() == Some(OPENAI_FORMAT);
        let same = openai
            && self.item.id.is_some()
            && self.item.id == next.item.id
            && self.item.status == next.item.status
            && next.item.format == self.item.format
            && self.item.signature.is_none()
            && next.item.signature.is_none();
        let sealed = (&self.item.encrypted_content, &next.item.encrypted_content);
        if !same || matches!(sealed, (Some(one), Some(other)) if one != other) {
            return Some(next);
        }
        if next.item.encrypted_content.is_some() {
            self.item.encrypted_content = next.item.encrypted_content.take();
        }
        self.parts.append(&mut next.parts);
        None
    }

    /// The item; `step` is its hint about the step that begins with it.
    pub(super) fn finish(self, step: Extra) -> Reasoning {
        let Self { mut item, parts } = self;
        let openai = item.format.as_deref() == Some(OPENAI_FORMAT);
        let last = parts.len().saturating_sub(1);
        let any_sealed = item.encrypted_content.is_some();
        let mut item_hints = step;
        let bare = parts.len() == 1
            && parts.iter().all(|piece| piece.text.is_empty())
            && (openai || item.signature.is_none());
        let mut texts = Vec::with_capacity(parts.len());
        for (index, mut piece) in parts.into_iter().enumerate() {
            if any_sealed && openai && piece.sealed != (index == last) {
                let flag = Raw::parse(piece.sealed.to_string());
                piece
                    .hints
                    .set(SEALED, flag.unwrap_or_else(|_| Raw::null()));
            }
            if bare {
                item_hints.extend(piece.hints);
                continue;
            }
            let mut extra = Extra::new();
            extra.set_wire_fields("ui", piece.hints);
            texts.push(TextPart {
                text: piece.text,
                extra,
            });
        }
        if openai {
            item.summary = texts.into_iter().map(Part::SummaryText).collect();
        } else if !bare {
            item.content = Some(texts.into_iter().map(Part::ReasoningText).collect());
        }
        item.extra.set_wire_fields("ui", item_hints);
        item
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ReasoningPartJson<'a> {
    r#type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    id: Option<&'a Raw>,
    text: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    provider_metadata: Option<Raw>,
}

/// The thoughts that are shown: the content where there is any, else the summary.
pub(super) fn visible_parts(item: &Reasoning) -> &[Part] {
    match item.content.as_deref() {
        Some(content) if !content.is_empty() => content,
        _ => &item.summary,
    }
}

/// A reasoning item as parts, at least one.
pub(super) fn fold_reasoning(item: &Reasoning, hints: &Extra, unknown: UnknownFields) -> Vec<Raw> {
    let parts = visible_parts(item);
    let last = parts.len().saturating_sub(1);
    let texts = parts.iter().enumerate().filter_map(|(index, part)| {
        let hints = part_hints(part.extra()?);
        let folded = reasoning_part(item, part.as_text()?, &hints, index == last);
        Some(restore_noted(folded, &hints, unknown))
    });
    let mut out: Vec<Raw> = texts.collect();
    if out.is_empty() {
        let folded = reasoning_part(item, "", hints, true);
        out.push(restore_noted(folded, hints, unknown));
    }
    out
}

fn reasoning_part(item: &Reasoning, text: &str, hints: &Extra, last: bool) -> Raw {
    let kept = hints.get("providerMetadata");
    let metadata = match kept.map(|raw| ProviderMetadata::parse(raw.get())) {
        Some(None) => kept.cloned(),
        read => {
            let mut metadata = read.flatten().unwrap_or_default();
            set_opaque_fields(item, &mut metadata, hints, last);
            metadata.remaining_json()
        }
    };
    let part = ReasoningPartJson {
        r#type: "reasoning",
        id: hints.get("id"),
        text,
        state: state_from_status(item.status),
        provider_metadata: metadata,
    };
    Raw::from_value(&part).unwrap_or_else(|_| Raw::null())
}

fn set_opaque_fields(item: &Reasoning, metadata: &mut ProviderMetadata, hints: &Extra, last: bool) {
    let id = item.id.as_deref();
    let signature = item.signature.as_deref();
    let encrypted = item.encrypted_content.as_deref();
    let mut put = |name: &str, key: &str, value: Option<&str>| {
        if let Some(value) = value {
            metadata.set_string(name, key, value);
        }
    };
    match item.format.as_deref() {
        // Only OpenAI's reasoning has ids, also where nobody noted the format.
        Some(OPENAI_FORMAT) | None if id.is_some() => {
            let name = provider_alias(hints, OPENAI);
            let sealed = hints.get(SEALED).and_then(as_flag).unwrap_or(last);
            put(name, "itemId", id);
            put(
                name,
                "reasoningEncryptedContent",
                encrypted.filter(|_| sealed),
            );
            put(OWN, "signature", signature);
        }
        Some(ANTHROPIC_FORMAT) => {
            if last {
                put("anthropic", "signature", signature);
                put("anthropic", "redactedData", encrypted);
                put(OWN, "id", id);
            }
        }
        Some(GOOGLE_FORMAT) => {
            if last {
                put(provider_alias(hints, GOOGLE), "thoughtSignature", signature);
                put(OWN, "encryptedContent", encrypted);
                put(OWN, "id", id);
            }
        }
        format => {
            if last {
                put(OWN, "id", id);
                put(OWN, "encryptedContent", encrypted);
                put(OWN, "signature", signature);
                put(OWN, "format", format);
            }
        }
    }
}
