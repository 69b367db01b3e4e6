//! Recorded traffic.

use serde::Deserialize;
use serde_json::value::RawValue;

use crate::files::read;

/// One recorded exchange with a provider.
#[derive(Debug, Deserialize)]
pub struct Exchange {
    /// The recording it is from.
    pub file: String,
    /// Its place in the recording.
    pub index: usize,
    /// Where it went.
    pub url: String,
    /// The status of the answer.
    pub status: u16,
    /// The request's body.
    pub request: Box<RawValue>,
    /// The answer's body, if it was not a stream.
    pub response: Option<Box<RawValue>>,
    /// The answer's server-sent events, if it was a stream.
    pub stream: Option<String>,
}

/// The exchanges with the generation endpoint of a format: `openai-chat`, `openai-responses`,
/// `anthropic` or `gemini`.
#[must_use]
pub fn exchanges(format: &str) -> Vec<Exchange> {
    lines(&format!("exchanges/{format}.jsonl.gz"))
}

/// One recorded answer of the AI SDK's fixtures.
#[derive(Debug, Deserialize)]
pub struct Recording {
    /// The file it is from.
    pub file: String,
    /// The body of an answer.
    pub response: Option<Box<RawValue>>,
    /// The events of a stream, one a line.
    pub chunks: Option<Vec<String>>,
}

/// The AI SDK's recordings of a provider: `openai`, `anthropic`, `google` or `open-responses`.
#[must_use]
pub fn ai_sdk(provider: &str) -> Vec<Recording> {
    lines(&format!("ai-sdk/{provider}.jsonl.gz"))
}

fn lines<T: for<'a> Deserialize<'a>>(path: &str) -> Vec<T> {
    read(path)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
