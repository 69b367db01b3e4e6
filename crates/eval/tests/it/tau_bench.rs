//! tau-bench by a stand-in: a `run.py` with its options and its results file, which calls its provider for agent and user.

use std::path::{Path, PathBuf};

use contexture_eval::{
    Arm, CallFigures, DEFAULT_POLICY, EvalError, EvaluationReport, TauBench, Verdict,
    play_tau_bench,
};
use contexture_upstream_testkit::{ScriptedProvider, Upstream};
use tempfile::TempDir;

use crate::scripted_model::{MODEL, options};

/// Two tasks are judged, one ends with an exception, as the original's results file shows them.
const PROGRAM: &str = r#"
import argparse, json, os, urllib.request

parser = argparse.ArgumentParser()
for name in ["--env", "--model", "--model-provider", "--user-model", "--user-model-provider", "--log-dir"]:
    parser.add_argument(name)
for name in ["--start-index", "--end-index"]:
    parser.add_argument(name, type=int)
parser.add_argument("--temperature", type=float, default=0.0)
args = parser.parse_args()
assert args.model_provider == args.user_model_provider == "openai", args
assert os.environ["OPENAI_BASE_URL"] == os.environ["OPENAI_API_BASE"]

def call(model, messages):
    body = json.dumps({"model": model, "messages": messages, "temperature": args.temperature}).encode()
    headers = {"content-type": "application/json", "authorization": "Bearer " + os.environ["OPENAI_API_KEY"]}
    request = urllib.request.Request(os.environ["OPENAI_BASE_URL"] + "/chat/completions", body, headers)
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(request) as answer:
        return json.load(answer)["choices"][0]["message"]

results = []
for task in range(args.start_index, args.end_index):
    said = call(args.user_model, [{"role": "user", "content": f"You are customer {task}. " + "Ask. " * 40}])
    call(args.model, [{"role": "system", "content": "Help."}, {"role": "user", "content": said["content"]}])
    reward, info = [(1.0, {"task": {}}), (0.0, {"task": {}}), (0.0, {"error": "RateLimitError", "traceback": ""})][task % 3]
    results.append({"task_id": task, "reward": reward, "info": info, "traj": [], "trial": 0})
with open(os.path.join(args.log_dir, f"tool-calling-{args.model}_range_0.json"), "w") as file:
    json.dump(results, file)
"#;

/// A folder with this program as its `run.py`.
fn checkout(program: &str) -> TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("run.py"), program).unwrap();
    folder
}

fn tau_bench(checkout: &Path) -> TauBench {
    TauBench {
        checkout: checkout.to_owned(),
        python: PathBuf::from("python3"),
        env: "airline".to_owned(),
        start: 0,
        end: 3,
        user_model: "gpt-4.1".to_owned(),
        arguments: vec!["--temperature".to_owned(), "1.0".to_owned()],
    }
}

async fn play(tau: &TauBench) -> Result<(EvaluationReport, Upstream), EvalError> {
    let upstream = Upstream::start(ScriptedProvider::default()).await;
    let options = options(&upstream.base_url(), DEFAULT_POLICY, Vec::new());
    let mut report = options.empty_report();
    play_tau_bench(tau, &options, &mut report, &mut |_| {}).await?;
    Ok((report, upstream))
}

#[tokio::test]
async fn tau_bench_has_rewards_and_calls_of_both_ways() {
    let folder = checkout(PROGRAM);
    let (report, upstream) = play(&tau_bench(folder.path())).await.unwrap();
    let arms: Vec<Arm> = report.runs.iter().map(|run| run.arm).collect();
    assert_eq!(arms, Arm::BOTH);
    let mut figures = CallFigures::default();
    for run in &report.runs {
        assert_eq!(run.task, "tau-bench airline 0-3");
        let Verdict::Judged { done, of, faults } = &run.verdict else {
            panic!("{run:?}");
        };
        // The task that an exception ended is neither done nor failed.
        assert_eq!((*done, *of), (1.0, 2));
        assert_eq!(
            faults,
            &["task 1: reward 0", "task 2 was not judged: RateLimitError"]
        );
        assert_eq!(run.figures.calls, 6);
        figures.add(&run.figures);
    }
    let received = upstream.received_requests();
    assert_eq!(figures.calls, received.len() as u64);
    for request in &received {
        assert_eq!(request.header("authorization"), Some("Bearer sk-test"));
        assert_eq!(request.json()["temperature"], 1.0);
    }
    let agents = received
        .iter()
        .filter(|request| request.json()["model"] == MODEL);
    assert_eq!(agents.count(), 6);
}

#[tokio::test]
async fn tau_bench_that_cannot_run_says_why() {
    let empty = tempfile::tempdir().unwrap();
    let whole = checkout(PROGRAM);
    let broken = checkout("import a_package_that_nobody_has\n");
    let older = checkout(&PROGRAM.replace("\"--log-dir\"", "\"--logs\""));
    let failing = checkout(&PROGRAM.replace("results = []", "raise SystemExit(3)"));
    let silent = checkout(&PROGRAM.replace("json.dump(results, file)", "file.write('{}')"));
    let no_python = TauBench {
        python: PathBuf::from("python-that-nobody-has"),
        ..tau_bench(whole.path())
    };
    for (tau, expected) in [
        (
            tau_bench(empty.path()),
            "it has no run.py; expected a checkout",
        ),
        (no_python, "`python-that-nobody-has` cannot be started"),
        (
            tau_bench(broken.path()),
            "No module named 'a_package_that_nobody_has'",
        ),
        (
            tau_bench(older.path()),
            "its run.py has no option --log-dir",
        ),
        (tau_bench(failing.path()), "run.py did not succeed"),
        (
            tau_bench(silent.path()),
            "its results file is in an unknown shape",
        ),
    ] {
        let error = play(&tau).await.err().unwrap().to_string();
        assert!(error.contains(expected), "{error}");
    }
}
