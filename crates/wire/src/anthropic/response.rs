//! Responses.
//!
//! What a response must have and its source had not is made from the rest of it: an id from a hash of
//! the content, counts of zero.

use contexture_ir::{
    Error, Extra, Fields, FinishReason, Item, Raw, ResponseInfo, Transcript, Usage,
};
use serde_json::value::RawValue;

use super::spec::FORMAT;
use super::{encode, parse};
use crate::Lowered;
use crate::model::format_extras::{report_foreign_fields_as, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::paired_items;

pub(super) fn lift_response(mut fields: Fields<'_>) -> Result<Transcript, Error> {
    let mut transcript = Transcript {
        model: fields.take_string(&["model"])?,
        ..Transcript::default()
    };
    let mut stored = Extra::new();
    let mut info = ResponseInfo {
        id: fields.take_string(&["id"])?,
        ..ResponseInfo::default()
    };
    if fields.take_field(&["type"])?.is_none() {
        set_hint(&mut stored, "~type", "absent");
    }
    // Always `assistant`, so it is written without being stored.
    fields.take_field(&["role"])?;
    if let Some(content) = fields.take_field(&["content"])? {
        transcript.items =
            parse::parse_response_content(content).map_err(|error| error.at_segment("content"))?;
    }
    if let Some(word) = fields.take_string(&["stop_reason"])? {
        let finish = parse_finish_reason(&word);
        // Several words mean one reason; the hint gives this very word back.
        if finish_reason_word(&finish) != Some(word.as_str()) {
            set_hint(&mut stored, "~stop_reason", &word);
        }
        info.finish = Some(finish);
    }
    for (field, mark) in [
        ("stop_reason", "~no_stop_reason"),
        ("stop_sequence", "~no_stop_sequence"),
    ] {
        // `null` and absence read the same but are written differently, so absence leaves a hint.
        let said = field == "stop_reason" && info.finish.is_some();
        if !said && fields.get(&[field]).is_none() {
            set_hint(&mut stored, mark, "absent");
        }
    }
    if let Some(value) = fields.take_present(&["usage"])? {
        info.usage = Some(parse_usage(value).map_err(|error| error.at_segment("usage"))?);
    }
    stored.extend(to_extras(fields.into_extra()));
    transcript.response = Some(info);
    transcript.extra.set_wire_fields(FORMAT, stored);
    Ok(transcript)
}

pub(super) fn parse_finish_reason(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "refusal" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// The provider's word; `None` for another format's.
fn finish_reason_word(finish: &FinishReason) -> Option<&str> {
    match finish {
        FinishReason::Stop => Some("end_turn"),
        FinishReason::ToolCalls => Some("tool_use"),
        FinishReason::Length => Some("max_tokens"),
        FinishReason::ContentFilter => Some("refusal"),
        FinishReason::Other(word) => ["pause_turn", "compaction"]
            .into_iter()
            .find(|known| known == word),
    }
}

pub(super) fn parse_usage(value: &RawValue) -> Result<Usage, Error> {
    let mut fields = Fields::parse(value.get())?;
    let stored = Fields::parse(value.get())?.into_extra();
    let mut count = |name: &'static str| fields.take_as::<u64>(&[name], "a whole number");
    let input = count("input_tokens")?;
    let output_tokens = count("output_tokens")?;
    let cache_read_tokens = count("cache_read_input_tokens")?;
    let cache_write_tokens = count("cache_creation_input_tokens")?;
    let reasoning_tokens = fields
        .get(&["output_tokens_details"])
        .and_then(|details| Fields::parse(details.get()).ok())
        .and_then(|mut details| details.take_as(&["thinking_tokens"], "").ok().flatten());
    // The provider counts what the cache took apart from the input; we do not.
    let cached = cache_read_tokens
        .unwrap_or(0)
        .saturating_add(cache_write_tokens.unwrap_or(0));
    let mut usage = Usage {
        input_tokens: input.map(|input| input.saturating_add(cached)),
        output_tokens,
        total_tokens: None,
        cache_read_tokens,
        cache_write_tokens,
        reasoning_tokens,
        extra: Extra::new(),
    };
    usage.extra.set_wire_fields(FORMAT, stored);
    Ok(usage)
}

pub(super) fn lower_response(transcript: &Transcript) -> Lowered {
    let stored = transcript.extra.wire_fields(FORMAT);
    let none = ResponseInfo::default();
    let info = transcript.response.as_ref().unwrap_or(&none);
    let entries = paired_items(&transcript.items);
    let (content, inner) = encode::encode_response_content(entries.into_iter());
    let mut losses = Losses::default();
    losses.extend_with_prefix("items", inner);
    report_foreign_fields_as(&transcript.extra, FORMAT, "", LossKind::Field, &mut losses);

    let mut object = ObjectWriter::new();
    object.string("id", &response_id(info, &content, &mut losses));
    if stored.get("~type").is_none() {
        object.string("type", "message");
    }
    object.string("role", "assistant");
    let model = transcript.model.as_deref().unwrap_or_else(|| {
        losses.push(
            "model",
            LossKind::Value,
            "the provider names a model; the source does not",
        );
        ""
    });
    object.string("model", model);
    object.raw("content", &content);
    match encode_stop_reason(info, &stored, &transcript.items, &mut losses) {
        Some(word) => {
            object.string("stop_reason", &word);
        }
        None if stored.get("~no_stop_reason").is_some() => {}
        None => {
            object.raw("stop_reason", "null");
        }
    }
    if stored.get("stop_sequence").is_none() && stored.get("~no_stop_sequence").is_none() {
        object.raw("stop_sequence", "null");
    }
    object.raw("usage", &encode_usage(info.usage.as_ref(), &mut losses));
    object.extra_fields(&stored);
    Lowered {
        json: object.finish(),
        losses: losses.into_vec(),
    }
}

fn response_id(info: &ResponseInfo, content: &str, losses: &mut Losses) -> String {
    if let Some(id) = &info.id {
        return id.clone();
    }
    losses.push(
        "response.id",
        LossKind::Value,
        "the source has no id; one is made of the content",
    );
    let hash = blake3::hash(content.as_bytes()).to_hex();
    format!("msg_{}", hash.get(..24).unwrap_or_default())
}

fn encode_stop_reason(
    info: &ResponseInfo,
    stored: &Extra,
    items: &[Item],
    losses: &mut Losses,
) -> Option<String> {
    let finish = info.finish.as_ref()?;
    let own = stored.get("~stop_reason").and_then(Raw::as_string);
    // The stored word counts only while it still means the reason: a program may have changed it.
    if let Some(word) = own.filter(|word| parse_finish_reason(word) == *finish) {
        return Some(word);
    }
    if let Some(word) = finish_reason_word(finish) {
        return Some(word.to_owned());
    }
    let calls = items
        .iter()
        .any(|item| matches!(item, Item::FunctionCall(_)));
    // The nearest reason a client acts on in the right way: it runs the calls, or it does not wait
    // for any.
    let word = if calls { "tool_use" } else { "end_turn" };
    losses.push(
        "response.finish",
        LossKind::Value,
        format!("an unknown reason becomes {word}"),
    );
    Some(word.to_owned())
}

fn encode_usage(usage: Option<&Usage>, losses: &mut Losses) -> String {
    let Some(usage) = usage else {
        losses.push(
            "response.usage",
            LossKind::Value,
            "the source counts nothing; zeros are written",
        );
        return "{\"input_tokens\":0,\"output_tokens\":0}".to_owned();
    };
    if usage
        .extra
        .wire_fields_by_format()
        .iter()
        .any(|(format, _)| format != FORMAT)
    {
        let why = "the counts are kept, the provider's own account of them is not";
        losses.push("response.usage", LossKind::Field, why);
    }
    let own = usage.extra.wire_fields(FORMAT);
    // The provider's own account is written back whole: it has members that our counts have no
    // field for.
    if !own.is_empty() {
        let mut object = ObjectWriter::new();
        object.extra_fields(&to_extras(own));
        return object.finish();
    }
    if usage.input_tokens.is_none() || usage.output_tokens.is_none() {
        losses.push(
            "response.usage",
            LossKind::Value,
            "what the source does not count is zero",
        );
    }
    encode_counts(usage)
}

/// Writes the counts as the provider would, input without what the cache read and wrote.
fn encode_counts(usage: &Usage) -> String {
    let read = usage.cache_read_tokens.unwrap_or(0);
    let written = usage.cache_write_tokens.unwrap_or(0);
    let input = usage
        .input_tokens
        .unwrap_or(0)
        .saturating_sub(read)
        .saturating_sub(written);
    let text = |count: Option<u64>| count.map(|count| count.to_string());
    let mut object = ObjectWriter::new();
    object.raw("input_tokens", &input.to_string());
    object.raw_if_some(
        "cache_creation_input_tokens",
        text(usage.cache_write_tokens),
    );
    object.raw_if_some("cache_read_input_tokens", text(usage.cache_read_tokens));
    object.raw(
        "output_tokens",
        &usage.output_tokens.unwrap_or(0).to_string(),
    );
    if let Some(reasoning) = usage.reasoning_tokens {
        let details = format!("{{\"thinking_tokens\":{reasoning}}}");
        object.raw("output_tokens_details", &details);
    }
    object.finish()
}
