//! Recorded traffic.

use std::collections::BTreeMap;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde::de::Error;
use serde::{Deserialize, Deserializer};
use serde_json::value::RawValue;

use crate::files::read_text;

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
    /// The answer's headers in their order, those apart that frame its body.
    #[serde(skip)]
    pub headers: Vec<(String, String)>,
    /// The request's body.
    pub request: Box<RawValue>,
    /// The answer's body, if it was not a stream.
    pub response: Option<Box<RawValue>>,
    /// The answer's server-sent events, if it was a stream.
    pub stream: Option<String>,
    /// The answer's bytes, if it was a binary event stream.
    #[serde(default, deserialize_with = "base64_bytes")]
    pub event_stream: Option<Vec<u8>>,
}

impl Exchange {
    /// The path and query of its URL.
    #[must_use]
    pub fn path_and_query(&self) -> &str {
        let host = self.url.find("://").map_or(0, |scheme| scheme + 3);
        let path = self.url[host..].find('/').unwrap();
        &self.url[host + path..]
    }
}

/// The exchanges with the generation endpoint of a format: `openai-chat`, `openai-responses`,
/// `anthropic`, `gemini` or `bedrock`.
#[must_use]
pub fn exchanges(format: &str) -> Vec<Exchange> {
    let headers: Vec<ExchangeHeaders> = read_json_lines("exchanges/headers.jsonl.gz");
    let headers = headers.into_iter();
    let mut headers: BTreeMap<(String, usize), Vec<(String, String)>> = headers
        .map(|of| ((of.file, of.index), of.headers))
        .collect();
    let mut exchanges: Vec<Exchange> = read_json_lines(&format!("exchanges/{format}.jsonl.gz"));
    for exchange in &mut exchanges {
        let key = (exchange.file.clone(), exchange.index);
        // Every exchange has headers, or the recording is incomplete and the suite must fail.
        exchange.headers = headers.remove(&key).unwrap();
    }
    exchanges
}

/// Bytes that are written as base64.
fn base64_bytes<'de, D: Deserializer<'de>>(source: D) -> Result<Option<Vec<u8>>, D::Error> {
    let text = Option::<String>::deserialize(source)?;
    let bytes = text.map(|text| STANDARD.decode(text));
    bytes.transpose().map_err(D::Error::custom)
}

/// The headers of one exchange's answer.
#[derive(Deserialize)]
struct ExchangeHeaders {
    file: String,
    index: usize,
    headers: Vec<(String, String)>,
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
    read_json_lines(&format!("ai-sdk/{provider}.jsonl.gz"))
}

fn read_json_lines<T: for<'a> Deserialize<'a>>(path: &str) -> Vec<T> {
    read_text(path)
        .lines()
        .map(|line| serde_json::from_str(line).unwrap())
        .collect()
}
