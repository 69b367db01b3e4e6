//! Options of a request: typed where every format has a word, verbatim otherwise.
//!
//! A native value that our types hold only in part (adaptive thinking, a display mode) is kept beside
//! them and written again as long as the typed part still says the same.

use contexture_ir::{
    Error, Extra, Fields, Raw, ReasoningOptions, RequestOptions, ResponseFormat, quote_json,
};
use serde_json::Number;

use super::choice;
use super::spec::FORMAT;
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};

/// The least the provider accepts as a budget for thinking.
const LEAST_BUDGET: u64 = 1024;
/// The words the provider knows for effort.
const EFFORTS: [&str; 5] = ["low", "medium", "high", "xhigh", "max"];

/// Takes the options out of a request's fields; what stays goes to the caller.
pub(super) fn parse_options(fields: &mut Fields<'_>) -> Result<(RequestOptions, Extra), Error> {
    let mut options = RequestOptions {
        max_output_tokens: fields.take_as(&["max_tokens"], "a whole number")?,
        temperature: fields.take_as(&["temperature"], "a number")?,
        top_p: fields.take_as(&["top_p"], "a number")?,
        stream: fields.take_as(&["stream"], "a boolean")?,
        ..RequestOptions::default()
    };
    let mut stored = Extra::new();
    if fields
        .get(&["stop_sequences"])
        .is_some_and(|stop| stop.get() != "[]")
    {
        options.stop = fields
            .take_as(&["stop_sequences"], "an array of strings")?
            .unwrap_or_default();
        if options.stop.is_empty() {
            stored.set("stop_sequences", Raw::parse("[]")?);
        }
    }
    if let Some(value) = fields.take_present(&["tool_choice"])? {
        choice::parse_tool_choice(value, &mut options)
            .map_err(|error| error.at_segment("tool_choice"))?;
    }
    if let Some(value) = fields.take_present(&["output_config"])? {
        let raw = Raw::from(value);
        // What the typed options cannot express keeps the whole value beside them.
        let (effort, format, whole) = parse_output_config(&raw);
        if let Some(effort) = effort {
            options.reasoning.get_or_insert_default().effort = Some(effort);
        }
        options.response_format = format;
        if !whole {
            stored.set("output_config", raw);
        }
    }
    if let Some(value) = fields.take_present(&["thinking"])? {
        read_thinking(Raw::from(value), &mut options, &mut stored);
    }
    Ok((options, stored))
}

/// Reads thinking into the options. It must come after the effort, which weighs more.
fn read_thinking(raw: Raw, options: &mut RequestOptions, stored: &mut Extra) {
    let (budget, off) = parse_thinking(&raw);
    if budget.is_some() {
        options.reasoning.get_or_insert_default().budget_tokens = budget;
    }
    let reasoning = options.reasoning.as_ref();
    let has_effort = reasoning.is_some_and(|one| one.effort.is_some());
    // `disabled` is read as the effort `none`, which other formats know, unless an effort was
    // stated.
    if off && !has_effort {
        options.reasoning.get_or_insert_default().effort = Some("none".to_owned());
    }
    let plain = encode_typed_thinking(options.reasoning.as_ref(), None, &mut Losses::default());
    // Kept only if the typed options would not give it back.
    if !plain.is_some_and(|plain| is_same_json(&plain, raw.get())) {
        stored.set("thinking", raw);
    }
}

/// Whether two texts are the same JSON value.
fn is_same_json(a: &str, b: &str) -> bool {
    let parse = |text| serde_json::from_str::<serde_json::Value>(text).ok();
    parse(a).is_some_and(|a| Some(a) == parse(b))
}

