//! Responses: the first choice is the answer, further ones are alternatives.
//!
//! A response written for a transcript that came from elsewhere has its required members made up
//! deterministically: `created` 0, an id from the content's hash.

use contexture_ir::{
    Error, Extra, Fields, FinishReason, Item, Raw, ResponseInfo, Role, Transcript, Usage,
};
use serde_json::value::RawValue;

use super::assistant_message::{AssistantCall, AssistantMessage, BodyKind};
use super::custom::{self, ExtensionSide};
use super::message::TranscriptParser;
use super::spec::NAME;
use crate::model::conversion::DocumentKind;
use crate::model::conversion::{Lifted, Lowered};
use crate::model::format_extras::{hint, report_foreign_fields, set_hint, to_extras};
use crate::model::json::{ObjectWriter, json_array};
use crate::model::loss::{LossKind, Losses};
use crate::model::paired_item::{PairedItem, paired_items};
use crate::openai::shared::{
    UsageFields, strip_key_prefix, unexpected_value, usage_fields, with_key_prefix,
    without_key_prefixes,
};

/// The prefix of the first choice's own fields.
const CHOICE: &str = "choice.";
/// Choices beyond the first, verbatim.
const OTHERS: &str = "choices";
/// The hint of a finish reason that is not the usual word for what it means.
const FINISH: &str = "~finish_reason";
const OBJECT: &str = "chat.completion";

pub(super) fn lift_response(mut fields: Fields<'_>) -> Result<Lifted, Error> {
    let mut wire = Extra::new();
    let choices: Vec<&RawValue> = fields
        .take_as(&["choices"], "an array of choices")?
        .unwrap_or_default();
    let mut reader = TranscriptParser::for_response();
    let mut finish = None;
    if let Some((first, others)) = choices.split_first() {
        finish = parse_choice(first.get(), &mut reader, &mut wire)
            .map_err(|error| error.at_index(0).at_segment("choices"))?;
        if !others.is_empty() {
            // Items hold one answer; the alternatives are stored whole and written back by this
            // format only.
            wire.set(OTHERS, Raw::from_value(&others)?);
        }
    } else {
        set_hint(&mut wire, "~choices", "none");
    }
    let (mut transcript, losses) = reader.finish();
    transcript.model = fields.take_string(&["model"])?;
    let usage = match fields.take_present(&["usage"])? {
        Some(usage) => Some(parse_usage(usage.get()).map_err(|error| error.at_segment("usage"))?),
        None => None,
    };
    transcript.response = Some(ResponseInfo {
        id: fields.take_string(&["id"])?,
        finish,
        usage,
    });
    if fields
        .get(&["object"])
        // The usual values are written without being stored; others stay, and absence leaves a
        // hint.
        .is_some_and(|value| value.get() == "\"chat.completion\"")
    {
        fields.take_field(&["object"])?;
    } else if fields.get(&["object"]).is_none() {
        set_hint(&mut wire, "~object", "absent");
    }
    wire.extend(to_extras(fields.into_extra()));
    transcript.extra.set_wire_fields(NAME, wire);
    Ok(Lifted {
        kind: DocumentKind::Response,
        transcript,
        losses,
    })
}

fn parse_choice(
    text: &str,
    reader: &mut TranscriptParser,
    wire: &mut Extra,
) -> Result<Option<FinishReason>, Error> {
    let mut fields = Fields::parse(text)?;
    let message = fields.take_present(&["message"])?.ok_or(Error::Missing {
        path: String::new(),
        field: "message",
    })?;
    let mut read = |text| {
        let mut message = Fields::parse(text)?;
        match message.take_string(&["role"])?.as_deref() {
            Some("assistant") => {}
            None => set_hint(wire, "~role", "absent"),
            Some(other) => return Err(unexpected_value("assistant", other).at_segment("role")),
        }
        reader.parse_assistant_message(0, message)
    };
    read(message.get()).map_err(|error: Error| error.at_segment("message"))?;
    let reason = fields.take_string(&["finish_reason"])?;
    let finish = reason.as_deref().map(parse_finish_reason);
    if let (Some(reason), Some(finish)) = (&reason, &finish)
        // Several words mean one reason; the hint gives this very word back.
        && finish_reason_word(finish) != Some(reason)
    {
        set_hint(wire, FINISH, reason);
    }
    if fields
        .get(&["index"])
        .is_some_and(|value| value.get() == "0")
    {
        fields.take_field(&["index"])?;
    } else if fields.get(&["index"]).is_none() {
        set_hint(wire, "~index", "absent");
    }
    wire.extend(with_key_prefix(CHOICE, fields.into_extra()).collect());
    Ok(finish)
}

