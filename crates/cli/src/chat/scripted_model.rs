//! Models that answer from a file: JSON, a line each.
//!
//! A script's lines are answers in their order:
//!
//! * a string: the text of an answer,
//! * `{"text"?, "calls": [{"name", "arguments"?}]}`: an answer that calls tools,
//! * any other object: a provider's whole answer, as it is.
//!
//! A recording's lines are `{"request", "response"}`: two bodies. A response that is a list holds the events of a stream.

use std::collections::VecDeque;

use contexture::ir::{FunctionCall, Raw, Role, Transcript};
use contexture::models::{
    CannedReply, ModelError, ModelResponse, RecordedExchange, ReplayMatching, ReplayModel,
    ScriptedModel,
};
use contexture::wire::{Dialect, DocumentKind};
use contexture::{Format, Item, Message, lower};
use serde::Deserialize;

use crate::input::InputSource;
use crate::output::error_messages::not_json;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::count_with_noun;

/// An answer of a script.
#[derive(Clone, Debug)]
enum ScriptLine {
    Text(String),
    Calls(ScriptedCalls),
    Body(String),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCalls {
    #[serde(default)]
    text: Option<String>,
    calls: Vec<ScriptedCall>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ScriptedCall {
    name: String,
    #[serde(default)]
    arguments: Option<Raw>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct RecordedLine {
    request: Raw,
    response: Raw,
}

/// A model that says what a file says.
///
/// # Errors
/// The file cannot be read, or a line is no answer.
pub(crate) fn load_scripted_model(source: &InputSource) -> Outcome<ScriptedModel> {
    // All lines are read first: a mistake in the last one is told before anything is stored.
    let mut lines: VecDeque<ScriptLine> = parse_each_line(source, parse_line)?.into();
    let all = lines.len();
    let mut asked = 0;
    Ok(ScriptedModel::with_fn(move |request| {
        asked += 1;
        match lines.pop_front() {
            Some(line) => Ok(ModelResponse::new(line.into_body(request.format, asked))),
            None => Err(ModelError::NoAnswer {
                model: request.model.clone(),
                call: asked,
                reason: format!("the script has {}", count_with_noun(all as u64, "answer")),
            }),
        }
    }))
}

/// A model that answers each request as it was answered when it was recorded.
///
/// # Errors
/// The file cannot be read, or a line is no exchange.
pub(crate) fn load_replay_model(source: &InputSource) -> Outcome<ReplayModel> {
    let exchanges = parse_each_line(source, |text| {
        let recorded: RecordedLine = parse_json(text)?;
        Ok(RecordedExchange {
            request: recorded.request.get().to_owned(),
            response: parse_reply(&recorded.response)?,
        })
    })?;
    Ok(ReplayModel::new(exchanges, ReplayMatching::Payload))
}

/// What each line is that is not empty; at least one must be.
fn parse_each_line<T>(source: &InputSource, of: impl Fn(&str) -> Outcome<T>) -> Outcome<Vec<T>> {
    // Line numbers are those of the file, so empty lines are counted before they are left out.
    let text = source.read_text()?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(at, line)| {
        of(line).map_err(|failure| failure.with_context(format_args!("{source} line {}", at + 1)))
    });
    let read: Vec<T> = read.collect::<Outcome<_>>()?;
    if read.is_empty() {
        let message = format!("{source} is empty, expected an answer per line");
        return Err(Failure::bad_input("empty_script", message)
            .with_hint("the shortest one is a text in quotes: \"Hello.\""));
    }
    Ok(read)
}

fn parse_line(text: &str) -> Outcome<ScriptLine> {
    let raw: Raw = parse_json(text)?;
    let line = raw.get().trim_start();
    if line.starts_with('"') {
        return Ok(ScriptLine::Text(parse_json(line)?));
    }
    if !line.starts_with('{') {
        let message = "expected a text in quotes or an object";
        return Err(Failure::bad_input("not_an_answer", message).with_hint(
            "an answer is \"text\", {\"text\", \"calls\"} or a provider's whole answer",
        ));
    }
    let fields: std::collections::BTreeMap<String, Raw> = parse_json(line)?;
    // No provider's answer has a field of this name at its top.
    match fields.contains_key("calls") {
        true => Ok(ScriptLine::Calls(parse_json(line)?)),
        false => Ok(ScriptLine::Body(line.to_owned())),
    }
}

fn parse_json<'de, T: Deserialize<'de>>(text: &'de str) -> Outcome<T> {
    serde_json::from_str(text).map_err(|error| match error.is_data() {
        true => {
            let text = error.to_string();
            // The line the parser counts is always the first: the file's line is named around this.
            let what = text.split(" at line ").next().unwrap_or(&text);
            Failure::bad_input("not_an_answer", what)
        }
        false => not_json(&error),
    })
}

/// A whole body, or the events of a stream.
fn parse_reply(response: &Raw) -> Outcome<CannedReply> {
    let text = response.get();
    if !text.starts_with('[') {
        return Ok(CannedReply::from(text));
    }
    // A list holds the events of a stream; no provider's whole answer is a list.
    let events: Vec<Raw> = parse_json(text)?;
    let data = events.iter().map(|event| {
        // `[DONE]` and the like are recorded as texts.
        let text = serde_json::from_str::<String>(event.get());
        Ok(text.unwrap_or_else(|_| event.get().to_owned()))
    });
    Ok(CannedReply::Events(data.collect()))
}

impl ScriptLine {
    /// The body by which a provider says it, as the answer to call `number`.
    fn into_body(self, format: Format, number: usize) -> String {
        match self {
            // Without figures of what it used: nobody was asked, and a bill for it would look like a mistake.
            Self::Text(text) => ScriptedCalls::from_text(text).into_body(format, number),
            Self::Body(body) => body,
            Self::Calls(said) => said.into_body(format, number),
        }
    }
}

impl ScriptedCalls {
    const fn from_text(text: String) -> Self {
        Self {
            text: Some(text),
            calls: Vec::new(),
        }
    }

    fn into_body(self, format: Format, number: usize) -> String {
        let mut transcript = Transcript {
            model: Some("scripted".to_owned()),
            ..Transcript::default()
        };
        if let Some(text) = self.text {
            let message = Message::text(Role::Assistant, text);
            transcript.items.push(Item::Message(message));
        }
        for (index, call) in self.calls.into_iter().enumerate() {
            // Unique in the run: the request's number, and the call's place in its answer.
            let id = format!("call_{number}_{index}");
            let arguments = call.arguments.as_ref().map_or("{}", Raw::get);
            let call = FunctionCall::new(id, call.name, arguments);
            transcript.items.push(Item::FunctionCall(call));
        }
        // The same road as real answers: the run reads it as the provider's own format.
        lower(&Dialect::of(format), DocumentKind::Response, &transcript).json
    }
}
