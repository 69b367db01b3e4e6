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
        let provider = ReplayingProvider::for_format(format);
        let mut asked = BTreeSet::new();
        for recorded in exchanges(format) {
            let (target, body) = (recorded.path_and_query(), recorded.request.get());
            let answer = provider.respond_to(&request(target, body));
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
        assert_eq!(
            provider.respond_to(&request("/v1/else", "{}")).status(),
            404
        );
    }
}
