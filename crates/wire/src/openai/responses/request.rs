//! Everything of a request but its items.
//!
//! Members stand in this order: `model`, `tools`, `instructions`, `input`, then options, then what
//! only this format says. A first plain system message is written as `instructions`; the messages
//! that follow it, and one that came among the items, lead the items.

use contexture_ir::{
    Cancel, Error, Extra, Fields, Item, Message, Part, ReasoningOptions, RequestOptions, Role,
    Transcript, quote_json,
};

use super::parse::{LISTED, parse_input};
use super::part::report_foreign_wires;
use super::spec::{FORMAT, NAME};
use super::{encode_run, tools};
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
use crate::openai::shared::{
    envelope_around, strip_key_prefix, unexpected_value, with_key_prefix, without_key_prefixes,
    without_keys,
};

/// The hint of an `input` that is a string, or absent.
const INPUT: &str = "~input";
const TEXT: &str = "text.";
const REASONING: &str = "reasoning.";

pub(super) fn lift_request(
    mut fields: Fields<'_>,
    cancel: Option<&Cancel>,
) -> Result<Lifted, Error> {
    let mut transcript = Transcript::default();
    let mut wire = Extra::new();
    take_input(&mut fields, &mut wire, &mut transcript, cancel)?;
    take_instructions(&mut fields, &mut wire, &mut transcript)?;
    transcript.model = fields.take_string(&["model"])?;
    record_missing_model(&transcript, &mut wire);
    // An empty list, or what is none, stays among the rest and goes back as it came.
    let some = fields
        .get(&["tools"])
        .is_some_and(|value| value.get().starts_with('[') && value.get() != "[]");
    if some && let Some(tools) = fields.take_field(&["tools"])? {
        transcript.tools = tools::parse_tools(tools).map_err(|error| error.at_segment("tools"))?;
    }
    transcript.options = parse_options(&mut fields, &mut wire)?;
    if transcript.tools.is_empty() && has_tool_options(&transcript.options) {
        set_hint(&mut wire, ALONE, "kept");
    }
    wire.extend(to_extras(fields.into_extra()));
    transcript.extra.set_wire_fields(NAME, wire);
    Ok(Lifted {
        kind: DocumentKind::Request,
        transcript,
        losses: Vec::new(),
    })
}

/// Reads `input`: an array of items, a string that is the user's message, or nothing.
fn take_input(
    fields: &mut Fields<'_>,
    wire: &mut Extra,
    transcript: &mut Transcript,
    cancel: Option<&Cancel>,
) -> Result<(), Error> {
    match fields.take_present(&["input"])? {
        Some(value) if value.get().starts_with('"') => {
            // A string is short for one message of the user; the hint brings the short form back.
            set_hint(wire, INPUT, "string");
            let text = serde_json::from_str::<String>(value.get())
                .map_err(|_| unexpected_value("a string", value.get()).at_segment("input"))?;
            transcript
                .items
                .push(Message::text(Role::User, text).into());
        }
        Some(value) => parse_input(value.get(), transcript, cancel)
            .map_err(|error| error.at_segment("input"))?,
        None => set_hint(wire, INPUT, "absent"),
    }
    Ok(())
}

/// Reads `instructions`, which become the first system message.
fn take_instructions(
    fields: &mut Fields<'_>,
    wire: &mut Extra,
    transcript: &mut Transcript,
) -> Result<(), Error> {
    if let Some(text) = fields.take_string(&["instructions"])? {
        if text.is_empty() {
            // An empty text is no message, but the member was there and comes back.
            set_hint(wire, "~instructions", "empty");
        } else {
            // `instructions` counts before everything that stands in `input`.
            transcript
                .instructions
                .insert(0, Message::text(Role::System, text));
        }
    }
    Ok(())
}

fn parse_options(fields: &mut Fields<'_>, wire: &mut Extra) -> Result<RequestOptions, Error> {
    let mut options = parse_common_options(fields, "max_output_tokens")?;
    options.tool_choice = take_tool_choice(fields, tools::parse_tool_choice)?;
    options.response_format = parse_text_format(fields, wire)?;
    options.reasoning = parse_reasoning(fields, wire)?;
    Ok(options)
}

