//! Stream events: what a stream of any provider says, piece by piece, in one vocabulary.
//!
//! Pieces are what a provider counts as one: an item, a content block, a call. They are numbered as they
//! come; the items of the finished answer may join neighbouring ones. Not here: how events are read, which
//! is each format's own.

use contexture_ir::{Fields, FinishReason, Usage};
use serde_json::value::RawValue;

use crate::model::format::Format;
use crate::model::json::string_field;

/// One event of a stream, in the same words for all providers. Values are copies and never change later.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum StreamEvent {
    /// The answer begins. A second such event means that it begins anew: what came before is void.
    Started {
        /// The id of the answer; `None` if the provider gives none.
        id: Option<String>,
        /// The model that answers; `None` if the provider does not name it.
        model: Option<String>,
    },
    /// A piece begins.
    ItemAdded {
        /// The piece's number, from 0.
        piece: usize,
        /// The kind of the piece.
        kind: PieceKind,
    },
    /// More text of a message.
    TextDelta {
        /// The number of the piece that grows, from 0.
        piece: usize,
        /// The text to append.
        delta: String,
    },
    /// More of what the model shows of its thinking.
    ReasoningDelta {
        /// The number of the piece that grows, from 0.
        piece: usize,
        /// The text to append.
        delta: String,
    },
    /// More of the summary of its thinking.
    SummaryDelta {
        /// The number of the piece that grows, from 0.
        piece: usize,
        /// The text to append.
        delta: String,
    },
    /// More of a refusal.
    RefusalDelta {
        /// The number of the piece that grows, from 0.
        piece: usize,
        /// The text to append.
        delta: String,
    },
    /// More of the text of a call's arguments.
    ArgumentsDelta {
        /// The number of the piece that grows, from 0.
        piece: usize,
        /// The text to append.
        delta: String,
    },
    /// A piece is complete.
    ItemDone {
        /// The number of the complete piece, from 0.
        piece: usize,
    },
    /// The tokens that the answer used so far; the last such event counts.
    Usage(
        /// The token counts so far.
        Usage,
    ),
    /// The provider says why the answer ends. Usage may still come.
    Finished {
        /// The reason; `None` if the provider gives none.
        finish: Option<FinishReason>,
    },
    /// The provider says that the answer failed.
    Failed(
        /// What the provider says about the failure.
        StreamFailure,
    ),
}

impl StreamEvent {
    /// Returns the event's name in Open Responses; for an event without one, a name that begins with `contexture:`.
    #[must_use]
    pub const fn name(&self) -> &'static str {
        match self {
            Self::Started { .. } => "response.created",
            Self::ItemAdded { .. } => "response.output_item.added",
            Self::TextDelta { .. } => "response.output_text.delta",
            Self::ReasoningDelta { .. } => "response.reasoning.delta",
            Self::SummaryDelta { .. } => "response.reasoning_summary_text.delta",
            Self::RefusalDelta { .. } => "response.refusal.delta",
            Self::ArgumentsDelta { .. } => "response.function_call_arguments.delta",
            Self::ItemDone { .. } => "response.output_item.done",
            Self::Usage(_) => "contexture:response.usage",
            // Open Responses has two words for an end without a failure; the reason decides.
            Self::Finished { finish } => match finish {
                Some(FinishReason::Length | FinishReason::ContentFilter) => "response.incomplete",
                _ => "response.completed",
            },
            Self::Failed(_) => "response.failed",
        }
    }
}

/// The kind of a piece of an answer.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PieceKind {
    /// A message: text or a refusal.
    Message,
    /// The model's thoughts or their summary.
    Reasoning,
    /// A call of a function, or of another tool that the host runs.
    Call {
        /// The call's id; `None` if the provider gives none.
        id: Option<String>,
        /// The tool's name; `None` if the provider gives none.
        name: Option<String>,
    },
    /// Any other piece, by the provider's name for its kind.
    Other(String),
}

/// What a provider says about an answer that failed while it was streamed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StreamFailure {
    /// The provider's word for the kind of failure: its `type`, else its `status`, else empty.
    pub kind: String,
    /// The provider's code, a word or a number as text.
    pub code: Option<String>,
    /// The provider's message; empty if there is none.
    pub message: String,
}