/// Effort and answer format of an `output_config`, and whether that was all of it.
fn parse_output_config(raw: &Raw) -> (Option<String>, Option<ResponseFormat>, bool) {
    let Some(mut fields) = raw.fields() else {
        return (None, None, false);
    };
    let effort = fields.take_string(&["effort"]).ok().flatten();
    let format = fields.take_field(&["format"]).ok().flatten().map(Raw::from);
    let known = effort
        .as_deref()
        .is_none_or(|effort| EFFORTS.contains(&effort));
    let mut whole = known && fields.is_empty() && (effort.is_some() || format.is_some());
    let typed = format.as_ref().and_then(|format| {
        let mut fields = format.fields()?;
        let kind = fields.take_string(&["type"]).ok()??;
        let schema = fields.take_present(&["schema"]).ok()??;
        whole &= fields.is_empty();
        (kind == "json_schema").then(|| ResponseFormat::JsonSchema {
            name: None,
            description: None,
            schema: schema.into(),
            strict: None,
        })
    });
    (
        effort,
        typed.clone(),
        whole && format.is_some() == typed.is_some(),
    )
}

/// The budget of a `thinking` value, and whether it says not to think.
fn parse_thinking(raw: &Raw) -> (Option<u64>, bool) {
    let Some(mut fields) = raw.fields() else {
        return (None, false);
    };
    let kind = fields.take_string(&["type"]).ok().flatten();
    let budget = fields.take_as(&["budget_tokens"], "").ok().flatten();
    (budget, kind.as_deref() == Some("disabled"))
}

/// Writes the options behind the messages; a limit on output is always among them.
pub(super) fn encode_options(
    options: &RequestOptions,
    stored: &Extra,
    object: &mut ObjectWriter,
    losses: &mut Losses,
) {
    match options.max_output_tokens {
        Some(limit) => {
            object.raw("max_tokens", &limit.to_string());
        }
        None if stored.get("~max_tokens").is_some() => {}
        None => {
            let why = "the provider demands a limit on output; 4096 is written";
            losses.push("options.max_output_tokens", LossKind::Value, why);
            object.raw("max_tokens", "4096");
        }
    }
    if let Some(temperature) = &options.temperature {
        object.raw("temperature", &clamp_temperature(temperature, losses));
    }
    object.value_if_some("top_p", options.top_p.as_ref());
    encode_stop(&options.stop, object, losses);
    let limit = options.max_output_tokens;
    object.raw_if_some("thinking", encode_thinking(options, stored, limit, losses));
    object.raw_if_some(
        "output_config",
        encode_output_config(options, stored, losses),
    );
    object.value_if_some("stream", options.stream);
}

fn clamp_temperature(temperature: &Number, losses: &mut Losses) -> String {
    if temperature.as_f64().is_some_and(|value| value > 1.0) {
        losses.push(
            "options.temperature",
            LossKind::Value,
            "temperatures end at 1",
        );
        return "1".to_owned();
    }
    temperature.to_string()
}

fn encode_stop(stop: &[String], object: &mut ObjectWriter, losses: &mut Losses) {
    let texts: Vec<String> = stop
        .iter()
        .filter(|s| !s.trim().is_empty())
        .map(|s| quote_json(s))
        .collect();
    if texts.len() < stop.len() {
        losses.push(
            "options.stop",
            LossKind::Option,
            "blank stop sequences are refused",
        );
    }
    if !texts.is_empty() {
        object.array("stop_sequences", texts);
    }
}

pub(super) fn encode_thinking(
    options: &RequestOptions,
    stored: &Extra,
    limit: Option<u64>,
    losses: &mut Losses,
) -> Option<String> {
    let reasoning = options.reasoning.as_ref();
    if let Some(raw) = stored.get("thinking") {
        let (budget, off) = parse_thinking(raw);
        let typed = reasoning.and_then(|reasoning| reasoning.budget_tokens);
        let none = reasoning.is_some_and(|r| r.effort.as_deref() == Some("none"));
        // The stored value counts only while the typed options still say the same.
        if budget == typed && (off || !none) {
            return Some(raw.get().to_owned());
        }
    }
    if reasoning.is_some_and(|reasoning| reasoning.summary.is_some()) {
        let why = "how thoughts are shown is said differently";
        losses.push("options.reasoning.summary", LossKind::Option, why);
    }
    encode_typed_thinking(reasoning, limit, losses)
}

