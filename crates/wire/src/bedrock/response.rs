//! Responses. They name neither themselves nor the model.
//!
//! What a response must have and its source had not is zero: counts, and the latency.

use contexture_ir::{
    Error, Extra, Fields, FinishReason, Item, Raw, ResponseInfo, Transcript, Usage,
};
use serde_json::value::RawValue;

use super::spec::{FORMAT, MESSAGE};
use super::{encode, parse};
use crate::Lowered;
use crate::model::format_extras::{hint, report_foreign_fields_as, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::paired_items;

/// The key of unknown members beside the message.
const OUTPUT: &str = "(output)";

pub(super) fn lift_response(mut fields: Fields<'_>) -> Result<Transcript, Error> {
    let mut transcript = Transcript::default();
    let mut stored = Extra::new();
    let mut info = ResponseInfo::default();
    if let Some(output) = fields.take_present(&["output"])? {
        let mut output = Fields::parse(output.get()).map_err(|e| e.at_segment("output"))?;
        if let Some(message) = output.take_present(&["message"])? {
            let answer = parse::parse_answer(message);
            let at_output = |error: Error| error.at_segment("message").at_segment("output");
            let (items, rest) = answer.map_err(at_output)?;
            transcript.items = items;
            store_rest(&mut stored, MESSAGE, rest)?;
        }
        store_rest(&mut stored, OUTPUT, to_extras(output.into_extra()))?;
    }
    match fields.take_string(&["stopReason"])? {
        Some(word) => {
            let finish = parse_finish_reason(&word);
            // Several words mean one reason; the hint gives this very word back.
            if finish_reason_word(&finish) != Some(word.as_str()) {
                set_hint(&mut stored, "~stopReason", &word);
            }
            info.finish = Some(finish);
        }
        None => set_hint(&mut stored, "~stopReason", "absent"),
    }
    match fields.take_present(&["usage"])? {
        Some(value) => {
            info.usage = Some(parse_usage(value).map_err(|error| error.at_segment("usage"))?);
        }
        None => set_hint(&mut stored, "~usage", "absent"),
    }
    if fields.get(&["metrics"]).is_none() {
        set_hint(&mut stored, "~metrics", "absent");
    }
    stored.extend(to_extras(fields.into_extra()));
    transcript.response = Some(info);
    transcript.extra.set_wire_fields(FORMAT, stored);
    Ok(transcript)
}

fn store_rest(stored: &mut Extra, key: &str, rest: Extra) -> Result<(), Error> {
    if !rest.is_empty() {
        stored.set(key, Raw::from_value(&rest)?);
    }
    Ok(())
}

fn stored_rest(stored: &Extra, key: &str) -> Extra {
    let fields = stored.get(key).and_then(Raw::fields);
    fields.map(Fields::into_extra).unwrap_or_default()
}

pub(super) fn parse_finish_reason(word: &str) -> FinishReason {
    match word {
        "end_turn" | "stop_sequence" => FinishReason::Stop,
        "tool_use" => FinishReason::ToolCalls,
        "max_tokens" | "model_context_window_exceeded" => FinishReason::Length,
        "content_filtered" | "guardrail_intervened" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

/// The provider's word; `None` for another format's.
fn finish_reason_word(finish: &FinishReason) -> Option<&str> {
    match finish {
        FinishReason::Stop => Some("end_turn"),
        FinishReason::ToolCalls => Some("tool_use"),
        FinishReason::Length => Some("max_tokens"),
        FinishReason::ContentFilter => Some("content_filtered"),
        FinishReason::Other(word) => ["malformed_model_output", "malformed_tool_use"]
            .into_iter()
            .find(|known| known == word),
    }
}

pub(super) fn parse_usage(value: &RawValue) -> Result<Usage, Error> {
    let mut fields = Fields::parse(value.get())?;
    let stored = Fields::parse(value.get())?.into_extra();
    let mut count = |name: &'static str| fields.take_as::<u64>(&[name], "a whole number");
    let input = count("inputTokens")?;
    let output_tokens = count("outputTokens")?;
    let total_tokens = count("totalTokens")?;
    let cache_read_tokens = count("cacheReadInputTokens")?;
    let cache_write_tokens = count("cacheWriteInputTokens")?;
    // The provider counts what the cache took apart from the input; we do not.
    let read = cache_read_tokens.unwrap_or(0);
    let cached = read.saturating_add(cache_write_tokens.unwrap_or(0));
    let mut usage = Usage {
        input_tokens: input.map(|input| input.saturating_add(cached)),
        output_tokens,
        total_tokens,
        cache_read_tokens,
        cache_write_tokens,
        reasoning_tokens: None,
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

    let mut message = ObjectWriter::new();
    message
        .string("role", "assistant")
        .raw("content", &content)
        .extra_fields(&stored_rest(&stored, MESSAGE));
    let mut output = ObjectWriter::new();
    output
        .raw("message", &message.finish())
        .extra_fields(&stored_rest(&stored, OUTPUT));
    let mut object = ObjectWriter::new();
    object.raw("output", &output.finish());
    object.string_if_some(
        "stopReason",
        encode_stop_reason(info, &stored, &transcript.items, &mut losses),
    );
    if info.usage.is_some() || hint(&stored, "~usage").is_none() {
        object.raw("usage", &encode_usage(info.usage.as_ref(), &mut losses));
    }
    if stored.get("metrics").is_none() && hint(&stored, "~metrics").is_none() {
        let why = "the source measures nothing; zero is written";
        losses.push("response.metrics", LossKind::Value, why);
        object.raw("metrics", "{\"latencyMs\":0}");
    }
    let mut rest = stored;
    for key in [MESSAGE, OUTPUT] {
        rest.remove(key);
    }
    object.extra_fields(&rest);
    Lowered {
        json: object.finish(),
        losses: losses.into_vec(),
    }
}

/// The reason to write; `None` where the source was in this format and gave none.
fn encode_stop_reason(
    info: &ResponseInfo,
    stored: &Extra,
    items: &[Item],
    losses: &mut Losses,
) -> Option<String> {
    let own = hint(stored, "~stopReason");
    let has_calls = || {
        let mut items = items.iter();
        items.any(|item| matches!(item, Item::FunctionCall(_)))
    };
    // The nearest reason a client acts on in the right way: it runs the calls, or it does not wait for any.
    let nearest = || if has_calls() { "tool_use" } else { "end_turn" };
    let Some(finish) = &info.finish else {
        if own.as_deref() == Some("absent") {
            return None;
        }
        let why = format!("the source gives no reason; {} is written", nearest());
        losses.push("response.finish", LossKind::Value, why);
        return Some(nearest().to_owned());
    };
    // The stored word counts only while it still means the reason: a program may have changed it.
    if let Some(word) = own.filter(|word| parse_finish_reason(word) == *finish) {
        return Some(word);
    }
    if let Some(word) = finish_reason_word(finish) {
        return Some(word.to_owned());
    }
    let why = format!("an unknown reason becomes {}", nearest());
    losses.push("response.finish", LossKind::Value, why);
    Some(nearest().to_owned())
}

fn encode_usage(usage: Option<&Usage>, losses: &mut Losses) -> String {
    let none = Usage::default();
    let usage = usage.unwrap_or(&none);
    let by_format = usage.extra.wire_fields_by_format();
    if by_format.iter().any(|(format, _)| format != FORMAT) {
        let why = "the counts are kept, the provider's own account of them is not";
        losses.push("response.usage", LossKind::Field, why);
    }
    let mut object = ObjectWriter::new();
    let own = usage.extra.wire_fields(FORMAT);
    // The provider's own account is written back whole: it has members that our counts have no field for.
    if !own.is_empty() {
        object.extra_fields(&to_extras(own));
        return object.finish();
    }
    if usage.input_tokens.is_none() || usage.output_tokens.is_none() {
        let why = "what the source does not count is zero";
        losses.push("response.usage", LossKind::Value, why);
    }
    if usage.reasoning_tokens.is_some() {
        let why = "tokens of reasoning are not counted apart";
        losses.push("response.usage.reasoning_tokens", LossKind::Value, why);
    }
    let input = usage.input_tokens.unwrap_or(0);
    let output = usage.output_tokens.unwrap_or(0);
    let read = usage.cache_read_tokens.unwrap_or(0);
    let written = usage.cache_write_tokens.unwrap_or(0);
    let uncached = input.saturating_sub(read).saturating_sub(written);
    let sum = input.saturating_add(output);
    let total = usage.total_tokens.unwrap_or(sum);
    object.value_if_some("inputTokens", Some(uncached));
    object.value_if_some("outputTokens", Some(output));
    object.value_if_some("totalTokens", Some(total));
    object.value_if_some("cacheReadInputTokens", usage.cache_read_tokens);
    object.value_if_some("cacheWriteInputTokens", usage.cache_write_tokens);
    object.finish()
}
