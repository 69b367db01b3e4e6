//! Recordings come back as they are.

use std::collections::BTreeSet;

use contexture_testdata::exchanges;
use contexture_upstream_testkit::{Provider as _, Received, ReplayingProvider};

fn request(target: &str, body: &str) -> Received {
    Received {
        method: "POST".to_owned(),
        target: target.to_owned(),
        headers: Vec::new(),
        body: body.to_owned().into(),
    }
}

#[test]
fn every_recording_is_answered_as_it_was() {
    for format in ["openai-chat", "openai-responses", "anthropic", "gemini"] {
        let provider = ReplayingProvider::of(format);
        let mut asked = BTreeSet::new();
        for recorded in exchanges(format) {
            let (target, body) = (recorded.target(), recorded.request.get());
            let answer = provider.answer(&request(target, body));
            if !asked.insert((target.to_owned(), body.to_owned())) {
                continue;
            }
            let whole = recorded.response.as_ref().map(|body| body.get());
            let expected = recorded.stream.as_deref().or(whole).unwrap();
            assert!(
                answer.body() == expected,
                "{} {}",
                recorded.file,
                recorded.index
            );
            assert_eq!(
                (answer.status(), answer.headers()),
                (recorded.status, &recorded.headers[..])
            );
        }
        assert!(!asked.is_empty());
        assert_eq!(provider.answer(&request("/v1/else", "{}")).status(), 404);
    }
}