/// `thinking` from the typed options alone.
fn encode_typed_thinking(
    reasoning: Option<&ReasoningOptions>,
    limit: Option<u64>,
    losses: &mut Losses,
) -> Option<String> {
    let reasoning = reasoning?;
    let off = reasoning.effort.as_deref() == Some("none") || reasoning.budget_tokens == Some(0);
    if off {
        return Some("{\"type\":\"disabled\"}".to_owned());
    }
    let wanted = reasoning.budget_tokens?;
    let budget = wanted
        .max(LEAST_BUDGET)
        .min(limit.map_or(u64::MAX, |limit| limit.saturating_sub(1)));
    if budget < LEAST_BUDGET {
        let why = "thinking needs 1024 tokens below the limit on output";
        losses.push("options.reasoning.budget_tokens", LossKind::Option, why);
        return None;
    }
    if budget != wanted {
        let why = "a budget for thinking lies between 1024 and the limit on output";
        losses.push("options.reasoning.budget_tokens", LossKind::Value, why);
    }
    Some(format!(
        "{{\"type\":\"enabled\",\"budget_tokens\":{budget}}}"
    ))
}

fn encode_output_config(
    options: &RequestOptions,
    stored: &Extra,
    losses: &mut Losses,
) -> Option<String> {
    let effort = options
        .reasoning
        .as_ref()
        .and_then(|reasoning| reasoning.effort.as_deref());
    let effort = effort.filter(|effort| *effort != "none");
    if let Some(raw) = stored.get("output_config") {
        let (own, format, _) = parse_output_config(raw);
        // The stored value counts only while the typed options still say the same.
        if own.as_deref() == effort && format == options.response_format {
            return Some(raw.get().to_owned());
        }
    }
    let mut object = ObjectWriter::new();
    if let Some(word) = effort {
        match nearest_effort(word) {
            Some(nearest) => {
                if nearest != word {
                    let why = format!("`{word}` becomes `{nearest}`");
                    losses.push("options.reasoning.effort", LossKind::Value, why);
                }
                object.string("effort", nearest);
            }
            None => {
                let why = format!("the provider does not know the effort `{word}`");
                losses.push("options.reasoning.effort", LossKind::Option, why);
            }
        }
    }
    object.raw_if_some(
        "format",
        encode_output_format(options.response_format.as_ref(), losses),
    );
    (!object.is_empty()).then(|| object.finish())
}

fn nearest_effort(word: &str) -> Option<&str> {
    match word {
        // OpenAI's lowest effort has no equal here; the nearest one thinks a little more.
        "minimal" => Some("low"),
        word => EFFORTS.contains(&word).then_some(word),
    }
}

fn encode_output_format(format: Option<&ResponseFormat>, losses: &mut Losses) -> Option<String> {
    let place = "options.response_format";
    match format? {
        ResponseFormat::Text => None,
        ResponseFormat::JsonObject => {
            losses.push(place, LossKind::Option, "answers in JSON need a schema");
            None
        }
        ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict,
        } => {
            if name.is_some() || description.is_some() || *strict == Some(false) {
                let why = "a schema of an answer has no name, description or leniency";
                losses.push(place, LossKind::Option, why);
            }
            let mut object = ObjectWriter::new();
            object
                .string("type", "json_schema")
                .raw("schema", schema.get());
            Some(object.finish())
        }
    }
}

/// Keeps what a request did not say although it must.
pub(super) fn record_missing_max_tokens(options: &RequestOptions, stored: &mut Extra) {
    if options.max_output_tokens.is_none() {
        crate::model::format_extras::set_hint(stored, "~max_tokens", "absent");
    }
    debug_assert!(
        stored.wire_fields_by_format().is_empty(),
        "{FORMAT}: kept fields are flat"
    );
}
