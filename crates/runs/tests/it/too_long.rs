//! Models that refuse what is too long by a count of their own: a turn never sees it.

use std::sync::Arc;

use contexture_catalogue::Encoding;
use contexture_compile::Target;
use contexture_engine::{PrepareOptions, Trigger};
use contexture_models::{ModelError, ModelRequest, ModelResponse, ScriptedModel, text_response};
use contexture_runs::{Agent, run_turn_with_text};
use contexture_store::{CallOrder, CallOutcome, ListCalls};
use contexture_tokens::counter_for;
use contexture_wire::{Format, StreamFailure};

use crate::test_support::chat;

/// Tokens of input that the model takes.
const LIMIT: u64 = 3_500;

/// Counts so many hundredths of the way from our lower to our upper bound, texts and what stands around them.
fn count(request: &ModelRequest, place: u64) -> u64 {
    let body: serde_json::Value = serde_json::from_str(&request.payload).unwrap();
    let counter = counter_for(Encoding::ClaudeV1);
    let messages = body["messages"].as_array().unwrap();
    let texts = messages.iter().map(|message| match &message["content"] {
        serde_json::Value::String(text) => text.clone(),
        parts => parts[0]["text"].as_str().unwrap().to_owned(),
    });
    let tokens = texts.map(|text| {
        let count = counter.count(&text);
        count.low + (count.high - count.low) * place / 100
    });
    tokens.sum::<u64>() + 5 * messages.len() as u64
}

fn model(place: u64) -> ScriptedModel {
    ScriptedModel::with_fn(move |request| {
        let tokens = count(request, place);
        if tokens <= LIMIT {
            let body = text_response(Format::Anthropic, "Go on.");
            return Ok(ModelResponse::new(body));
        }
        let message = format!("prompt is too long: {tokens} tokens > {LIMIT} maximum");
        let failure = StreamFailure {
            kind: "invalid_request_error".to_owned(),
            message,
            ..StreamFailure::default()
        };
        Err(ModelError::from_failure(
            &request.model,
            &failure,
            Some(400),
            None,
        ))
    })
}

fn agent(model: &Arc<ScriptedModel>) -> Agent {
    let target = Target::anthropic("claude-sonnet-4-5")
        .window(4_000)
        .reserve(500);
    // Compacted only on overflow: by default a history is compacted before the window is full.
    let prepare = PrepareOptions {
        trigger: Trigger::Overflow,
        ..PrepareOptions::default()
    };
    Agent::new("tester", model.clone(), target).with_prepare_options(prepare)
}

#[tokio::test]
async fn refused_call_is_compiled_once_more_and_answered() {
    let chat = chat().await;
    let model = Arc::new(model(92).with_refused_overflow());
    let agent = agent(&model);
    for number in 0..50 {
        let words = format!("Turn {number}, and what was said of it at some length; ");
        run_turn_with_text(&chat, &agent, &words.repeat(12))
            .await
            .unwrap();
    }
    // Usage of one token, as the script reports it, is outside every range and teaches nothing; the refusal did.
    let sent = model.requests();
    let refused = sent.iter().filter(|request| count(request, 92) > LIMIT);
    assert_eq!((sent.len(), refused.count()), (51, 1));
    // The record has both exchanges.
    let calls = chat.engine().store().calls().unwrap();
    let list = ListCalls {
        order: CallOrder::OldestFirst,
        ..ListCalls::default()
    };
    let rows = calls.list_calls(chat.owner(), list).await.unwrap().calls;
    let of = |outcome| rows.iter().filter(|row| row.outcome == outcome).count();
    assert_eq!(of(CallOutcome::Refused), 1);
    assert_eq!(of(CallOutcome::Completed), 50);
}

#[tokio::test]
async fn model_of_unknown_host_is_sent_the_upper_bound() {
    let chat = chat().await;
    let model = Arc::new(model(99));
    let agent = agent(&model);
    for number in 0..40 {
        let words = format!("Turn {number}, and what was said of it at some length; ");
        run_turn_with_text(&chat, &agent, &words.repeat(12))
            .await
            .unwrap();
    }
    assert_eq!(model.requests().len(), 40);
}

#[tokio::test]
async fn second_refusal_ends_the_turn() {
    let chat = chat().await;
    let refusing = ScriptedModel::with_fn(|request| {
        let failure = StreamFailure {
            message: "prompt is too long".to_owned(),
            ..StreamFailure::default()
        };
        Err(ModelError::from_failure(
            &request.model,
            &failure,
            Some(400),
            None,
        ))
    });
    let model = Arc::new(refusing.with_refused_overflow());
    let error = run_turn_with_text(&chat, &agent(&model), "Say.").await;
    assert!(error.unwrap_err().to_string().contains("too long"));
    // Never a third time.
    assert_eq!(model.requests().len(), 2);
}

/// A stream may begin before the provider refuses; with the model's first words it is too late, as somebody may have read them.
#[tokio::test]
async fn refusal_inside_a_stream_is_mended_before_the_first_words() {
    let start = r#"{"type":"message_start","message":{"id":"m","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":9,"output_tokens":1}}}"#;
    let block =
        r#"{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}"#;
    let words =
        r#"{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Go on."}}"#;
    let refusal = r#"{"type":"error","error":{"type":"invalid_request_error","message":"prompt is too long"}}"#;
    let end = [
        r#"{"type":"content_block_stop","index":0}"#,
        r#"{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":3}}"#,
        r#"{"type":"message_stop"}"#,
    ];
    let events = |parts: &[&str]| parts.iter().map(|part| Ok((*part).to_owned())).collect();
    let whole = [&[start, block, words], &end[..]].concat();
    for (refused, asked) in [
        (&[start, refusal][..], 2),
        (&[start, block, words, refusal], 1),
    ] {
        let chat = chat().await;
        let streams = [events(refused), events(&whole)];
        let model = Arc::new(ScriptedModel::with_streams(streams).with_refused_overflow());
        let turn = run_turn_with_text(&chat, &agent(&model), "Say.").await;
        assert_eq!((model.requests().len(), turn.is_ok()), (asked, asked == 2));
    }
}
