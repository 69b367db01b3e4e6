//! Everything of a request but its messages.
//!
//! Members stand in this order: `model`, `tools`, `messages`, then options, then what only Chat
//! says. Tools stand before the messages because they change more rarely.

use contexture_ir::{
    Cancel, Error, Extra, Fields, ReasoningOptions, RequestOptions, ToolDefinition, Transcript,
    quote_json,
};
use serde_json::value::RawValue;

use super::message::TranscriptParser;
use super::parse_calls::LEGACY;
use super::spec::{FORMAT, NAME};
use super::{encode, tools};
use crate::model::chunk::{Dialect, Envelope};
use crate::model::conversion::DocumentKind;
use crate::model::conversion::Lifted;
use crate::model::format_extras::{ALONE, hint, report_foreign_fields_as, set_hint, to_extras};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::openai::shared::options::{
    encode_tool_options, has_tool_options, parse_common_options, record_missing_model,
    record_unknown_effort, report_token_budget, required_model, shared_options, supported_effort,
    take_tool_choice,
};
use crate::openai::shared::{envelope_around, unexpected_value, without_keys};

/// The hint of the older name of the output limit.
const MAX_TOKENS: &str = "~max_tokens";
/// The hint of one stop text that is not in an array.
const STOP: &str = "~stop";

pub(super) fn lift_request(
    mut fields: Fields<'_>,
    cancel: Option<&Cancel>,
) -> Result<Lifted, Error> {
    let mut wire = Extra::new();
    let messages = fields.take_field(&["messages"])?;
    let messages: Vec<&RawValue> = match messages {
        Some(value) => serde_json::from_str(value.get()).map_err(|_| {
            unexpected_value("an array of messages", value.get()).at_segment("messages")
        })?,
        None => Vec::new(),
    };
    let mut reader = TranscriptParser::default();
    reader.parse_messages(&messages, cancel)?;
    let (mut transcript, losses) = reader.finish();
    transcript.model = fields.take_string(&["model"])?;
    record_missing_model(&transcript, &mut wire);
    transcript.tools = parse_tools(&mut fields, &mut wire)?;
    transcript.options = parse_options(&mut fields, &mut wire)?;
    if transcript.tools.is_empty() && has_tool_options(&transcript.options) {
        // Hosts refuse a choice without tools, so other sources lose it; a Chat request that had it
        // gets it back.
        set_hint(&mut wire, ALONE, "kept");
    }
    wire.extend(to_extras(fields.into_extra()));
    transcript.extra.set_wire_fields(NAME, wire);
    Ok(Lifted {
        kind: DocumentKind::Request,
        transcript,
        losses,
    })
}

/// `tools`, or the older `functions` where there are none.
fn parse_tools(fields: &mut Fields<'_>, wire: &mut Extra) -> Result<Vec<ToolDefinition>, Error> {
    // An empty or `null` list stays with the unknown fields, so that it comes back as it was
    // written.
    let some = |value: &RawValue| value.get().starts_with('[') && value.get() != "[]";
    if fields.get(&["tools"]).is_some_and(some)
        && let Some(value) = fields.take_field(&["tools"])?
    {
        return tools::parse_tools(value).map_err(|error| error.at_segment("tools"));
    }
    if !fields.get(&["functions"]).is_some_and(some) {
        return Ok(Vec::new());
    }
    let functions: Vec<&RawValue> = fields
        .take_as(&["functions"], "an array")?
        .unwrap_or_default();
    set_hint(wire, LEGACY, "functions");
    let read = |(index, function): (usize, &RawValue)| {
        tools::parse_function(function.get())
            .map(ToolDefinition::Function)
            .map_err(|error| error.at_index(index).at_segment("functions"))
    };
    functions.into_iter().enumerate().map(read).collect()
}

fn parse_options(fields: &mut Fields<'_>, wire: &mut Extra) -> Result<RequestOptions, Error> {
    let mut options = parse_common_options(fields, "max_completion_tokens")?;
    if options.max_output_tokens.is_none()
        && let Some(limit) = fields.take_as(&["max_tokens"], "a whole number")?
    {
        // Older hosts know only the older name; writing the newer one would lift the limit without
        // an error.
        set_hint(wire, MAX_TOKENS, "kept");
        options.max_output_tokens = Some(limit);
    }
    if let Some(effort) = fields.take_string(&["reasoning_effort"])? {
        record_unknown_effort(Some(&effort), wire);
        options.reasoning = Some(ReasoningOptions {
            effort: Some(effort),
            ..ReasoningOptions::default()
        });
    }
    options.stop = parse_stop(fields, wire)?;
    options.tool_choice = take_tool_choice(fields, tools::parse_tool_choice)?;
    options.response_format = fields
        .get(&["response_format"])
        .and_then(tools::parse_response_format);
    // Taken only if every member was understood; otherwise the whole stays with the request's own
    // fields.
    if options.response_format.is_some() {
        fields.take_field(&["response_format"])?;
    }
    Ok(options)
}