pub(super) fn parse_finish_reason(word: &str) -> FinishReason {
    match word {
        "stop" => FinishReason::Stop,
        "tool_calls" | "function_call" => FinishReason::ToolCalls,
        "length" => FinishReason::Length,
        "content_filter" => FinishReason::ContentFilter,
        other => FinishReason::Other(other.to_owned()),
    }
}

fn finish_reason_word(finish: &FinishReason) -> Option<&str> {
    match finish {
        FinishReason::Other(_) => None,
        known => Some(known.as_str()),
    }
}

/// Reads the token counts; the object itself is stored whole.
pub(super) fn parse_usage(text: &str) -> Result<Usage, Error> {
    let fields = Fields::parse(text)?;
    let figures = UsageFields(&fields);
    let mut usage = Usage {
        input_tokens: figures.get("prompt_tokens"),
        output_tokens: figures.get("completion_tokens"),
        total_tokens: figures.get("total_tokens"),
        cache_read_tokens: figures.get_nested("prompt_tokens_details", "cached_tokens"),
        cache_write_tokens: figures.get_nested("prompt_tokens_details", "cache_write_tokens"),
        reasoning_tokens: figures.get_nested("completion_tokens_details", "reasoning_tokens"),
        extra: Extra::new(),
    };
    usage
        .extra
        .set_wire_fields(NAME, usage_fields(fields.into_extra()));
    Ok(usage)
}

fn encode_usage(usage: &Usage) -> String {
    let own = usage.extra.wire_fields(NAME);
    let mut object = ObjectWriter::new();
    if !own.is_empty() {
        object.extra_fields(&own);
        return object.finish();
    }
    let input = usage.input_tokens.unwrap_or(0);
    let output = usage.output_tokens.unwrap_or(0);
    object.raw("prompt_tokens", &input.to_string());
    object.raw("completion_tokens", &output.to_string());
    let total = usage.total_tokens.unwrap_or(input.saturating_add(output));
    object.raw("total_tokens", &total.to_string());
    let text = |figure: Option<u64>| figure.map(|figure| figure.to_string());
    let mut details = ObjectWriter::new();
    details.raw_if_some("cached_tokens", text(usage.cache_read_tokens));
    details.raw_if_some("cache_write_tokens", text(usage.cache_write_tokens));
    if !details.is_empty() {
        object.raw("prompt_tokens_details", &details.finish());
    }
    if let Some(figure) = text(usage.reasoning_tokens) {
        let mut details = ObjectWriter::new();
        details.raw("reasoning_tokens", &figure);
        object.raw("completion_tokens_details", &details.finish());
    }
    object.finish()
}

/// Writes `choices`: the answer, then the alternatives that the source had, as they came.
fn encode_choices(choice: Option<String>, wire: &Extra) -> String {
    let stored = wire.get(OTHERS);
    let others = stored.and_then(|raw| raw.parse_as::<Vec<Box<RawValue>>>().ok());
    let others = others.unwrap_or_default();
    if choice.is_none() && others.is_empty() && stored.is_some_and(|own| own.get() == "null") {
        return "null".to_owned();
    }
    let others = others.iter().map(|other| other.get().to_owned());
    json_array(choice.into_iter().chain(others))
}