/// `text`: its format, if every format can say it; otherwise the whole stays as it came.
fn parse_text_format(
    fields: &mut Fields<'_>,
    wire: &mut Extra,
) -> Result<Option<contexture_ir::ResponseFormat>, Error> {
    let read = || {
        let mut inner = Fields::parse(fields.get(&["text"])?.get()).ok()?;
        let format = tools::parse_response_format(inner.take_field(&["format"]).ok()??.get())?;
        Some((format, inner.into_extra()))
    };
    let Some((format, rest)) = read() else {
        return Ok(None);
    };
    // The rest of `text` is stored flat, so that Chat can find `text.verbosity` among shared
    // options.
    wire.extend(with_key_prefix(TEXT, rest).collect());
    fields.take_field(&["text"])?;
    Ok(Some(format))
}

fn parse_reasoning(
    fields: &mut Fields<'_>,
    wire: &mut Extra,
) -> Result<Option<ReasoningOptions>, Error> {
    let read = || {
        let mut inner = Fields::parse(fields.get(&["reasoning"])?.get()).ok()?;
        let effort = inner.take_string(&["effort"]).ok()?;
        let summary = inner.take_string(&["summary"]).ok()?;
        (effort.is_some() || summary.is_some()).then(|| (effort, summary, inner.into_extra()))
    };
    let Some((effort, summary, rest)) = read() else {
        return Ok(None);
    };
    record_unknown_effort(effort.as_deref(), wire);
    wire.extend(with_key_prefix(REASONING, rest).collect());
    fields.take_field(&["reasoning"])?;
    Ok(Some(ReasoningOptions {
        effort,
        summary,
        budget_tokens: None,
    }))
}

/// The text for `instructions`: of a first message that is plain and did not come among the items.
fn plain_instructions(message: Option<&Message>) -> Option<&str> {
    let message = message.filter(|message| message.role == Role::System && message.id.is_none())?;
    let bare = message.extra.own_members().next().is_none()
        && hint(&message.extra.wire_fields(NAME), LISTED).is_none();
    match message.content.as_slice() {
        [part] if bare => {
            let plain = part
                .extra()
                .is_some_and(|extra| extra.own_members().next().is_none());
            part.as_text().filter(|text| plain && !text.is_empty())
        }
        _ => None,
    }
}

/// Reports the other formats' fields of the message that is written as `instructions`, which has no members.
fn report_instruction_fields(message: &Message, losses: &mut Losses) {
    report_foreign_wires(&message.extra, "instructions[0]", losses);
    for part in message.content.iter().filter_map(Part::extra) {
        report_foreign_wires(part, "instructions[0].content[0]", losses);
    }
}

pub(super) fn lower_envelope(dialect: &Dialect, request: &Transcript) -> Envelope {
    let mut losses = Losses::default();
    let (wire, told) = shared_options(&request.extra, FORMAT);
    let first = plain_instructions(request.instructions.first());
    if let Some(message) = request.instructions.first().filter(|_| first.is_some()) {
        report_instruction_fields(message, &mut losses);
    }
    let lead = encode_leading_messages(dialect, request, usize::from(first.is_some()), &mut losses);
    let mut head = ObjectWriter::new();
    head.string_if_some("model", required_model(request, &wire, &mut losses));
    let mut tools = Vec::new();
    for (index, tool) in request.tools.iter().enumerate() {
        let path = format!("tools[{index}]");
        tools.extend(tools::encode_tool(tool, &path, &mut losses));
    }
    let has_tools = !tools.is_empty();
    if has_tools {
        head.array("tools", &tools);
    }
    match first {
        Some(text) => head.string("instructions", text),
        None if hint(&wire, "~instructions").is_some() => head.string("instructions", ""),
        None => &mut head,
    };
    let mut tail = ObjectWriter::new();
    encode_options(request, &wire, has_tools, &mut tail, &mut losses);
    report_foreign_fields_as(&told, NAME, "", LossKind::Option, &mut losses);
    // What was written above must not be repeated by a stored field of the same name.
    let mut taken = Vec::new();
    taken.extend(request.model.as_ref().map(|_| "model"));
    taken.extend(has_tools.then_some("tools"));
    taken.extend(first.map(|_| "instructions"));
    let rest = without_key_prefixes(&[TEXT, REASONING], &wire);
    tail.extra_fields(&without_keys(&taken, &rest));
    envelope_around("input", &head, lead, &tail, losses)
}

