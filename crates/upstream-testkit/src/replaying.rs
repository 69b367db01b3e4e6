//! A provider that answers what was recorded.

use std::collections::BTreeMap;

use contexture_testdata::{Exchange, exchanges};

use crate::answer::Answer;
use crate::provider::Provider;
use crate::received::Received;

/// Answers a request with what was recorded for its path and body, byte for byte; one that was not recorded with 404.
///
/// Of several recordings of one request the first counts. Streams come as one chunk an event, for how they were cut was
/// not recorded.
#[derive(Debug)]
pub struct ReplayingProvider {
    answers: BTreeMap<(String, Vec<u8>), Answer>,
}

impl ReplayingProvider {
    /// The recordings of a format: `openai-chat`, `openai-responses`, `anthropic` or `gemini`.
    #[must_use]
    pub fn of(format: &str) -> Self {
        let mut answers = BTreeMap::new();
        for exchange in exchanges(format) {
            let body = exchange.request.get().as_bytes().to_vec();
            let key = (exchange.target().to_owned(), body);
            answers.entry(key).or_insert_with(|| answer(&exchange));
        }
        Self { answers }
    }
}

impl Provider for ReplayingProvider {
    fn answer(&self, request: &Received) -> Answer {
        let key = (request.target.clone(), request.body.to_vec());
        let recorded = self.answers.get(&key).cloned();
        recorded.unwrap_or_else(|| Answer::text(404, "this request was not recorded"))
    }
}

fn answer(exchange: &Exchange) -> Answer {
    let body = exchange.response.as_ref().map(|body| body.get());
    let mut answer = match &exchange.stream {
        Some(stream) => Answer::events(events(stream)),
        None => Answer::whole(exchange.status, "", body.unwrap_or_default().to_owned()),
    };
    answer.status = exchange.status;
    answer.headers.clone_from(&exchange.headers);
    answer
}

/// Cut after each empty line.
fn events(stream: &str) -> Vec<String> {
    let mut events = vec![String::new()];
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
