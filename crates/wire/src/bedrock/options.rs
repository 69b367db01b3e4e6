//! Options of a request: typed where every format has a word, verbatim otherwise.
//!
//! Most are in `inferenceConfig` and `outputConfig`. How much to think depends on the model: Claude takes
//! `additionalModelRequestFields.thinking`, OpenAI's models `additionalModelRequestFields.reasoning_effort`; both are read
//! whatever the model, and written where they came or the model is known to take them.

use contexture_ir::{Error, Extra, Fields, Raw, RequestOptions, ResponseFormat, quote_json};
use serde_json::value::RawValue;

use super::block::single_member;
use crate::model::format_extras::{hint, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};

/// The member with the limits and the sampling, also the key of its unknown members.
const INFERENCE: &str = "inferenceConfig";
/// The member with the form of the answer, also the key of a value that is stored whole.
const OUTPUT: &str = "outputConfig";
/// The member with what only the model understands, also the key of what stays of it.
const ADDITIONAL: &str = "additionalModelRequestFields";
/// The members that [`encode_options`] writes.
pub(super) const MEMBERS: [&str; 3] = [INFERENCE, OUTPUT, ADDITIONAL];
/// The hint that the model's own fields say how much to think, and in which member.
const THINKING: &str = "~thinking";

/// Takes the options out of a request's fields; what items cannot say goes to `stored`.
pub(super) fn parse_options(
    fields: &mut Fields<'_>,
    options: &mut RequestOptions,
    stored: &mut Extra,
) -> Result<(), Error> {
    if let Some(value) = fields.take_present(&[INFERENCE])? {
        parse_inference_config(value, options, stored)
            .map_err(|error| error.at_segment(INFERENCE))?;
    }
    if let Some(value) = fields.take_present(&[OUTPUT])? {
        let raw = Raw::from(value);
        // What the typed options cannot express keeps the whole value beside them.
        if !parse_output_config(&raw, options) {
            stored.set(OUTPUT, raw);
        }
    }
    if let Some(value) = fields.take_present(&[ADDITIONAL])? {
        parse_additional_fields(value, options, stored)?;
    }
    Ok(())
}

fn parse_inference_config(
    value: &RawValue,
    options: &mut RequestOptions,
    stored: &mut Extra,
) -> Result<(), Error> {
    let mut fields = Fields::parse(value.get())?;
    if fields.is_empty() {
        set_hint(stored, "~inferenceConfig", "empty");
    }
    options.max_output_tokens = fields.take_as(&["maxTokens"], "a whole number")?;
    options.temperature = fields.take_as(&["temperature"], "a number")?;
    options.top_p = fields.take_as(&["topP"], "a number")?;
    // An empty list says nothing and stays among the rest.
    if fields
        .get(&["stopSequences"])
        .is_some_and(|list| list.get() != "[]")
    {
        let stop = fields.take_as(&["stopSequences"], "an array of strings")?;
        options.stop = stop.unwrap_or_default();
    }
    if !fields.is_empty() {
        let rest = to_extras(fields.into_extra());
        stored.set(INFERENCE, Raw::from_value(&rest)?);
    }
    Ok(())
}

/// Reads `outputConfig`; reports whether the options say all of it.
fn parse_output_config(raw: &Raw, options: &mut RequestOptions) -> bool {
    let Some(mut fields) = raw.fields() else {
        return false;
    };
    let mut is_whole = !fields.is_empty();
    if let Ok(Some(effort)) = fields.take_string(&["effort"]) {
        options.reasoning.get_or_insert_default().effort = Some(effort);
    }
    if let Ok(Some(format)) = fields.take_field(&["textFormat"]) {
        options.response_format = parse_text_format(format);
        is_whole &= options.response_format.is_some();
    }
    is_whole && fields.is_empty()
}

/// Reads a schema of the answer; `None` if it says more than a schema, a name and a description.
fn parse_text_format(value: &RawValue) -> Option<ResponseFormat> {
    let mut fields = Fields::parse(value.get()).ok()?;
    let kind = fields.take_string(&["type"]).ok()??;
    let structure = fields.take_present(&["structure"]).ok()??;
    let structure = Fields::parse(structure.get()).ok()?;
    let (member, definition) = single_member(&structure)?;
    if !fields.is_empty() || kind != "json_schema" || member != "jsonSchema" {
        return None;
    }
    let mut fields = Fields::parse(definition.get()).ok()?;
    let text = fields.take_string(&["schema"]).ok()??;
    let schema = Raw::parse(text.as_str()).ok()?;
    let format = ResponseFormat::JsonSchema {
        name: fields.take_string(&["name"]).ok()?,
        description: fields.take_string(&["description"]).ok()?,
        strict: None,
        schema,
    };
    // The schema is a string there: its very spelling has to come back.
    let ResponseFormat::JsonSchema { schema, .. } = &format else {
        return None;
    };
    (fields.is_empty() && schema.get() == text).then_some(format)
}