impl StreamFailure {
    /// Reads the body of an answer with an error status, in any provider's shape. If the body has no such shape, its
    /// first 500 characters are the message.
    #[must_use]
    pub fn from_body(body: &str) -> Self {
        let mut body = body.trim();
        // Streams of arrays fail in an array.
        if let Some(inner) = body
            .strip_prefix('[')
            .and_then(|rest| rest.strip_suffix(']'))
        {
            body = inner;
        }
        let fields = Fields::parse(body).unwrap_or_default();
        // Most providers say `error`; some compatible hosts say `detail`.
        if let Some(error) = fields.get(&["error", "detail"]) {
            return parse_failure(error);
        }
        // An error object may stand alone; a message is what makes it one.
        if string_field(&fields, "message").is_some()
            && let Ok(own) = serde_json::from_str(body)
        {
            return parse_failure(own);
        }
        Self {
            message: body.chars().take(500).collect(),
            ..Self::default()
        }
    }
}

/// Why a stream did not become an answer.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StreamError {
    /// The format has no streams.
    #[error(
        "{format} is no provider's format and has no streams: expected {}",
        provider_names()
    )]
    NoStream {
        /// The format, which is no provider's.
        format: Format,
    },
    /// An event does not have the form that the format demands. What came before it stays.
    #[error("event {number} of the {format} stream is not {expected}")]
    Malformed {
        /// The stream's format.
        format: Format,
        /// The number of the event, from 1.
        number: usize,
        /// What was expected.
        expected: &'static str,
        /// The error of the JSON parser; `None` if the event is JSON but not what was expected.
        #[source]
        source: Option<serde_json::Error>,
    },
    /// The stream is longer than an answer may be. What came before stays.
    #[error("the {format} stream is longer than {limit} bytes")]
    TooLong {
        /// The stream's format.
        format: Format,
        /// The limit in bytes.
        limit: usize,
    },
    /// The provider says that the answer failed.
    #[error("the answer failed: {}", .0.message)]
    Failed(
        /// What the provider says about the failure.
        StreamFailure,
    ),
    /// The stream ended before the answer did.
    #[error("the {format} stream was cut off after {events} events")]
    Cut {
        /// The stream's format.
        format: Format,
        /// The number of events received.
        events: usize,
    },
}

fn provider_names() -> String {
    Format::PROVIDERS.map(Format::as_str).join(", ")
}

/// Whether a parser understood an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParsedEvent {
    /// The event was understood, whether or not it said something new.
    Recognized,
    /// The event is of a kind that is not known.
    Ignored,
}

/// Puts a streamed answer of one format together, event by event.
pub trait StreamParser: std::fmt::Debug + Send + Sync {
    /// Takes the data of one event, a JSON object, and adds what it says to `events`.
    fn push_event(&mut self, data: &str, events: &mut Vec<StreamEvent>) -> ParsedEvent;

    /// Takes the end mark `[DONE]`. Only Chat Completions gives it a meaning; other providers say the end in an event.
    fn finish_stream(&mut self) {}

    /// Reports whether the provider said that the answer is whole.
    fn is_complete(&self) -> bool;

    /// Returns the body of the answer so far, as if it had not been streamed; pieces that were cut off are marked.
    fn response_body(&self) -> String;

    /// Returns a copy, so that an accumulator can be cloned in the middle of a stream.
    fn clone_boxed(&self) -> Box<dyn StreamParser>;
}

impl Clone for Box<dyn StreamParser> {
    fn clone(&self) -> Self {
        self.clone_boxed()
    }
}

/// An error object of any provider: `{type, status, code, message}`.
pub(crate) fn parse_failure(error: &RawValue) -> StreamFailure {
    // Some hosts send the error as a bare string.
    let Ok(fields) = Fields::parse(error.get()) else {
        let message: Option<String> = serde_json::from_str(error.get()).ok();
        return StreamFailure {
            message: message.unwrap_or_else(|| error.get().to_owned()),
            ..StreamFailure::default()
        };
    };
    let word = |name: &str| -> Option<String> {
        // A code is a number at some providers; its text is kept as it stands.
        let value = fields.get(&[name]).filter(|value| value.get() != "null")?;
        Some(serde_json::from_str(value.get()).unwrap_or_else(|_| value.get().to_owned()))
    };
    StreamFailure {
        kind: word("type").or_else(|| word("status")).unwrap_or_default(),
        code: word("code"),
        message: word("message").unwrap_or_default(),
    }
}

/// Reads a member that is an index into a list.
pub(crate) fn index_field(fields: &Fields<'_>, name: &str) -> Option<u64> {
    fields.get(&[name])?.get().parse().ok()
}
