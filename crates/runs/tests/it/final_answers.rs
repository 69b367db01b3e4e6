//! The answer that ends a run: of a type, judged by a verifier, or by a stop condition that takes its time.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use contexture_runs::{
    OwnedSnapshot, Run, RunContext, RunError, StopCondition, TurnEnd, Verdict, Verifier,
    run_turn_with_text,
};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::test_support::{
    agent, answers_once, calling, chat, model, said, saying, tools, transcript,
};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Order {
    /// Number of the order.
    number: String,
    pieces: u32,
}

#[tokio::test]
async fn an_answer_of_another_type_is_asked_for_again() {
    for (answers, requests) in [
        (vec![r#"{"number":"A-7","pieces":2}"#], 1),
        (vec!["```json\n{\"number\":\"A-7\",\"pieces\":2}\n```"], 1),
        (vec!["Two.", r#"{"number":"A-7","pieces":2}"#], 2),
        (
            vec![
                r#"{"number":"A-7"}"#,
                r#"{"number":"A-7","pieces":-1}"#,
                r#"{"number":"A-7","pieces":2}"#,
            ],
            3,
        ),
    ] {
        let chat = chat().await;
        let model = model(answers.iter().map(|text| saying(text)));
        let agent = agent(&model).with_output::<Order>();
        let turn = run_turn_with_text(&chat, &agent, "Which?").await.unwrap();
        let order: Order = turn.output().unwrap();
        assert_eq!(order.pieces, 2);
        let asked = model.requests();
        assert_eq!(asked.len(), requests);
        // The schema is told first; what was wrong stands behind the answer that was.
        assert!(asked[0].payload.contains("Number of the order."));
        if let Some(second) = asked.get(1) {
            assert!(
                second.payload.contains("not of the schema"),
                "{}",
                second.payload
            );
            let wrong = answers[0].replace('"', "\\\"");
            assert!(second.payload.contains(&wrong), "{}", second.payload);
        }
    }
}

#[tokio::test]
async fn answers_that_are_never_of_the_type_fail_the_run() {
    let chat = chat().await;
    let model = model(["no", "no", "no"].map(saying));
    let agent = agent(&model).with_output::<Order>().with_max_refusals(1);
    let error = run_turn_with_text(&chat, &agent, "Which?")
        .await
        .unwrap_err();
    let RunError::ModelParse { raw, reason, .. } = &error else {
        panic!("{error}");
    };
    assert_eq!(raw, "no");
    assert!(reason.contains("of 2 answers none"), "{reason}");
    assert_eq!(model.requests().len(), 2);
    let failed = crate::test_support::model([saying("text")]);
    let turn = run_turn_with_text(&chat, &crate::test_support::agent(&failed), "Which?").await;
    let error = turn.unwrap().output::<Order>().unwrap_err();
    assert_eq!(error.raw, "text");
    assert_eq!(RunError::from(error).kind(), "model_parse");
}

/// Accepts an answer that contains a word, and counts.
struct Contains(&'static str, Arc<AtomicU32>);

#[async_trait]
impl Verifier for Contains {
    async fn verify(
        &self,
        answer: &str,
        run: &RunContext,
    ) -> Result<Verdict, Box<dyn std::error::Error + Send + Sync>> {
        self.1.fetch_add(1, Ordering::SeqCst);
        assert_eq!(run.agent(), "tester");
        match answer {
            "fail" => Err("no judge".into()),
            "wait" => {
                tokio::time::sleep(Duration::from_secs(3600)).await;
                Ok(Verdict::Accepted)
            }
            answer if answer.contains(self.0) => Ok(Verdict::Accepted),
            _ => Ok(Verdict::Rejected {
                feedback: format!("Say {}.", self.0),
            }),
        }
    }
}

#[tokio::test]
async fn a_verifier_sends_the_model_back_with_feedback() {
    let chat = chat().await;
    let judged = Arc::new(AtomicU32::new(0));
    let model = model([
        calling(&[("a", "add", r#"{"a":1,"b":2}"#)]),
        saying("Three."),
        saying("Three, please."),
    ]);
    let agent = agent(&model)
        .with_tools(tools(&Arc::new(AtomicU32::new(0))))
        .unwrap()
        .with_verifier(Contains("please", Arc::clone(&judged)));
    let turn = run_turn_with_text(&chat, &agent, "1 + 2?").await.unwrap();
    assert_eq!(turn.text, "Three, please.");
    // Not asked about the answer that only calls.
    assert_eq!(judged.load(Ordering::SeqCst), 2);
    let last = &model.requests()[2].payload;
    assert!(
        last.contains("Say please.") && last.contains("Three."),
        "{last}"
    );
    let said = transcript(&chat).await;
    assert_eq!(
        said[3..],
        [
            "assistant Three.",
            "developer Say please.",
            "assistant Three, please."
        ]
    );
}

#[tokio::test]
async fn rejected_answers_are_counted_over_restarts() {
    let chat = chat().await;
    let verifier = || Contains("please", Arc::default());
    let (hanging, hung) = answers_once(saying("one"));
    let first = hanging.with_max_refusals(1).with_verifier(verifier());
    let mut run = Run::begin(&chat, &first, [said("go")]).await.unwrap();
    let id = run.id();
    tokio::select! {
        ended = run.drive() => panic!("{ended:?}"),
        () = hung.notified() => drop(run),
    }
    let second = model([saying("two")]);
    let agent = agent(&second)
        .with_max_refusals(1)
        .with_verifier(verifier());
    let mut run = Run::resume(&chat, id, &agent).await.unwrap();
    let error = run.drive().await.unwrap_err();
    assert_eq!(error.kind(), "denied", "{error}");
    assert!(error.to_string().contains("rejected 2 answers"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_verifier_that_fails_or_hangs_ends_the_run() {
    let chat = chat().await;
    let verifier = || Contains("x", Arc::default());
    let failing = agent(&model([saying("fail")])).with_verifier(verifier());
    let error = run_turn_with_text(&chat, &failing, "go").await.unwrap_err();
    assert_eq!(error.kind(), "step_failed", "{error}");
    let hanging = agent(&model([saying("wait")])).with_verifier(verifier());
    let mut run = Run::begin(&chat, &hanging, [said("go")]).await.unwrap();
    let handle = run.handle();
    let abort = async {
        tokio::time::sleep(Duration::from_secs(1)).await;
        handle.abort("enough");
    };
    let (error, ()) = tokio::join!(run.drive(), abort);
    assert_eq!(error.unwrap_err().kind(), "cancelled");
}

#[tokio::test(start_paused = true)]
async fn a_stop_condition_may_wait_for_a_judge() {
    let chat = chat().await;
    let judge = || {
        StopCondition::new_async("the judge is content", |now: OwnedSnapshot| async move {
            tokio::time::sleep(Duration::from_secs(1)).await;
            Ok::<_, String>(now.calls.len() == 1)
        })
    };
    let ran = Arc::new(AtomicU32::new(0));
    let calls = calling(&[("a", "add", r#"{"a":1,"b":2}"#)]);
    let agent = agent(&model([calls])).with_tools(tools(&ran)).unwrap();
    let turn = run_turn_with_text(&chat, &agent.with_stop_condition(judge()), "go")
        .await
        .unwrap();
    let TurnEnd::Stopped { reason } = turn.end else {
        panic!("{:?}", turn.end);
    };
    assert_eq!(reason, "the judge is content");
    assert_eq!(ran.load(Ordering::SeqCst), 0);
}
