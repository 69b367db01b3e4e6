//! What is kept of an answer beside its items: whether it came whole, and what it cost.

use contexture_compile::Target;
use contexture_engine::{AnswerOptions, Ingested};
use contexture_ir::{FinishReason, Item, ResponseId, ResponseInfo, Transcript};
use contexture_store::ResponseStatus;
use contexture_wire::{Format, lift};

use super::client::{item, model, request, send, user};
use crate::support::engine;

async fn status(sent: &Ingested, response: ResponseId) -> ResponseStatus {
    let (store, chat) = (sent.chat.engine().store(), &sent.chat);
    let stored = store.load_response(chat.owner(), chat.id(), response).await;
    stored.unwrap().status
}

#[tokio::test]
async fn an_answer_that_was_cut_off_is_incomplete_whatever_was_sent() {
    let cut = item(
        r#"{"type":"message","role":"assistant","status":"incomplete","content":[{"type":"output_text","text":"Hello, I th"}]}"#,
    );
    let said = |item: &Item, finish: Option<FinishReason>| Transcript {
        response: Some(ResponseInfo {
            finish,
            ..ResponseInfo::default()
        }),
        ..request(std::slice::from_ref(item))
    };
    let (whole, stop) = (model("Hello."), Some(FinishReason::Stop));
    for (answer, expected) in [
        (said(&whole, stop.clone()), ResponseStatus::Completed),
        (said(&cut, stop), ResponseStatus::Incomplete),
        (said(&whole, None), ResponseStatus::Incomplete),
        (
            said(&whole, Some(FinishReason::Length)),
            ResponseStatus::Incomplete,
        ),
    ] {
        let sent = send(&engine(), &[user("hi")]).await;
        let relayed = sent.record(&answer).await.unwrap();
        let refused = sent.chat.replay(relayed.response).await.unwrap_err();
        let why = std::error::Error::source(&refused).unwrap().to_string();
        assert_eq!(why, "it was passed on as it came: nothing was compiled");
        assert_eq!(status(&sent, relayed.response).await, expected);
        let mut sent = send(&engine(), &[user("hi")]).await;
        let target = Target::openai_chat("gpt-4.1");
        let call = sent.chat.compile(&target).await.unwrap();
        let options = AnswerOptions {
            call: Some(&call),
            ..AnswerOptions::default()
        };
        let compiled = sent.record_with(&answer, options).await.unwrap();
        assert_eq!(status(&sent, compiled.response).await, expected);
    }
}

#[tokio::test]
async fn one_hour_cache_writes_are_billed_at_their_own_price() {
    let sent = send(&engine(), &[user("hi")]).await;
    let cost = |usage: &str| {
        let json = format!(
            r#"{{"id":"msg_1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{{"type":"text","text":"hi"}}],"stop_reason":"end_turn","stop_sequence":null,"usage":{{"input_tokens":10,"output_tokens":0,{usage}}}}}"#
        );
        let answer = lift(Format::Anthropic, &json).unwrap().transcript;
        sent.answer_cost(&answer).unwrap().pico_dollars
    };
    // 3 dollars a million of input, 3.75 written for five minutes, 6 for an hour.
    let input = 10 * 3_000_000;
    let usual = r#""cache_creation_input_tokens":1000"#;
    assert_eq!(cost(usual), input + 1_000 * 3_750_000);
    let both = r#""cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_5m_input_tokens":400,"ephemeral_1h_input_tokens":600}"#;
    assert_eq!(cost(both), input + 400 * 3_750_000 + 600 * 6_000_000);
    let strange = r#""cache_creation_input_tokens":1000,"cache_creation":{"ephemeral_1h_input_tokens":"many"}"#;
    assert_eq!(cost(strange), cost(usual));
}
