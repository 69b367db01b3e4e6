//! The record of calls has every exchange of a run with its model, and its sums are the run's usage.

use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use contexture_compile::{CallBand, Target};
use contexture_engine::Conversation;
use contexture_ir::user;
use contexture_models::{ModelError, ScriptedModel};
use contexture_runs::run_turn_with_text;
use contexture_store::{CallOrder, CallOutcome, CallRecord, ListCalls, SumCalls};

use crate::test_support::{agent, calling, chat, model, saying, tools};

const ADD: (&str, &str, &str) = ("c1", "add", r#"{"a":1,"b":2}"#);

async fn rows(chat: &Conversation) -> Vec<CallRecord> {
    let calls = chat.engine().store().calls().unwrap();
    let list = ListCalls {
        order: CallOrder::OldestFirst,
        ..ListCalls::default()
    };
    calls.list_calls(chat.owner(), list).await.unwrap().calls
}

#[tokio::test]
async fn each_model_step_of_a_run_has_a_row() {
    let chat = chat().await;
    let model = model([calling(&[ADD]), calling(&[ADD]), saying("Three.")]);
    let ran = Arc::new(AtomicU32::new(0));
    let agent = agent(&model).with_tools(tools(&ran)).unwrap();
    let turn = run_turn_with_text(&chat, &agent, "Add.").await.unwrap();
    let rows = rows(&chat).await;
    assert_eq!(rows.len() as u64, turn.usage.responses);
    for row in &rows {
        assert_eq!(row.outcome, CallOutcome::Completed);
        assert_eq!(row.conversation.as_ref(), Some(chat.id()));
        let stored = row.response.unwrap();
        let stored = chat
            .engine()
            .store()
            .load_response(chat.owner(), chat.id(), stored);
        assert!(stored.await.is_ok());
        assert_eq!(
            (row.names.upstream.as_str(), row.names.model.as_str()),
            ("openai", "gpt-4o")
        );
        assert_eq!((row.details.attempts, row.details.is_own), (1, false));
        let band = CallBand::from_bytes(row.band.as_deref().unwrap()).unwrap();
        assert!(band.tokens() > 0 && band.path_items > 0);
    }
    let calls = chat.engine().store().calls().unwrap();
    let sums = calls
        .sum_calls(chat.owner(), SumCalls::default())
        .await
        .unwrap();
    let sum = sums[0].1;
    assert_eq!((sum.calls, sum.input_tokens, sum.output_tokens), (3, 30, 6));
    let cost = turn.usage.cost.unwrap().pico_dollars();
    assert_eq!(sum.pico_dollars, cost);
}

#[tokio::test]
async fn a_run_without_answer_has_a_row_with_its_attempts() {
    let refused = |reason: &str| ModelError::Refused {
        model: "m".into(),
        reason: reason.into(),
        too_long: None,
    };
    let busy = || ModelError::RateLimited {
        model: "m".into(),
        reason: "busy".into(),
        retry_after_ms: Some(0),
    };
    let answers = [Err(busy()), Err(refused("no"))];
    let chat = chat().await;
    let agent = agent(&Arc::new(ScriptedModel::new(answers)));
    run_turn_with_text(&chat, &agent, "Say.").await.unwrap_err();
    let rows = rows(&chat).await;
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].outcome, CallOutcome::Refused);
    assert_eq!(
        (rows[0].details.attempts, rows[0].details.tokens),
        (2, None)
    );
    assert!(rows[0].band.is_some() && rows[0].response.is_none());
}

#[tokio::test]
async fn an_answer_that_is_recorded_twice_is_one_call() {
    let chat = chat().await;
    chat.save([user("Hello")]).await.unwrap();
    let call = chat.compile(&Target::openai_chat("gpt-4o")).await.unwrap();
    let answer = saying("Hi.");
    for replayed in [false, true] {
        let recorded = chat.record(&call, &answer.body).await.unwrap();
        assert_eq!(recorded.replayed, replayed);
        assert_eq!(rows(&chat).await.len(), 1);
    }
}
