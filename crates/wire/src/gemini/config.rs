//! `generationConfig` and `toolConfig`: typed where every format has a word, verbatim otherwise.

use contexture_ir::{
    Error, Extra, Fields, Raw, ReasoningOptions, RequestOptions, ResponseFormat, ToolChoice,
    Transcript, quote_json,
};
use serde_json::value::RawValue;
use serde_json::{Number, Value};

use super::media::{nested_fields, store_nested};
use super::names::SnakeCaseFields;
use super::schema::to_json_schema;
use super::spec::FORMAT;
use super::spec::NAME_RULE;
use crate::model::format_extras::set_hint;
use crate::model::json::{ObjectWriter, json_array};
use crate::model::loss::{LossKind, Losses};

/// Reads `generationConfig` into `options`; what no option can hold is stored in `kept`.
pub(super) fn parse_generation_config(
    value: &RawValue,
    options: &mut RequestOptions,
    names: &mut SnakeCaseFields,
    kept: &mut Extra,
) -> Result<(), Error> {
    let mut fields = Fields::parse(value.get())?;
    // An empty object has to come back, although no option tells that it was there.
    if fields.is_empty() {
        set_hint(kept, "~generationConfig", "empty");
    }
    options.max_output_tokens = names.take_as(&mut fields, "maxOutputTokens", "a whole number")?;
    options.temperature = names.take_as(&mut fields, "temperature", "a number")?;
    options.top_p = names.take_as(&mut fields, "topP", "a number")?;
    if let Some(stop) = names.take_as::<Vec<String>>(&mut fields, "stopSequences", "strings")? {
        if stop.is_empty() {
            set_hint(kept, "~stop", "empty");
        }
        options.stop = stop;
    }
    options.response_format = parse_response_format(&mut fields, names, kept)?;
    let thinking = names
        .take_field(&mut fields, "thinkingConfig")?
        .map(Raw::from);
    let mut rest = Extra::new();
    if let Some(raw) = thinking {
        options.reasoning = parse_thinking(&raw);
        // The original is kept only where the typed options would not write the same, whatever the model is.
        let typed = options.reasoning.as_ref();
        let typed = typed.filter(|typed| typed.effort.is_none());
        let plain = encode_typed_thinking(typed, None, &mut Losses::default());
        if !plain.is_some_and(|plain| is_same_json(&plain, raw.get())) {
            rest.set("thinkingConfig", raw);
        }
    }
    store_nested(kept, "generationConfig", fields)?;
    if !rest.is_empty() {
        // Added to what was just stored under the same name, not put in its place.
        let mut all = nested_fields(kept, "generationConfig");
        all.extend(rest);
        kept.set("generationConfig", Raw::from_value(&all)?);
    }
    Ok(())
}

fn parse_response_format(
    fields: &mut Fields<'_>,
    names: &mut SnakeCaseFields,
    kept: &mut Extra,
) -> Result<Option<ResponseFormat>, Error> {
    let mime = super::names::peek_field(fields, "responseMimeType").map(RawValue::get);
    // Other types have no equal among the options and stay as they came.
    if !matches!(mime, None | Some("\"application/json\"")) {
        return Ok(None);
    }
    let json = super::names::peek_field(fields, "responseJsonSchema").is_some();
    let own = super::names::peek_field(fields, "responseSchema").is_some();
    let schema = match (json, own) {
        // Nothing says which of two schemas counts, so both stay as they came.
        (true, true) => return Ok(None),
        (true, false) => names
            .take_field(fields, "responseJsonSchema")?
            .map(Raw::from),
        (false, true) => {
            let own = names.take_field(fields, "responseSchema")?.map(Raw::from);
            let schema = own.as_ref().map(to_json_schema);
            // Kept for writing back, as long as the schema is not edited.
            if let Some(own) = own {
                kept.set("~responseSchema", own);
            }
            schema
        }
        (false, false) if mime.is_none() => return Ok(None),
        (false, false) => None,
    };
    if names.take_field(fields, "responseMimeType")?.is_none() {
        set_hint(kept, "~mime", "absent");
    }
    Ok(Some(match schema {
        None => ResponseFormat::JsonObject,
        Some(schema) => ResponseFormat::JsonSchema {
            name: None,
            description: None,
            schema,
            strict: None,
        },
    }))
}

/// Whether two texts are the same JSON value.
fn is_same_json(a: &str, b: &str) -> bool {
    let parse = |text| serde_json::from_str::<Value>(text).ok();
    parse(a).is_some_and(|a| Some(a) == parse(b))
}