/// Takes the texts that end the answer: a string, or an array of strings.
fn parse_stop(fields: &mut Fields<'_>, wire: &mut Extra) -> Result<Vec<String>, Error> {
    match fields.get(&["stop"]).map(|value| value.get()) {
        Some(text) if text.starts_with('"') => {
            let stop = fields.take_string(&["stop"])?;
            set_hint(wire, STOP, "string");
            Ok(stop.into_iter().collect())
        }
        // An empty array stays with the request's own fields.
        Some("[]") | None => Ok(Vec::new()),
        Some(_) => {
            let stop = fields.take_as(&["stop"], "a text or texts")?;
            Ok(stop.unwrap_or_default())
        }
    }
}

pub(super) fn lower_envelope(dialect: &Dialect, request: &Transcript) -> Envelope {
    let mut losses = Losses::default();
    let (wire, told) = shared_options(&request.extra, FORMAT);
    let messages = request.instructions.iter().enumerate();
    let lead = messages.filter_map(|(index, message)| {
        encode::encode_instruction(dialect, index, message, &mut losses)
    });
    let lead: Vec<String> = lead.collect();
    let mut head = ObjectWriter::new();
    head.string_if_some("model", required_model(request, &wire, &mut losses));
    let tools = encode_tools(request, &wire, &mut head, &mut losses);
    let mut tail = ObjectWriter::new();
    encode_options(request, &wire, tools, &mut tail, &mut losses);
    report_foreign_fields_as(&told, NAME, "", LossKind::Option, &mut losses);
    // What was written above must not be repeated by a stored field of the same name.
    let mut taken = vec!["messages"];
    taken.extend(request.model.as_ref().map(|_| "model"));
    taken.extend(tools.then_some("tools"));
    tail.extra_fields(&without_keys(&taken, &wire));
    envelope_around("messages", &head, lead, &tail, losses)
}

/// Whether any tool could be written.
fn encode_tools(
    request: &Transcript,
    wire: &Extra,
    head: &mut ObjectWriter,
    losses: &mut Losses,
) -> bool {
    let legacy = hint(wire, LEGACY).is_some();
    let mut tools = Vec::new();
    for (index, tool) in request.tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        match tool {
            ToolDefinition::Function(tool) if legacy => {
                tools.push(tools::encode_function(tool, &path, losses))
            }
            tool => tools.extend(tools::encode_tool(tool, &path, losses)),
        }
    }
    if tools.is_empty() {
        return false;
    }
    head.array(if legacy { "functions" } else { "tools" }, &tools);
    true
}

fn encode_options(
    request: &Transcript,
    wire: &Extra,
    tools: bool,
    tail: &mut ObjectWriter,
    losses: &mut Losses,
) {
    let options = &request.options;
    let reasoning = options.reasoning.as_ref();
    report_token_budget(options, losses);
    if reasoning.is_some_and(|reasoning| reasoning.summary.is_some()) {
        let why = "thoughts are not shown";
        losses.push("options.reasoning.summary", LossKind::Option, why);
    }
    // A choice without tools is written only if this format's own request had one.
    let tools = tools || hint(wire, ALONE).is_some();
    encode_tool_options(options, tools, tools::encode_tool_choice, tail, losses);
    let format = options.response_format.as_ref();
    tail.raw_if_some("response_format", format.map(tools::encode_response_format));
    let is_older = hint(wire, MAX_TOKENS).is_some();
    let limit = if is_older {
        "max_tokens"
    } else {
        "max_completion_tokens"
    };
    tail.value_if_some(limit, options.max_output_tokens);
    let effort = reasoning.and_then(|reasoning| reasoning.effort.as_deref());
    tail.string_if_some("reasoning_effort", supported_effort(effort, wire, losses));
    tail.value_if_some("temperature", options.temperature.as_ref());
    tail.value_if_some("top_p", options.top_p.as_ref());
    encode_stop(&options.stop, wire, tail);
    tail.value_if_some("stream", options.stream);
}

/// Writes the texts that end the answer; a single one as a string if it came so.
fn encode_stop(stop: &[String], wire: &Extra, tail: &mut ObjectWriter) {
    match stop {
        [] => {}
        [one] if hint(wire, STOP).is_some() => {
            tail.string("stop", one);
        }
        many => {
            tail.array("stop", many.iter().map(|text| quote_json(text)));
        }
    }
}