fn encode_leading_messages(
    dialect: &Dialect,
    request: &Transcript,
    skip: usize,
    losses: &mut Losses,
) -> Vec<String> {
    let messages = request.instructions.iter().enumerate().skip(skip);
    messages
        .filter_map(|(index, message)| {
            encode_run::encode_instruction(dialect, index, message, losses)
        })
        .collect()
}

fn encode_options(
    request: &Transcript,
    wire: &Extra,
    tools: bool,
    tail: &mut ObjectWriter,
    losses: &mut Losses,
) {
    let options = &request.options;
    if !options.stop.is_empty() {
        let why = "there are no texts that end the answer";
        losses.push("options.stop", LossKind::Option, why);
    }
    report_token_budget(options, losses);
    // A choice without tools is written only if this format's own request had one.
    let tools = tools || hint(wire, ALONE).is_some();
    encode_tool_options(options, tools, tools::encode_tool_choice, tail, losses);
    let mut text = ObjectWriter::new();
    let format = options.response_format.as_ref();
    text.raw_if_some("format", format.map(tools::encode_response_format));
    text.extra_fields(&strip_key_prefix(TEXT, wire));
    if !text.is_empty() {
        tail.raw("text", &text.finish());
    }
    tail.value_if_some("max_output_tokens", options.max_output_tokens);
    encode_reasoning_options(options, wire, tail, losses);
    tail.value_if_some("temperature", options.temperature.as_ref());
    tail.value_if_some("top_p", options.top_p.as_ref());
    tail.value_if_some("stream", options.stream);
}

/// Writes `reasoning`: effort and summary, then the members that only this format knows.
fn encode_reasoning_options(
    options: &RequestOptions,
    wire: &Extra,
    tail: &mut ObjectWriter,
    losses: &mut Losses,
) {
    let mut reasoning = ObjectWriter::new();
    if let Some(options) = &options.reasoning {
        let effort = supported_effort(options.effort.as_deref(), wire, losses);
        reasoning.string_if_some("effort", effort);
        reasoning.string_if_some("summary", options.summary.as_deref());
    }
    reasoning.extra_fields(&strip_key_prefix(REASONING, wire));
    if !reasoning.is_empty() {
        tail.raw("reasoning", &reasoning.finish());
    }
}

/// The instructions as items: what leads a bare array, which has no place for `instructions`.
pub(super) fn encode_listed_instructions(dialect: &Dialect, request: &Transcript) -> String {
    encode_leading_messages(dialect, request, 0, &mut Losses::default()).join(",")
}

/// An `input` that came as a string, or not at all, goes so again while it still can.
pub(super) fn restore_input_shape(
    request: &Transcript,
    frame: &mut Envelope,
    chunks: &mut Vec<String>,
) {
    // The hint counts only while it is still possible: a history that has grown since is an array.
    let string = match hint(&request.extra.wire_fields(NAME), INPUT).as_deref() {
        Some("string") if frame.lead.is_empty() => plain_input(&request.items),
        Some("absent") if frame.lead.is_empty() && request.items.is_empty() => None,
        _ => return,
    };
    // The envelope is text already, so the array's brackets are cut off its two ends.
    let Some(before) = frame.before.strip_suffix("\"input\":[") else {
        return;
    };
    let Some(after) = frame.after.strip_prefix(']') else {
        return;
    };
    (frame.before, frame.after) = match string {
        Some(text) => (
            format!("{before}\"input\":{}", quote_json(text)),
            after.to_owned(),
        ),
        // The member goes altogether, and with it one of the two commas beside it.
        None if request.items.is_empty() => {
            let before = before.strip_suffix(',').unwrap_or(before).to_owned();
            let after = if before == "{" {
                after.strip_prefix(',').unwrap_or(after)
            } else {
                after
            };
            (before, after.to_owned())
        }
        None => return,
    };
    // Whatever they held is now in `before`.
    chunks.clear();
}

/// The text, if it is all there is.
fn plain_input(items: &[Item]) -> Option<&str> {
    match items {
        // A message with fields of its own cannot be a string without losing them.
        [Item::Message(message)] if message.role == Role::User && message.extra.is_empty() => {
            match message.content.as_slice() {
                [part] if part.extra().is_some_and(Extra::is_empty) => part.as_text(),
                _ => None,
            }
        }
        _ => None,
    }
}