/// Reads a `thinkingConfig` as typed options; `None` if nothing in it has a typed form.
fn parse_thinking(raw: &Raw) -> Option<ReasoningOptions> {
    let mut fields = raw.fields()?;
    let mut names = SnakeCaseFields::default();
    let budget = names
        .take_as::<i64>(&mut fields, "thinkingBudget", "")
        .ok()
        .flatten();
    let level = names
        .take_string(&mut fields, "thinkingLevel")
        .ok()
        .flatten();
    let shown = names
        .take_as::<bool>(&mut fields, "includeThoughts", "")
        .ok()
        .flatten();
    let reasoning = ReasoningOptions {
        effort: level.map(|level| level.to_ascii_lowercase()),
        // A negative budget leaves the amount to the model; it has no typed form.
        budget_tokens: budget.and_then(|budget| u64::try_from(budget).ok()),
        summary: (shown == Some(true)).then(|| "auto".to_owned()),
    };
    (reasoning != ReasoningOptions::default()).then_some(reasoning)
}

/// Writes `thinkingConfig` from the typed options alone; `None` if it would be empty.
fn encode_typed_thinking(
    reasoning: Option<&ReasoningOptions>,
    model: Option<&str>,
    losses: &mut Losses,
) -> Option<String> {
    let reasoning = reasoning?;
    let mut object = ObjectWriter::new();
    if reasoning.summary.is_some() {
        object.raw("includeThoughts", "true");
    }
    let effort = reasoning.effort.as_deref();
    // Where both are given the budget stays: it is the more exact one.
    if let Some(budget) = reasoning.budget_tokens {
        object.raw("thinkingBudget", &budget.to_string());
        if effort.is_some() {
            let why = "a budget and a level exclude each other";
            losses.push("options.reasoning.effort", LossKind::Option, why);
        }
    } else if effort == Some("none") {
        // No level says that the model shall not think; a budget of zero does.
        object.raw("thinkingBudget", "0");
    } else if let Some((word, budget)) = effort.zip(budget_for_effort(model, effort)) {
        let why = format!("`{word}` becomes a budget of {budget} tokens");
        losses.push("options.reasoning.effort", LossKind::Value, why);
        object.raw("thinkingBudget", &budget.to_string());
    } else if let Some(word) = effort {
        match thinking_level(word) {
            Some(level) => {
                if !level.eq_ignore_ascii_case(word) {
                    let why = format!("`{word}` becomes `{level}`");
                    losses.push("options.reasoning.effort", LossKind::Value, why);
                }
                object.string("thinkingLevel", level);
            }
            None => {
                let why = format!("the provider does not know the effort `{word}`");
                losses.push("options.reasoning.effort", LossKind::Option, why);
            }
        }
    }
    (!object.is_empty()).then(|| object.finish())
}

/// The budget that stands for an effort, for models that refuse a level: those before Gemini 3.
///
/// The figures are the provider's own, of its interface in the format of OpenAI (<https://ai.google.dev/gemini-api/docs/openai>).
fn budget_for_effort(model: Option<&str>, effort: Option<&str>) -> Option<u32> {
    let takes_budget = model.is_some_and(|model| model.contains("gemini-2"));
    match effort.filter(|_| takes_budget)? {
        "minimal" | "low" => Some(1_024),
        "medium" => Some(8_192),
        "high" | "xhigh" | "max" => Some(24_576),
        _ => None,
    }
}

fn thinking_level(word: &str) -> Option<&'static str> {
    Some(match word {
        "minimal" => "MINIMAL",
        "low" => "LOW",
        "medium" => "MEDIUM",
        // The provider knows nothing above `HIGH`.
        "high" | "xhigh" | "max" => "HIGH",
        _ => return None,
    })
}

/// Writes `generationConfig`; `None` if it would be empty, unless the request had an empty one.
pub(super) fn encode_generation_config(
    request: &Transcript,
    names: &SnakeCaseFields,
    kept: &Extra,
    losses: &mut Losses,
) -> Option<String> {
    let options = &request.options;
    let mut rest = nested_fields(kept, "generationConfig");
    let mut object = ObjectWriter::new();
    let mut add = |key: &'static str, json: Option<String>| {
        if let Some(json) = json {
            object.raw_as(key, &names.spelled_name(key), &json);
        }
    };
    add(
        "temperature",
        options.temperature.as_ref().map(Number::to_string),
    );
    add("topP", options.top_p.as_ref().map(Number::to_string));
    add(
        "maxOutputTokens",
        options.max_output_tokens.map(|limit| limit.to_string()),
    );
    if !options.stop.is_empty() || kept.get("~stop").is_some() {
        add(
            "stopSequences",
            Some(json_array(options.stop.iter().map(|stop| quote_json(stop)))),
        );
    }
    for (key, json) in encode_response_format(options.response_format.as_ref(), kept, losses) {
        add(key, Some(json));
    }
    let own = rest.remove("thinkingConfig");
    // The original counts only while the options still say the same.
    let own = own.filter(|own| parse_thinking(own) == options.reasoning);
    let thinking = own.map(|own| own.get().to_owned());
    add(
        "thinkingConfig",
        thinking.or_else(|| {
            encode_typed_thinking(options.reasoning.as_ref(), request.model.as_deref(), losses)
        }),
    );
    object.extra_fields(&rest);
    if object.is_empty() && kept.get("~generationConfig").is_none() {
        return None;
    }
    Some(object.finish())
}