fn parse_additional_fields(
    value: &RawValue,
    options: &mut RequestOptions,
    stored: &mut Extra,
) -> Result<(), Error> {
    let Ok(mut fields) = Fields::parse(value.get()) else {
        // Any JSON value may stand there.
        stored.set(ADDITIONAL, value.into());
        return Ok(());
    };
    let is_empty = fields.is_empty();
    if let Some(thinking) = fields.get(&["thinking"])
        && parse_thinking(thinking, options)
    {
        fields.take_field(&["thinking"])?;
        set_hint(stored, THINKING, "thinking");
    } else if let Ok(Some(effort)) = fields.take_string(&["reasoning_effort"]) {
        // `outputConfig.effort` says the same; if both came, this one stays among the rest.
        let reasoning = options.reasoning.get_or_insert_default();
        if reasoning.effort.is_none() {
            reasoning.effort = Some(effort);
            set_hint(stored, THINKING, "reasoning_effort");
        } else {
            stored.set(ADDITIONAL, value.into());
            return Ok(());
        }
    }
    if is_empty || !fields.is_empty() {
        let rest = to_extras(fields.into_extra());
        stored.set(ADDITIONAL, Raw::from_value(&rest)?);
    }
    Ok(())
}

/// Reads Claude's `thinking`; reports whether the options say all of it.
fn parse_thinking(value: &RawValue, options: &mut RequestOptions) -> bool {
    let Ok(mut fields) = Fields::parse(value.get()) else {
        return false;
    };
    let kind = fields.take_string(&["type"]).ok().flatten();
    let budget = fields.take_as::<u64>(&["budget_tokens"], "").ok().flatten();
    let has_effort = options
        .reasoning
        .as_ref()
        .is_some_and(|reasoning| reasoning.effort.is_some());
    match (kind.as_deref(), budget) {
        (Some("enabled"), Some(1..)) if fields.is_empty() => {
            options.reasoning.get_or_insert_default().budget_tokens = budget;
            true
        }
        (Some("disabled"), None) if fields.is_empty() && !has_effort => {
            let reasoning = options.reasoning.get_or_insert_default();
            reasoning.effort = Some("none".to_owned());
            true
        }
        _ => false,
    }
}

/// Writes the options behind the messages.
pub(super) fn encode_options(
    options: &RequestOptions,
    model: Option<&str>,
    stored: &Extra,
    object: &mut ObjectWriter,
    losses: &mut Losses,
) {
    object.raw_if_some(INFERENCE, encode_inference_config(options, stored, losses));
    let thinking = plan_thinking(options, model, stored, losses);
    object.raw_if_some(
        OUTPUT,
        encode_output_config(options, &thinking, stored, losses),
    );
    object.raw_if_some(ADDITIONAL, encode_additional_fields(&thinking, stored));
}

fn encode_inference_config(
    options: &RequestOptions,
    stored: &Extra,
    losses: &mut Losses,
) -> Option<String> {
    let mut object = ObjectWriter::new();
    object.value_if_some("maxTokens", options.max_output_tokens);
    if let Some(temperature) = &options.temperature {
        let is_high = temperature.as_f64().is_some_and(|value| value > 1.0);
        if is_high {
            let why = "temperatures end at 1";
            losses.push("options.temperature", LossKind::Value, why);
            object.raw("temperature", "1");
        } else {
            object.raw("temperature", &temperature.to_string());
        }
    }
    object.value_if_some("topP", options.top_p.as_ref());
    let stop = options.stop.iter().filter(|text| !text.is_empty());
    let stop: Vec<String> = stop.map(|text| quote_json(text)).collect();
    if stop.len() < options.stop.len() {
        let why = "empty stop sequences are refused";
        losses.push("options.stop", LossKind::Option, why);
    }
    if !stop.is_empty() {
        object.array("stopSequences", stop);
    }
    if let Some(rest) = stored.get(INFERENCE).and_then(Raw::fields) {
        object.extra_fields(&rest.into_extra());
    }
    let is_wanted = !object.is_empty() || hint(stored, "~inferenceConfig").is_some();
    is_wanted.then(|| object.finish())
}

