//! The data is whole and the validators bite.

use contexture_testdata as data;
use serde_json::{Value, json};

#[test]
fn every_file_reads() {
    let counts: Vec<usize> = [
        "openai-chat",
        "openai-responses",
        "anthropic",
        "gemini",
        "bedrock",
    ]
    .map(|format| data::exchanges(format).len())
    .to_vec();
    assert_eq!(counts, [45, 86, 62, 109, 56]);
    let bedrock = data::exchanges("bedrock");
    let streams = bedrock.iter().filter(|one| one.event_stream.is_some());
    assert_eq!(streams.count(), 2);
    assert_eq!(
        serde_json::from_str::<Vec<Value>>(&data::tau_bench())
            .unwrap()
            .len(),
        200
    );
    assert_eq!(data::swe_agent().len(), 5);
    for provider in ["openai", "anthropic", "google", "open-responses"] {
        assert!(!data::ai_sdk(provider).is_empty(), "{provider}");
    }
}

#[test]
fn validators_accept_and_refuse() {
    let anthropic = data::request_validator("anthropic");
    let mut request = json!({"model": "m", "max_tokens": 1,
        "messages": [{"role": "user", "content": "hi"}]});
    assert_eq!(anthropic.validation_errors(&request), Vec::<String>::new());
    request["messages"][0]["role"] = json!("tool");
    assert_ne!(anthropic.validation_errors(&request), Vec::<String>::new());

    let bedrock = data::request_validator("bedrock");
    let mut request = json!({"messages": [{"role": "user", "content": [{"text": "hi"}]}]});
    assert_eq!(bedrock.validation_errors(&request), Vec::<String>::new());
    request["messages"][0]["content"][0]["txt"] = json!(1);
    assert_ne!(bedrock.validation_errors(&request), Vec::<String>::new());

    let gemini = data::request_validator("gemini");
    let mut request = json!({"contents": [{"role": "user", "parts": [{"text": "hi"}]}]});
    assert_eq!(gemini.validation_errors(&request), Vec::<String>::new());
    request["contents"][0]["parts"][0]["txt"] = json!(1);
    assert_ne!(gemini.validation_errors(&request), Vec::<String>::new());
}
