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

use contexture::ir::{FunctionCall, Raw, Transcript};
use contexture::llm::{
    Exchange, Matching, ModelError, ModelResponse, ReplayModel, Reply, ScriptedModel, text_response,
};
use contexture::wire::Kind;
use contexture::{Dialect, Format, Item, Message, Role, lower};
use serde::Deserialize;

use crate::explain::not_json;
use crate::failure::{Failure, Outcome};
use crate::input::Source;
use crate::printable::counted;

/// An answer of a script.
#[derive(Clone, Debug)]
enum Line {
    Text(String),
    Calls(Calls),
    Body(String),
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Calls {
    #[serde(default)]
    text: Option<String>,
    calls: Vec<Call>,
}

#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Call {
    name: String,
    #[serde(default)]
    arguments: Option<Raw>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    request: Raw,
    response: Raw,
}

/// A model that says what a file says.
///
/// # Errors
/// The file cannot be read, or a line is no answer.
pub(crate) fn scripted(source: &Source) -> Outcome<ScriptedModel> {
    let mut lines: VecDeque<Line> = each(source, line)?.into();
    let all = lines.len();
    let mut asked = 0;
    Ok(ScriptedModel::by(move |request| {
        asked += 1;
        match lines.pop_front() {
            Some(line) => Ok(ModelResponse::new(line.body(request.format, asked))),
            None => Err(ModelError::NoAnswer {
                model: request.model.clone(),
                call: asked,
                why: format!("the script has {}", counted(all as u64, "answer")),
            }),
        }
    }))
}

/// A model that answers each request as it was answered when it was recorded.
///
/// # Errors
/// The file cannot be read, or a line is no exchange.
pub(crate) fn replayed(source: &Source) -> Outcome<ReplayModel> {
    let exchanges = each(source, |text| {
        let recorded: Recorded = read(text)?;
        Ok(Exchange {
            request: recorded.request.get().to_owned(),
            response: reply(&recorded.response)?,
        })
    })?;
    Ok(ReplayModel::new(exchanges, Matching::Payload))
}

/// What each line is that is not empty; at least one must be.
fn each<T>(source: &Source, of: impl Fn(&str) -> Outcome<T>) -> Outcome<Vec<T>> {
    let text = source.read()?;
    let lines = text.lines().enumerate();
    let lines = lines.filter(|(_, line)| !line.trim().is_empty());
    let read = lines.map(|(at, line)| {
        of(line).map_err(|failure| failure.of(format_args!("{source} line {}", at + 1)))
    });
    let read: Vec<T> = read.collect::<Outcome<_>>()?;
    if read.is_empty() {
        let message = format!("{source} is empty, expected an answer per line");
        return Err(Failure::bad_input("empty_script", message)
            .hint("the shortest one is a text in quotes: \"Hello.\""));
    }
    Ok(read)
}

fn line(text: &str) -> Outcome<Line> {
    let raw: Raw = read(text)?;
    let line = raw.get().trim_start();
    if line.starts_with('"') {
        return Ok(Line::Text(read(line)?));
    }
    if !line.starts_with('{') {
        let message = "expected a text in quotes or an object";
        return Err(Failure::bad_input("not_an_answer", message)
            .hint("an answer is \"text\", {\"text\", \"calls\"} or a provider's whole answer"));
    }
    let fields: std::collections::BTreeMap<String, Raw> = read(line)?;
    match fields.contains_key("calls") {
        true => Ok(Line::Calls(read(line)?)),
        false => Ok(Line::Body(line.to_owned())),
    }
}

fn read<'de, T: Deserialize<'de>>(text: &'de str) -> Outcome<T> {
    serde_json::from_str(text).map_err(|error| match error.is_data() {
        true => {
            let text = error.to_string();
            let what = text.split(" at line ").next().unwrap_or(&text);
            Failure::bad_input("not_an_answer", what)
        }
        false => not_json(&error),
    })
}

/// A whole body, or the events of a stream.
fn reply(response: &Raw) -> Outcome<Reply> {
    let text = response.get();
    if !text.starts_with('[') {
        return Ok(Reply::from(text));
    }
    let events: Vec<Raw> = read(text)?;
    let data = events.iter().map(|event| {
        // `[DONE]` and the like are recorded as texts.
        let text = serde_json::from_str::<String>(event.get());
        Ok(text.unwrap_or_else(|_| event.get().to_owned()))
    });
    Ok(Reply::Events(data.collect()))
}

impl Line {
    /// The body by which a provider says it, as the answer to call `number`.
    fn body(self, format: Format, number: usize) -> String {
        match self {
            Self::Text(text) => text_response(format, &text),
            Self::Body(body) => body,
            Self::Calls(said) => said.body(format, number),
        }
    }
}

impl Calls {
    fn body(self, format: Format, number: usize) -> String {
        let mut transcript = Transcript {
            model: Some("scripted".to_owned()),
            ..Transcript::default()
        };
        if let Some(text) = self.text {
            let message = Message::text(Role::Assistant, text);
            transcript.items.push(Item::Message(message));
        }
        for (index, call) in self.calls.into_iter().enumerate() {
            let id = format!("call_{number}_{index}");
            let arguments = call.arguments.as_ref().map_or("{}", Raw::get);
            let call = FunctionCall::new(id, call.name, arguments);
            transcript.items.push(Item::FunctionCall(call));
        }
        lower(&Dialect::of(format), Kind::Response, &transcript).json
    }
}