/// What a request says of thinking, by the places it is said in.
#[derive(Default)]
struct ThinkingPlan {
    /// The member of the model's own fields, and its value.
    additional: Option<(&'static str, String)>,
    /// The effort in `outputConfig`.
    effort: Option<String>,
}

fn plan_thinking(
    options: &RequestOptions,
    model: Option<&str>,
    stored: &Extra,
    losses: &mut Losses,
) -> ThinkingPlan {
    let mut plan = ThinkingPlan::default();
    let Some(reasoning) = &options.reasoning else {
        return plan;
    };
    let own = hint(stored, THINKING);
    let is_model = |maker: &str| model.is_some_and(|model| model.contains(maker));
    let takes_thinking = own.as_deref() == Some("thinking") || is_model("claude");
    let takes_effort = own.as_deref() == Some("reasoning_effort") || is_model("gpt-oss");
    if reasoning.summary.is_some() {
        let why = "thoughts are shown as the model shows them";
        losses.push("options.reasoning.summary", LossKind::Option, why);
    }
    let is_off = reasoning.budget_tokens == Some(0) || reasoning.effort.as_deref() == Some("none");
    match reasoning.budget_tokens {
        _ if takes_thinking && is_off => {
            plan.additional = Some(("thinking", r#"{"type":"disabled"}"#.to_owned()));
        }
        Some(budget) if takes_thinking => {
            let value = format!(r#"{{"type":"enabled","budget_tokens":{budget}}}"#);
            plan.additional = Some(("thinking", value));
        }
        Some(_) => {
            let why = "whether the model takes a budget for thinking is not known";
            losses.push("options.reasoning.budget_tokens", LossKind::Option, why);
        }
        None => {}
    }
    match reasoning.effort.as_deref() {
        Some(word) if takes_effort && !takes_thinking => {
            plan.additional = Some(("reasoning_effort", quote_json(word)));
        }
        Some("none") if !takes_thinking => {
            let why = "no word for no thinking";
            losses.push("options.reasoning.effort", LossKind::Option, why);
        }
        Some("none") | None => {}
        Some(word) => plan.effort = Some(word.to_owned()),
    }
    plan
}

fn encode_output_config(
    options: &RequestOptions,
    thinking: &ThinkingPlan,
    stored: &Extra,
    losses: &mut Losses,
) -> Option<String> {
    if let Some(raw) = stored.get(OUTPUT) {
        let mut own = RequestOptions::default();
        parse_output_config(raw, &mut own);
        let effort = own.reasoning.and_then(|reasoning| reasoning.effort);
        // The stored value counts only while the typed options still say the same.
        if effort == thinking.effort && own.response_format == options.response_format {
            return Some(raw.get().to_owned());
        }
    }
    let mut object = ObjectWriter::new();
    let format = options.response_format.as_ref();
    object.raw_if_some(
        "textFormat",
        format.and_then(|format| encode_text_format(format, losses)),
    );
    object.string_if_some("effort", thinking.effort.as_deref());
    (!object.is_empty()).then(|| object.finish())
}

fn encode_text_format(format: &ResponseFormat, losses: &mut Losses) -> Option<String> {
    let place = "options.response_format";
    match format {
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
            if *strict == Some(false) {
                losses.push(place, LossKind::Option, "schemas are always followed");
            }
            let mut definition = ObjectWriter::new();
            definition
                .string("schema", schema.get())
                .string_if_some("name", name.as_deref())
                .string_if_some("description", description.as_deref());
            let mut object = ObjectWriter::new();
            object.string("type", "json_schema");
            let structure = format!(r#"{{"jsonSchema":{}}}"#, definition.finish());
            object.raw("structure", &structure);
            Some(object.finish())
        }
    }
}

fn encode_additional_fields(thinking: &ThinkingPlan, stored: &Extra) -> Option<String> {
    let own = stored.get(ADDITIONAL);
    let Some((member, value)) = &thinking.additional else {
        return own.map(|raw| raw.get().to_owned());
    };
    let mut object = ObjectWriter::new();
    object.raw(member, value);
    if let Some(rest) = own.and_then(Raw::fields) {
        object.extra_fields(&rest.into_extra());
    }
    Some(object.finish())
}
