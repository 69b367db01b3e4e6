//! A provider that answers from recordings.

use std::collections::BTreeMap;

use contexture_testdata::{Exchange, exchanges};

use crate::answer::UpstreamResponse;
use crate::provider::Provider;
use crate::provider::Received;

/// Answers a request with what was recorded for its path and body, byte for byte; one that was not recorded with 404.
///
/// Of several recordings of one request the first counts. Streams come as one chunk an event, for how they were cut was
/// not recorded.
#[derive(Debug)]
pub struct ReplayingProvider {
    answers: BTreeMap<(String, Vec<u8>), UpstreamResponse>,
}

impl ReplayingProvider {
    /// The recordings of a format: `openai-chat`, `openai-responses`, `anthropic`, `gemini` or `bedrock`.
    #[must_use]
    pub fn for_format(format: &str) -> Self {
        let mut answers = BTreeMap::new();
        for exchange in exchanges(format) {
            let body = exchange.request.get().as_bytes().to_vec();
            let key = (exchange.path_and_query().to_owned(), body);
            answers
                // The first recording wins, so that answers do not depend on how often a test asks.
                .entry(key)
                .or_insert_with(|| recorded_response(&exchange));
        }
        Self { answers }
    }
}

impl Provider for ReplayingProvider {
    fn respond_to(&self, request: &Received) -> UpstreamResponse {
        // Bytes and not meaning: these tests are about what is on the wire.
        let key = (request.target.clone(), request.body.to_vec());
        let recorded = self.answers.get(&key).cloned();
        recorded.unwrap_or_else(|| UpstreamResponse::text(404, "this request was not recorded"))
    }
}

fn recorded_response(exchange: &Exchange) -> UpstreamResponse {
    let body = exchange.response.as_ref().map(|body| body.get());
    let mut answer = match (&exchange.stream, &exchange.event_stream) {
        (Some(stream), _) => UpstreamResponse::event_stream(split_events(stream)),
        (None, Some(bytes)) => UpstreamResponse::from_body(exchange.status, "", bytes.clone()),
        (None, None) => {
            UpstreamResponse::from_body(exchange.status, "", body.unwrap_or_default().to_owned())
        }
    };
    answer.status = exchange.status;
    answer.headers.clone_from(&exchange.headers);
    answer
}

/// Cut after each empty line.
fn split_events(stream: &str) -> Vec<String> {
    let mut events = vec![String::new()];
    // Line breaks are kept, so that replayed bytes equal recorded ones.
    for line in stream.split_inclusive('\n') {
        if let Some(event) = events.last_mut() {
            event.push_str(line);
        }
        if line.trim_end().is_empty() {
            events.push(String::new());
        }
    }
    events.retain(|event| !event.is_empty());
    events
}