pub(super) fn lower_response(transcript: &Transcript) -> Lowered {
    let mut losses = Losses::default();
    let wire = transcript.extra.wire_fields(NAME);
    let info = transcript.response.clone().unwrap_or_default();
    let entries = paired_items(&transcript.items);
    let mut step = gather_assistant_message(&entries, &mut losses);
    step.omits_role = hint(&wire, "~role").is_some();
    let calls = !step.calls.is_empty();
    let mut inner = Losses::default();
    let message = step.encode_message(BodyKind::Response, &mut inner);
    losses.extend_with_prefix("items", inner);
    let message = message.unwrap_or_else(|| "{\"role\":\"assistant\",\"content\":null}".to_owned());
    let mut object = ObjectWriter::new();
    let mut id = info.id.clone();
    if id.is_none() && wire.is_empty() {
        let hash = contexture_ir::ContentHash::of(message.as_bytes());
        id = Some(format!("chatcmpl-{hash}"));
    }
    object.string_if_some("id", id.as_deref());
    if hint(&wire, "~object").is_none() && wire.get("object").is_none() {
        object.string("object", OBJECT);
    }
    object.raw_if_some(
        "created",
        wire.get("created")
            .map_or(wire.is_empty().then_some("0"), |value| Some(value.get())),
    );
    let model = transcript
        .model
        .as_deref()
        .or(wire.is_empty().then_some("unknown"));
    object.string_if_some("model", model);
    // A response that came without choices goes without, while there is still nothing to write.
    let has_choice = hint(&wire, "~choices").is_none() || !transcript.items.is_empty();
    let choice = has_choice.then(|| encode_choice(&info, &wire, &message, calls, &mut losses));
    object.raw(OTHERS, &encode_choices(choice, &wire));
    object.raw_if_some("usage", info.usage.as_ref().map(encode_usage));
    report_foreign_fields(&transcript.extra, NAME, "", &mut losses);
    object.extra_fields(&without_key_prefixes(&[CHOICE], &wire));
    Lowered {
        json: object.finish(),
        losses: losses.into_vec(),
    }
}

fn encode_choice(
    info: &ResponseInfo,
    wire: &Extra,
    message: &str,
    calls: bool,
    losses: &mut Losses,
) -> String {
    let mut object = ObjectWriter::new();
    if hint(wire, "~index").is_none() && wire.get("choice.index").is_none() {
        object.raw("index", "0");
    }
    object.raw("message", message);
    let word = match (&info.finish, hint(wire, FINISH)) {
        (Some(finish), Some(word)) if parse_finish_reason(&word) == *finish => Some(word),
        (Some(finish), _) => Some(finish_reason_word(finish).map_or_else(
            || {
                losses.push(
                    "response.finish",
                    LossKind::Value,
                    "no such reason to finish; written `stop`",
                );
                "stop".to_owned()
            },
            str::to_owned,
        )),
        (None, _) if wire.is_empty() => Some(if calls { "tool_calls" } else { "stop" }.to_owned()),
        (None, _) => None,
    };
    object.string_if_some("finish_reason", word.as_deref());
    object.extra_fields(&strip_key_prefix(CHOICE, wire));
    object.finish()
}

/// Everything the model produced, as one message.
fn gather_assistant_message<'a>(
    entries: &[PairedItem<'a>],
    losses: &mut Losses,
) -> AssistantMessage<'a> {
    let mut step = AssistantMessage::default();
    for (index, entry) in entries.iter().enumerate() {
        let path = format!("items[{index}]");
        match entry.item {
            Item::Message(message) if message.role == Role::Assistant => {
                if !step.calls.is_empty() {
                    let why = "text after a call is written before it";
                    losses.push(&path, LossKind::Order, why);
                }
                // An answer is one message in Chat, however many its source had.
                if !step.messages.is_empty() {
                    let why = "several messages are written as one";
                    losses.push(&path, LossKind::Order, why);
                }
                report_foreign_fields(&message.extra, NAME, &path, losses);
                step.messages.push((index, message));
            }
            Item::FunctionCall(call) => {
                step.calls
                    .push((index, AssistantCall::Function(call, entry.call_id())));
            }
            Item::Reasoning(item) if !item.extra.wire_fields(NAME).is_empty() => {
                step.thoughts.push((index, item))
            }
            Item::Reasoning(item) => {
                let opaque = item.encrypted_content.is_some() || item.signature.is_some();
                let what = if opaque {
                    LossKind::Opaque
                } else {
                    LossKind::Item
                };
                losses.push(path, what, "thoughts of another provider");
            }
            Item::Extension(item) if item.kind.starts_with("ctx:") => {}
            Item::Extension(item)
                if matches!(custom::extension_side(item), Some(ExtensionSide::Call)) =>
            {
                step.calls.push((index, AssistantCall::Other(item)));
            }
            other => {
                let why = format!("a response has no word for `{}`", other.kind());
                losses.push(path, LossKind::Item, why);
            }
        }
    }
    step
}
