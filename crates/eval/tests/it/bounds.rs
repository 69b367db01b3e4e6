//! Where an evaluation ends: budget, number of calls, a person's wish, and providers that fail, which never count as failed tasks.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture::catalogue::Money;
use contexture_eval::{
    Arm, DEFAULT_POLICY, EvaluationOptions, EvaluationReport, Verdict, play_tasks,
};
use contexture_upstream_testkit::{Provider as _, Received, Upstream, UpstreamResponse};
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::scripted_model::{Memory, ScriptedModel, options, provider_of, task};

const TASK: &str = "desk-separate-requests";

async fn play(options: &EvaluationOptions) -> EvaluationReport {
    let mut report = options.empty_report();
    play_tasks(options, &mut report, &mut |_| {}).await.unwrap();
    report
}

/// The options of one task that is played rightly, and its provider.
async fn played_rightly() -> (EvaluationOptions, Upstream) {
    let model = ScriptedModel::new(&task(TASK), Memory::Everything);
    let upstream = Upstream::start(provider_of(model)).await;
    let options = options(&upstream.base_url(), DEFAULT_POLICY, vec![task(TASK)]);
    (options, upstream)
}

fn failing_with(status: u16, message: &'static str) -> impl Fn(&Received) -> UpstreamResponse {
    move |_| {
        let error = json!({"error": {"message": message, "type": "error", "code": null}});
        UpstreamResponse::json(status, &error).with_header("retry-after", "0")
    }
}

#[tokio::test]
async fn budget_stops_a_run_and_what_follows() {
    let (mut options, upstream) = played_rightly().await;
    let limit = Money::from_micro_dollars(2_000);
    options.budget = Some(limit);
    let report = play(&options).await;
    let [run] = report.runs.as_slice() else {
        panic!("{report:#?}");
    };
    assert_eq!(run.verdict, Verdict::OutOfBudget);
    // The call that goes beyond the limit is the last one.
    assert!(report.spent() >= limit && report.spent() < Money::from_micro_dollars(6_000));
    assert_eq!(run.figures.calls, upstream.received_requests().len() as u64);
    assert_eq!(
        report.stopped.as_deref(),
        Some("the budget of $0.002 is used up (--budget)")
    );
    assert!(!report.has_comparison());
}

#[tokio::test]
async fn too_many_calls_are_a_failed_task() {
    let (mut options, _upstream) = played_rightly().await;
    options.max_calls = 4;
    let report = play(&options).await;
    for run in &report.runs {
        let Verdict::Judged { done, of, faults } = &run.verdict else {
            panic!("{run:?}");
        };
        assert_eq!((*done, *of), (0.0, 1));
        assert_eq!(faults[0], "it was not done after 4 calls (--max-calls)");
        assert_eq!(run.figures.calls, 4);
    }
    assert_eq!(report.runs.len(), 2);
}

#[tokio::test]
async fn failing_provider_is_no_failed_task() {
    let failing = failing_with(500, "the model is overloaded");
    let upstream = Upstream::start(failing).await;
    let options = options(&upstream.base_url(), DEFAULT_POLICY, vec![task(TASK)]);
    let report = play(&options).await;
    assert_eq!(report.runs.len(), 2);
    for run in &report.runs {
        let why = "status 500: the model is overloaded".to_owned();
        assert_eq!(run.verdict, Verdict::ProviderFailed { why });
        // Each call is tried three times.
        assert_eq!((run.figures.calls, run.figures.refused_calls), (3, 3));
    }
    assert_eq!(upstream.received_requests().len(), 6);
    assert!(!report.has_comparison());
    let text = report.to_text();
    assert!(text.contains("the provider failed\n  status 500"), "{text}");
    assert!(!text.contains("in sum"), "{text}");
}

#[tokio::test]
async fn refused_key_ends_the_evaluation() {
    let upstream = Upstream::start(failing_with(401, "Incorrect API key provided")).await;
    let tasks = vec![task(TASK), task("code-rename")];
    let report = play(&options(&upstream.base_url(), DEFAULT_POLICY, tasks)).await;
    assert_eq!(report.runs.len(), 1);
    assert_eq!(upstream.received_requests().len(), 1);
    let stopped = report.stopped.unwrap();
    assert!(
        stopped.contains("refuses the key: status 401: Incorrect API key"),
        "{stopped}"
    );
}

#[tokio::test]
async fn history_too_long_for_the_model_is_a_failed_task() {
    let message = "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000 tokens.";
    let upstream = Upstream::start(failing_with(400, message)).await;
    let report = play(&options(
        &upstream.base_url(),
        DEFAULT_POLICY,
        vec![task(TASK)],
    ))
    .await;
    let Verdict::Judged { faults, .. } = &report.runs[0].verdict else {
        panic!("{report:#?}");
    };
    assert_eq!(faults[0], "the history is too long for the model");
}

#[tokio::test]
async fn interruption_keeps_what_was_played() {
    let model = ScriptedModel::new(&task(TASK), Memory::Everything);
    let (send, stop) = watch::channel(false);
    let seen = Arc::new(AtomicUsize::new(0));
    let counted = seen.clone();
    let answering = provider_of(model);
    let upstream = Upstream::start(move |request: &Received| {
        // The person presses Ctrl-C while the fifth call runs.
        if counted.fetch_add(1, Ordering::Relaxed) == 4 {
            send.send_replace(true);
        }
        answering.respond_to(request)
    })
    .await;
    let mut options = options(&upstream.base_url(), DEFAULT_POLICY, vec![task(TASK)]);
    options.stop = stop;
    let report = play(&options).await;
    let [run] = report.runs.as_slice() else {
        panic!("{report:#?}");
    };
    assert_eq!((run.arm, &run.verdict), (Arm::Plain, &Verdict::Interrupted));
    // What ran when it was interrupted is in the record, too, as is its cost if it was answered.
    assert_eq!(run.figures.calls, 5);
    assert!(run.figures.dollars > Money::ZERO);
    assert_eq!(report.stopped.as_deref(), Some("interrupted"));
}

#[tokio::test]
async fn json_report_has_runs_and_sums() {
    let (options, _upstream) = played_rightly().await;
    let report = play(&options).await;
    let document: Value = serde_json::from_str(&report.to_json()).unwrap();
    let [plain, policy] = document["runs"].as_array().unwrap().as_slice() else {
        panic!("{document:#}");
    };
    assert_eq!(
        (&plain["arm"], &policy["arm"]),
        (&json!("plain"), &json!("policy"))
    );
    assert_eq!(
        plain["verdict"],
        json!({"end": "judged", "done": 1.0, "of": 1, "faults": []})
    );
    assert_eq!(
        document["sum"]["plain"]["input_tokens"],
        plain["input_tokens"]
    );
    assert_eq!(document["sum"]["policy"]["dollars"], policy["dollars"]);
    assert_eq!(document["stopped"], Value::Null);
}
