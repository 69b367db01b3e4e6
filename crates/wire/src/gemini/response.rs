//! Responses: the first candidate is the answer, further ones are kept as they came.

use contexture_ir::{
    Error, Extra, Fields, FinishReason, Item, Raw, ResponseInfo, Transcript, Usage,
};
use serde_json::value::RawValue;

use super::ids::CallIdTracker;
use super::media::{nested_fields, store_nested};
use super::names::{SnakeCaseFields, peek_field, unexpected_value};
use super::spec::FORMAT;
use super::{encode, parse};
use crate::Lowered;
use crate::model::format_extras::{hint, report_foreign_fields_as, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::paired_items;

/// The key under which the answer's own unknown fields are stored.
const CANDIDATE: &str = "(candidate)";
/// The key under which further candidates are stored.
const OTHERS: &str = "(candidates)";

pub(super) fn lift_response(mut fields: Fields<'_>) -> Result<Transcript, Error> {
    let mut names = SnakeCaseFields::default();
    let mut kept = Extra::new();
    let mut info = ResponseInfo {
        id: names.take_string(&mut fields, "responseId")?,
        ..ResponseInfo::default()
    };
    let mut transcript = Transcript {
        model: names.take_string(&mut fields, "modelVersion")?,
        ..Transcript::default()
    };
    match names.take_field(&mut fields, "candidates")? {
        None => set_hint(&mut kept, "~candidates", "absent"),
        Some(list) => {
            let error = |error: Error| error.at_segment("candidates");
            let list: Vec<&RawValue> = serde_json::from_str(list.get())
                .map_err(|_| error(unexpected_value("an array", list.get())))?;
            match list.as_slice() {
                [] => set_hint(&mut kept, "~candidates", "empty"),
                [first, others @ ..] => {
                    transcript.items = parse_candidate(first, &mut info, &mut names, &mut kept)
                        .map_err(|e| error(e.at_index(0)))?;
                    // The items hold one answer; the alternatives are kept as they came.
                    if !others.is_empty() {
                        kept.set(OTHERS, Raw::from_value(&others)?);
                    }
                }
            }
        }
    }
    let blocked = peek_field(&fields, "promptFeedback").and_then(|feedback| {
        Some(peek_field(&Fields::parse(feedback.get()).ok()?, "blockReason").is_some())
    });
    // A blocked prompt has no candidate with a reason; clients act on the reason, so it is derived.
    if info.finish.is_none() && blocked == Some(true) {
        info.finish = Some(FinishReason::ContentFilter);
        set_hint(&mut kept, "~finishReason", "absent");
    }
    if let Some(value) = names.take_field(&mut fields, "usageMetadata")? {
        info.usage = Some(parse_usage(value).map_err(|error| error.at_segment("usageMetadata"))?);
    }
    names.save_to(&mut kept);
    kept.extend(to_extras(fields.into_extra()));
    transcript.response = Some(info);
    transcript.extra.set_wire_fields(FORMAT, kept);
    Ok(transcript)
}

fn parse_candidate(
    value: &RawValue,
    info: &mut ResponseInfo,
    names: &mut SnakeCaseFields,
    kept: &mut Extra,
) -> Result<Vec<Item>, Error> {
    let mut fields = Fields::parse(value.get())?;
    let mut items = Vec::new();
    match fields.take_present(&["content"])? {
        None => set_hint(kept, "~content", "absent"),
        Some(content) => {
            let mut ids = CallIdTracker::for_response(info.id.as_deref());
            items = parse::parse_candidate_content(content, &mut ids)
                .map_err(|error| error.at_segment("content"))?;
        }
    }
    if let Some(word) = names.take_string(&mut fields, "finishReason")? {
        let calls = items
            .iter()
            .any(|item| matches!(item, Item::FunctionCall(_)));
        let finish = parse_finish_reason(&word, calls);
        // Kept only where the word could not be found again from the reason.
        if finish_reason_word(&finish) != Some(word.as_str()) {
            set_hint(kept, "~finishReason", &word);
        }
        info.finish = Some(finish);
    }
    store_nested(kept, CANDIDATE, fields)?;
    Ok(items)
}

/// The reason in our words; the provider says `STOP` where the model wants functions run.
pub(super) fn parse_finish_reason(word: &str, calls: bool) -> FinishReason {
    match word {
        // The provider says `STOP` for calls as well.
        "STOP" if calls => FinishReason::ToolCalls,
        "STOP" => FinishReason::Stop,
        "MAX_TOKENS" => FinishReason::Length,
        "SAFETY"
        | "RECITATION"
        | "BLOCKLIST"
        | "PROHIBITED_CONTENT"
        | "SPII"
        | "IMAGE_SAFETY"
        | "IMAGE_PROHIBITED_CONTENT"
        | "IMAGE_RECITATION"
        | "MODEL_ARMOR" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// The provider's word; `None` for another format's, which are in small letters.
fn finish_reason_word(finish: &FinishReason) -> Option<&str> {
    match finish {
        FinishReason::Stop | FinishReason::ToolCalls => Some("STOP"),
        FinishReason::Length => Some("MAX_TOKENS"),
        FinishReason::ContentFilter => Some("SAFETY"),
        FinishReason::Other(_) => None,
    }
}

pub(super) fn parse_usage(value: &RawValue) -> Result<Usage, Error> {
    let mut fields = Fields::parse(value.get())?;
    // Read twice: counts are taken out of one copy, the other is kept whole.
    let kept = Fields::parse(value.get())?.into_extra();
    let mut names = SnakeCaseFields::default();
    let mut count = |name| names.take_as::<u64>(&mut fields, name, "a whole number");
    let prompt = count("promptTokenCount")?;
    let tools = count("toolUsePromptTokenCount")?;
    let answer = count("candidatesTokenCount")?;
    let reasoning_tokens = count("thoughtsTokenCount")?;
    // The provider counts these apart; our two figures include tools and thoughts.
    let mut usage = Usage {
        input_tokens: sum_counts(prompt, tools),
        output_tokens: sum_counts(answer, reasoning_tokens),
        total_tokens: count("totalTokenCount")?,
        cache_read_tokens: count("cachedContentTokenCount")?,
        cache_write_tokens: None,
        reasoning_tokens,
        extra: Extra::new(),
    };
    usage.extra.set_wire_fields(FORMAT, kept);
    Ok(usage)
}

fn sum_counts(a: Option<u64>, b: Option<u64>) -> Option<u64> {
    match (a, b) {
        (None, None) => None,
        _ => Some(a.unwrap_or(0).saturating_add(b.unwrap_or(0))),
    }
}

pub(super) fn lower_response(transcript: &Transcript) -> Lowered {
    let kept = transcript.extra.wire_fields(FORMAT);
    let names = SnakeCaseFields::from_wire(&kept);
    let none = ResponseInfo::default();
    let info = transcript.response.as_ref().unwrap_or(&none);
    let mut losses = Losses::default();
    report_foreign_fields_as(&transcript.extra, FORMAT, "", LossKind::Field, &mut losses);

    let mut object = ObjectWriter::new();
    // Holds only while there are no items; some may have been added since.
    let absent = hint(&kept, "~candidates").filter(|_| transcript.items.is_empty());
    match absent.as_deref() {
        Some("absent") => {}
        Some(_) => {
            object.raw("candidates", "[]");
        }
        None => {
            let first = encode_candidate(transcript, info, &names, &kept, &mut losses);
            let others: Vec<Raw> = kept
                .get(OTHERS)
                .and_then(|raw| raw.parse_as().ok())
                .unwrap_or_default();
            let all = std::iter::once(first).chain(others.iter().map(|raw| raw.get().to_owned()));
            object.array("candidates", all);
        }
    }
    if let Some(usage) = &info.usage {
        let json = encode_usage(usage, &mut losses);
        object.raw_as("usageMetadata", &names.spelled_name("usageMetadata"), &json);
    }
    if let Some(model) = &transcript.model {
        let json = contexture_ir::quote_json(model);
        object.raw_as("modelVersion", &names.spelled_name("modelVersion"), &json);
    }
    if let Some(id) = &info.id {
        let json = contexture_ir::quote_json(id);
        object.raw_as("responseId", &names.spelled_name("responseId"), &json);
    }
    let mut rest = kept;
    rest.remove(CANDIDATE);
    rest.remove(OTHERS);
    object.extra_fields(&rest);
    Lowered {
        json: object.finish(),
        losses: losses.into_vec(),
    }
}

fn encode_candidate(
    transcript: &Transcript,
    info: &ResponseInfo,
    names: &SnakeCaseFields,
    kept: &Extra,
    losses: &mut Losses,
) -> String {
    let (content, inner) =
        encode::encode_candidate_content(paired_items(&transcript.items).into_iter());
    losses.extend_with_prefix("items", inner);
    let bare = kept.get("~content").is_some() && transcript.items.is_empty();
    let empty = "{\"role\":\"model\",\"parts\":[]}".to_owned();
    let mut object = ObjectWriter::new();
    if !bare {
        object.raw("content", &content.unwrap_or(empty));
    }
    if let Some(word) = encode_finish_reason(info, kept, &transcript.items, losses) {
        let json = contexture_ir::quote_json(&word);
        object.raw_as("finishReason", &names.spelled_name("finishReason"), &json);
    }
    object.extra_fields(&nested_fields(kept, CANDIDATE));
    object.finish()
}

fn encode_finish_reason(
    info: &ResponseInfo,
    kept: &Extra,
    items: &[Item],
    losses: &mut Losses,
) -> Option<String> {
    let finish = info.finish.as_ref()?;
    let calls = items
        .iter()
        .any(|item| matches!(item, Item::FunctionCall(_)));
    let own = hint(kept, "~finishReason");
    if let Some(word) = own.filter(|word| parse_finish_reason(word, calls) == *finish) {
        return Some(word);
    }
    if let Some(word) = finish_reason_word(finish) {
        return Some(word.to_owned());
    }
    losses.push(
        "response.finish",
        LossKind::Value,
        "an unknown reason becomes OTHER",
    );
    Some("OTHER".to_owned())
}

fn encode_usage(usage: &Usage, losses: &mut Losses) -> String {
    if usage
        .extra
        .wire_fields_by_format()
        .iter()
        .any(|(format, _)| format != FORMAT)
    {
        let why = "the counts are kept, the provider's own account of them is not";
        losses.push("response.usage", LossKind::Field, why);
    }
    let mut object = ObjectWriter::new();
    let own = usage.extra.wire_fields(FORMAT);
    if !own.is_empty() {
        object.extra_fields(&to_extras(own));
        return object.finish();
    }
    let thoughts = usage.reasoning_tokens;
    // Thoughts are counted apart from the answer here.
    let answer = usage
        .output_tokens
        .map(|all| all.saturating_sub(thoughts.unwrap_or(0)));
    let mut add = |key: &'static str, count: Option<u64>| {
        object.value_if_some(key, count);
    };
    add("promptTokenCount", usage.input_tokens);
    add("cachedContentTokenCount", usage.cache_read_tokens);
    add("candidatesTokenCount", answer);
    add("thoughtsTokenCount", thoughts);
    add(
        "totalTokenCount",
        usage
            .total_tokens
            .or_else(|| sum_counts(usage.input_tokens, usage.output_tokens)),
    );
    object.finish()
}