fn encode_response_format(
    format: Option<&ResponseFormat>,
    kept: &Extra,
    losses: &mut Losses,
) -> Vec<(&'static str, String)> {
    let mut members = Vec::new();
    match format {
        None | Some(ResponseFormat::Text) => return members,
        Some(ResponseFormat::JsonObject) => {}
        Some(ResponseFormat::JsonSchema {
            name,
            description,
            schema,
            strict,
        }) => {
            if name.is_some() || description.is_some() || *strict == Some(false) {
                let why = "a schema of an answer has no name, description or leniency";
                losses.push("options.response_format", LossKind::Option, why);
            }
            members.push(match kept.get("~responseSchema") {
                Some(own) if to_json_schema(own) == *schema => {
                    ("responseSchema", own.get().to_owned())
                }
                _ => ("responseJsonSchema", schema.get().to_owned()),
            });
        }
    }
    if kept.get("~mime").is_none() {
        members.insert(0, ("responseMimeType", "\"application/json\"".to_owned()));
    }
    members
}

/// Reads `toolConfig` into `options.tool_choice`; its other members are stored in `kept`.
pub(super) fn parse_tool_config(
    value: &RawValue,
    options: &mut RequestOptions,
    names: &mut SnakeCaseFields,
    kept: &mut Extra,
) -> Result<(), Error> {
    let mut fields = Fields::parse(value.get())?;
    if fields.is_empty() {
        set_hint(kept, "~toolConfig", "empty");
    }
    if let Some(value) = names.take_field(&mut fields, "functionCallingConfig")? {
        options.tool_choice = Some(parse_tool_choice(value, names)?);
    }
    store_nested(kept, "toolConfig", fields)
}

fn parse_tool_choice(value: &RawValue, names: &mut SnakeCaseFields) -> Result<ToolChoice, Error> {
    let mut fields = Fields::parse(value.get())?;
    let mode = fields.take_string(&["mode"])?;
    let allowed: Option<Vec<String>> =
        names.take_as(&mut fields, "allowedFunctionNames", "an array of strings")?;
    let choice = match (mode.as_deref(), allowed.as_deref()) {
        (Some("AUTO"), None) => Some(ToolChoice::Auto),
        (Some("NONE"), None) => Some(ToolChoice::None),
        (Some("ANY"), None) => Some(ToolChoice::Required),
        (Some("ANY"), Some([name])) => Some(ToolChoice::Function { name: name.clone() }),
        // `AUTO` with names or `ANY` with several: no typed choice says this.
        _ => None,
    };
    Ok(match choice {
        // A member that is left over would be lost, so the whole choice is kept instead.
        Some(choice) if fields.is_empty() => choice,
        _ => ToolChoice::Other {
            format: FORMAT.to_owned(),
            raw: value.into(),
        },
    })
}

/// Writes `toolConfig`; `None` if it would be empty, unless the request had an empty one.
pub(super) fn encode_tool_config(
    options: &RequestOptions,
    offered: bool,
    names: &SnakeCaseFields,
    kept: &Extra,
    losses: &mut Losses,
) -> Option<String> {
    if options.parallel_tool_calls == Some(false) {
        let why = "several calls at once cannot be forbidden";
        losses.push("options.parallel_tool_calls", LossKind::Option, why);
    }
    let mut object = ObjectWriter::new();
    let choice = options.tool_choice.as_ref();
    if choice.is_some() && !offered {
        let why = "a choice without tools is refused";
        losses.push("options.tool_choice", LossKind::Option, why);
    }
    if let Some(choice) = encode_tool_choice(choice.filter(|_| offered), names, losses) {
        let key = "functionCallingConfig";
        object.raw_as(key, &names.spelled_name(key), &choice);
    }
    object.extra_fields(&nested_fields(kept, "toolConfig"));
    if object.is_empty() && kept.get("~toolConfig").is_none() {
        return None;
    }
    Some(object.finish())
}

fn encode_tool_choice(
    choice: Option<&ToolChoice>,
    names: &SnakeCaseFields,
    losses: &mut Losses,
) -> Option<String> {
    let (mode, name) = match choice? {
        ToolChoice::Auto => ("AUTO", None),
        ToolChoice::None => ("NONE", None),
        ToolChoice::Required => ("ANY", None),
        ToolChoice::Function { name } => {
            let name = NAME_RULE.sanitize_name(name, "options.tool_choice", losses);
            ("ANY", Some(name))
        }
        ToolChoice::Other { format, raw } if format == FORMAT => return Some(raw.get().to_owned()),
        ToolChoice::Other { format, .. } => {
            losses.push(
                "options.tool_choice",
                LossKind::Tool,
                format!("a choice of {format}"),
            );
            return None;
        }
    };
    let mut object = ObjectWriter::new();
    object.string("mode", mode);
    if let Some(name) = name {
        let key = "allowedFunctionNames";
        object.raw_as(
            key,
            &names.spelled_name(key),
            &json_array([quote_json(&name)]),
        );
    }
    Some(object.finish())
}
