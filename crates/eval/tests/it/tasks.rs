//! The tasks: that they can be done, that a model that forgets fails those that need memory, and that the figures are the record's.

use contexture::Catalogue;
use contexture::catalogue::{Money, Usage};
use contexture_eval::{
    Arm, CallFigures, DEFAULT_POLICY, EvalTask, EvaluationReport, TaskKind, Verdict, all_tasks,
};
use contexture_store_testkit::test_seed;

use crate::scripted_model::{Bill, MODEL, Memory, play_scripted};

/// Leaves out what is older than two turns, and says nothing about it.
const FORGETTING: &str =
    "window = { turns = 2 }\nrules = false\ncost_condition = \"fits\"\nlimit_tokens = 100000\n";

/// The tasks that were not done in this way, with the first reason.
fn not_done(report: &EvaluationReport, arm: Arm) -> Vec<(&str, &str)> {
    let runs = report.runs.iter().filter(|run| run.arm == arm);
    runs.filter_map(|run| match &run.verdict {
        Verdict::Judged { faults, .. } => Some((run.task.as_str(), faults.first()?.as_str())),
        other => panic!("{}: {other:?}", run.task),
    })
    .collect()
}

/// In a soak all tasks; without, one of each kind, others in every run.
fn chosen_tasks() -> Vec<EvalTask> {
    let all = all_tasks();
    if std::env::var_os("CONTEXTURE_SOAK").is_some() {
        return all;
    }
    let at = usize::try_from(test_seed() % 4).unwrap();
    let of = |kind| all.iter().filter(move |task| task.kind == kind).nth(at);
    let kinds = [TaskKind::Desk, TaskKind::Coding];
    kinds.into_iter().filter_map(of).cloned().collect()
}

#[tokio::test]
async fn model_that_remembers_does_every_task_in_both_ways() {
    let tasks = chosen_tasks();
    let (report, providers) =
        play_scripted(tasks.clone(), Memory::Everything, DEFAULT_POLICY).await;
    assert_eq!(not_done(&report, Arm::Plain), []);
    assert_eq!(not_done(&report, Arm::Policy), []);
    // The figures are what the providers billed, call by call.
    for (task, (upstream, model)) in tasks.iter().zip(&providers) {
        let mut figures = CallFigures::default();
        let runs: Vec<_> = report
            .runs
            .iter()
            .filter(|run| run.task == task.name)
            .collect();
        runs.iter().for_each(|run| figures.add(&run.figures));
        let bill = Bill {
            input: figures.input_tokens,
            cached: figures.cached_tokens,
            output: figures.output_tokens,
            largest: figures.largest_request,
        };
        assert_eq!(bill, model.bill(), "{}", task.name);
        assert_eq!(figures.calls, upstream.received_requests().len() as u64);
        assert_eq!(figures.dollars, price_of(&bill), "{}", task.name);
        let [plain, policy] = runs.as_slice() else {
            panic!("{}: {} runs", task.name, runs.len());
        };
        assert_eq!(plain.figures.rewritten_calls, 0, "{}", task.name);
        assert!(policy.figures.rewritten_calls > 0, "{}", task.name);
        assert!(
            policy.figures.largest_request < plain.figures.largest_request,
            "{}: {} of {}",
            task.name,
            policy.figures.largest_request,
            plain.figures.largest_request
        );
    }
}

fn price_of(bill: &Bill) -> Money {
    let mut usage = Usage::default();
    usage.input = Some(bill.input - bill.cached);
    usage.cache_read = Some(bill.cached);
    usage.output = Some(bill.output);
    let prices = &Catalogue::builtin().resolve(MODEL).unwrap().prices;
    Money::from_pico_dollars(prices.cost(&usage).pico_dollars)
}

#[tokio::test]
async fn model_that_forgets_fails_what_needs_history() {
    let tasks = chosen_tasks();
    let (report, _providers) = play_scripted(tasks.clone(), Memory::RequestAlone, FORGETTING).await;
    assert_eq!(not_done(&report, Arm::Plain), []);
    let failed: Vec<&str> = not_done(&report, Arm::Policy)
        .iter()
        .map(|(task, _)| *task)
        .collect();
    let needing: Vec<&str> = tasks
        .iter()
        .filter(|task| task.needs_history)
        .map(|task| task.name)
        .collect();
    assert_eq!(failed, needing);
    let text = report.to_text();
    let reason = "a refund of 164.50 dollars on order 1042 was tried with code unknown";
    let has_reason = failed.contains(&"desk-approval-code");
    assert_eq!(text.contains(reason), has_reason, "{text}");
    let (all, left) = (tasks.len(), tasks.len() - needing.len());
    let sums = format!("done {left} of {all} against {all} of {all}");
    assert!(text.contains(&sums), "{text}");
}

/// A model that knows nothing but its request does everything under the default policy, too: what it needs is told.
#[tokio::test]
async fn default_policy_tells_what_the_tasks_need() {
    let (report, _providers) =
        play_scripted(chosen_tasks(), Memory::RequestAlone, DEFAULT_POLICY).await;
    println!("{}", report.to_text());
    assert_eq!(not_done(&report, Arm::Policy), []);
}
