//! Options, tools and the model of a request, as both OpenAI formats have them.
//!
//! Not here: how each format nests them (`chat/request.rs`, `responses/request.rs`).

use contexture_ir::{
    Error, Extra, Fields, Raw, RequestOptions, ToolChoice, ToolDefinition, Transcript,
};
use serde_json::Number;
use serde_json::value::RawValue;

use crate::model::format::Format;
use crate::model::format_extras::{hint, set_hint};
use crate::model::json::ObjectWriter;
use crate::model::loss::{LossKind, Losses};
use crate::openai::shared::unexpected_value;

/// What stands in a user's message of which nothing could be written.
pub(in crate::openai) const OMITTED: &str = "[Content that cannot be shown.]";

/// How much to think, in the words of both formats; hosts have others.
const EFFORTS: [&str; 7] = ["none", "minimal", "low", "medium", "high", "xhigh", "max"];
/// The hint of a word that only a host of the format knows.
const EFFORT: &str = "~effort";

/// Notes an effort that only a host of the format knows.
pub(in crate::openai) fn record_unknown_effort(effort: Option<&str>, wire: &mut Extra) {
    if effort.is_some_and(|word| !EFFORTS.contains(&word)) {
        set_hint(wire, EFFORT, "kept");
    }
}

/// The effort to write: a known word, or one that came in this format.
pub(in crate::openai) fn supported_effort<'a>(
    effort: Option<&'a str>,
    wire: &Extra,
    losses: &mut Losses,
) -> Option<&'a str> {
    let word = effort?;
    if EFFORTS.contains(&word) || hint(wire, EFFORT).is_some() {
        return Some(word);
    }
    losses.push(
        "options.reasoning.effort",
        LossKind::Option,
        format!("no such effort as `{word}`"),
    );
    None
}

/// Options both formats have, under one name and of one meaning.
const SHARED: [&str; 9] = [
    "metadata",
    "moderation",
    "prompt_cache_key",
    "prompt_cache_retention",
    "safety_identifier",
    "service_tier",
    "store",
    "top_logprobs",
    "user",
];
/// How wordy the answer is: its name in Chat, and where Responses has it.
const VERBOSITY: (&str, &str) = ("verbosity", "text.verbosity");

/// Whether a shared option's value is one that both formats take; hosts have tiers of their own.
fn is_supported_by_both(name: &str, value: &Raw) -> bool {
    let text = value.get();
    let word = |words: &[&str]| {
        value
            .as_string()
            .is_some_and(|word| words.contains(&&*word))
    };
    match name {
        "service_tier" => word(&["auto", "default", "flex", "scale", "priority", "fast"]),
        "verbosity" | "text.verbosity" => word(&["low", "medium", "high"]),
        "metadata" | "moderation" => text.starts_with('{'),
        "store" => matches!(text, "true" | "false"),
        "top_logprobs" => text.parse::<u8>().is_ok(),
        _ => text.starts_with('"'),
    }
}

/// Returns the fields stored for a format together with the options of the other format that this one has
/// as well, and the request's fields without those, whose loss is to be reported.
pub(in crate::openai) fn shared_options(request: &Extra, format: Format) -> (Extra, Extra) {
    let chat = format == Format::OpenAiChat;
    let (other, verbosity) = if chat {
        (Format::OpenAiResponses, (VERBOSITY.1, VERBOSITY.0))
    } else {
        (Format::OpenAiChat, VERBOSITY)
    };
    let mut own = request.wire_fields(format.as_str());
    let mut theirs = request.wire_fields(other.as_str());
    // Most requests come from one format only; this spares building both sets.
    if theirs.is_empty() {
        return (own, request.clone());
    }
    for (from, to) in SHARED
        .map(|name| (name, name))
        .into_iter()
        .chain([verbosity])
    {
        // What the request says in this format wins over what it says in the other.
        if own.get(to).is_some()
            || !theirs
                .get(from)
                .is_some_and(|value| is_supported_by_both(to, value))
        {
            continue;
        }
        if let Some(value) = theirs.remove(from) {
            own.set(to, value);
            // Chat refuses the one without the other.
            let alone = chat && to == "top_logprobs" && own.get("logprobs").is_none();
            if let Some(yes) = Raw::parse("true").ok().filter(|_| alone) {
                own.set("logprobs", yes);
            }
        }
    }
    // What was moved over is no loss, so it is taken out of what gets reported.
    let mut rest = request.clone();
    rest.set_wire_fields(other.as_str(), theirs);
    (own, rest)
}

/// Reads `tools`, each with the format's own reader.
pub(in crate::openai) fn parse_tools(
    value: &RawValue,
    read: impl Fn(&str) -> Result<ToolDefinition, Error>,
) -> Result<Vec<ToolDefinition>, Error> {
    let tools: Vec<&RawValue> = serde_json::from_str(value.get())
        .map_err(|_| unexpected_value("an array of tools", value.get()))?;
    let read = |(index, tool): (usize, &&RawValue)| {
        read(tool.get()).map_err(|error| error.at_index(index))
    };
    tools.iter().enumerate().map(read).collect()
}

/// Reads `tool_choice`: a word, the one function that `named` finds in it, or what is stored whole because
/// not every format can say it.
pub(in crate::openai) fn parse_tool_choice(
    value: &RawValue,
    format: Format,
    named: impl Fn(&str) -> Option<String>,
) -> ToolChoice {
    match value.get() {
        "\"auto\"" => ToolChoice::Auto,
        "\"none\"" => ToolChoice::None,
        "\"required\"" => ToolChoice::Required,
        text => named(text).map_or_else(
            || ToolChoice::Other {
                format: format.as_str().to_owned(),
                raw: value.into(),
            },
            |name| ToolChoice::Function { name },
        ),
    }
}

/// Reads the options that both formats have under one name; `limit` is the name of the output limit.
pub(in crate::openai) fn parse_common_options(
    fields: &mut Fields<'_>,
    limit: &'static str,
) -> Result<RequestOptions, Error> {
    let number = "a number";
    Ok(RequestOptions {
        max_output_tokens: fields.take_as(&[limit], "a whole number")?,
        temperature: fields.take_as::<Number>(&["temperature"], number)?,
        top_p: fields.take_as::<Number>(&["top_p"], number)?,
        parallel_tool_calls: fields.take_as(&["parallel_tool_calls"], "a boolean")?,
        stream: fields.take_as(&["stream"], "a boolean")?,
        ..RequestOptions::default()
    })
}

/// Takes the choice of tools; a `null` stays with the request's own fields, so that it comes back.
pub(in crate::openai) fn take_tool_choice(
    fields: &mut Fields<'_>,
    parse: impl Fn(&RawValue) -> ToolChoice,
) -> Result<Option<ToolChoice>, Error> {
    let is_set = fields
        .get(&["tool_choice"])
        .is_some_and(|value| value.get() != "null");
    if !is_set {
        return Ok(None);
    }
    Ok(fields.take_field(&["tool_choice"])?.map(parse))
}

/// Reports whether options say something about the use of tools.
pub(in crate::openai) fn has_tool_options(options: &RequestOptions) -> bool {
    options.tool_choice.is_some() || options.parallel_tool_calls.is_some()
}

/// Reports what neither format has a word for: a limit of thinking in tokens.
pub(in crate::openai) fn report_token_budget(options: &RequestOptions, losses: &mut Losses) {
    let reasoning = options.reasoning.as_ref();
    if reasoning.is_some_and(|reasoning| reasoning.budget_tokens.is_some()) {
        let why = "thinking is limited by effort, not by tokens";
        losses.push("options.reasoning.budget_tokens", LossKind::Option, why);
    }
}

/// Writes the choice of tools and whether calls may be parallel, if there are tools to choose from.
pub(in crate::openai) fn encode_tool_options(
    options: &RequestOptions,
    has_tools: bool,
    encode_choice: impl Fn(&ToolChoice, &mut Losses) -> Option<String>,
    tail: &mut ObjectWriter,
    losses: &mut Losses,
) {
    if !has_tools {
        // Both formats refuse the whole request for a choice without tools.
        if has_tool_options(options) {
            let why = "a choice without tools is refused";
            losses.push("options.tool_choice", LossKind::Option, why);
        }
        return;
    }
    if let Some(choice) = &options.tool_choice {
        tail.raw_if_some("tool_choice", encode_choice(choice, losses));
    }
    tail.value_if_some("parallel_tool_calls", options.parallel_tool_calls);
}

/// The hint of a request that names no model.
const MODEL: &str = "~model";

/// Notes that a request names no model, as where a deployment's address does.
pub(in crate::openai) fn record_missing_model(request: &Transcript, wire: &mut Extra) {
    if request.model.is_none() {
        set_hint(wire, MODEL, "absent");
    }
}

/// The model to write; nothing if this format's own request named none.
pub(in crate::openai) fn required_model<'t>(
    request: &'t Transcript,
    wire: &Extra,
    losses: &mut Losses,
) -> Option<&'t str> {
    if let Some(model) = &request.model {
        return Some(model);
    }
    if hint(wire, MODEL).is_some() {
        return None;
    }
    let why = "the provider demands a model; none is named";
    losses.push("model", LossKind::Value, why);
    Some("")
}
