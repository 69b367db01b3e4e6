//! tau-bench, played by its own program from a checkout of the user's, with our server as its provider.
//!
//! Nothing of it is copied here. Its `run.py` calls agent and simulated user through one address, so the figures of the
//! record hold both; its results file says how its tasks went.
//!
//! Not here: what its tasks are, and how it rewards them.

use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Instant;

use serde::Deserialize;
use tokio::process::Command;

use crate::error::EvalError;
use crate::evaluation::EvaluationOptions;
use crate::report::{Arm, EvaluationReport, PlayedRun, Verdict};
use crate::served::Served;

/// Options of `run.py` that are used here. A version without one of them cannot be played.
const NEEDED_OPTIONS: [&str; 8] = [
    "--env",
    "--model",
    "--model-provider",
    "--user-model",
    "--user-model-provider",
    "--start-index",
    "--end-index",
    "--log-dir",
];

/// A checkout of tau-bench, and which of its tasks are played.
#[derive(Clone, Debug)]
pub struct TauBench {
    /// Folder with `run.py`.
    pub checkout: PathBuf,
    /// Python that has its requirements.
    pub python: PathBuf,
    /// Its environment: `airline` or `retail`.
    pub env: String,
    /// First task, from 0.
    pub start: u32,
    /// Task before which it ends.
    pub end: u32,
    /// Model of the simulated user. If it is not the agent's, the policy holds for the agent's alone.
    pub user_model: String,
    /// Further arguments for `run.py`.
    pub arguments: Vec<String>,
}

/// A task in the results file; what is not used here is not read.
#[derive(Debug, Deserialize)]
struct TauResult {
    task_id: u64,
    reward: f64,
    #[serde(default)]
    info: TauInfo,
}

#[derive(Debug, Default, Deserialize)]
struct TauInfo {
    /// The exception that ended the task: it has a reward of 0 then, though nothing was judged.
    error: Option<String>,
}

/// Plays the tasks in both ways and adds two runs to the report; `on_run` sees each as it ends.
///
/// # Errors
/// [`EvalError::TauBench`] if there is no checkout, no Python, another version, or its program fails; the server does not
/// start.
pub async fn play_tau_bench(
    tau: &TauBench,
    options: &EvaluationOptions,
    report: &mut EvaluationReport,
    on_run: &mut dyn FnMut(&PlayedRun),
) -> Result<(), EvalError> {
    check_version(tau).await?;
    for repetition in 1..=options.repeat {
        for arm in Arm::BOTH {
            let budget = match options.remaining_budget(report) {
                Ok(budget) => budget,
                Err(why) => {
                    report.stopped = Some(why);
                    return Ok(());
                }
            };
            let model = options.provider.model.as_str();
            // The simulated user is no agent: its view is left alone where the models tell them apart.
            let only_model = (tau.user_model != model).then_some(model);
            let policy = (arm == Arm::Policy).then_some((&options.policy, only_model));
            let served = Served::start(&options.provider, policy, budget).await?;
            let begin = Instant::now();
            let played = run_program(tau, options, &served).await;
            let seconds = begin.elapsed().as_secs_f64();
            // Read before the program's failure is reported, so that the server has ended in any case.
            let figures = served.finish().await?;
            let verdict = match played? {
                Some(_) if figures.is_over_budget => Verdict::OutOfBudget,
                Some(results) => judge_results(&results),
                None => Verdict::Interrupted,
            };
            let run = PlayedRun {
                task: format!("tau-bench {} {}-{}", tau.env, tau.start, tau.end),
                arm,
                repetition,
                verdict,
                figures,
                seconds,
            };
            on_run(&run);
            report.runs.push(run);
        }
    }
    Ok(())
}

/// Checks that Python can be started and that `run.py` has the options that are used here.
async fn check_version(tau: &TauBench) -> Result<(), EvalError> {
    if !tau.checkout.join("run.py").is_file() {
        let why = "it has no run.py; expected a checkout of github.com/sierra-research/tau-bench";
        return Err(tau_error(tau, why));
    }
    let help = Command::new(&tau.python)
        .args(["run.py", "--help"])
        .current_dir(&tau.checkout)
        .stdin(Stdio::null())
        .output()
        .await
        .map_err(|error| {
            let python = tau.python.display();
            let why = format!("`{python}` cannot be started: {error}; --python names another one");
            tau_error(tau, &why)
        })?;
    if !help.status.success() {
        let errors = String::from_utf8_lossy(&help.stderr).into_owned();
        let last = errors.trim_end().lines().last().unwrap_or("no message");
        let why = format!(
            "`run.py --help` fails: {last}; are its requirements installed (pip install -e .), and does --python name that Python?"
        );
        return Err(tau_error(tau, &why));
    }
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let has = |option: &str| {
        let mut words = help.split(|c: char| !(c.is_ascii_alphanumeric() || c == '-'));
        words.any(|word| word == option)
    };
    match NEEDED_OPTIONS.iter().find(|option| !has(option)) {
        Some(missing) => {
            let why = format!(
                "its run.py has no option {missing}: this is another version than the one that is known here"
            );
            Err(tau_error(tau, &why))
        }
        None => Ok(()),
    }
}

/// Runs the program once and reads its results; `None` if the person stopped it.
async fn run_program(
    tau: &TauBench,
    options: &EvaluationOptions,
    served: &Served,
) -> Result<Option<Vec<TauResult>>, EvalError> {
    // A folder of its own, so that the only file in it is the one with the results.
    let logs = tempfile::tempdir().map_err(|error| tau_error(tau, &error.to_string()))?;
    let mut command = tau_command(tau, options, served, logs.path());
    let mut stop = options.stop.clone();
    let status = tokio::select! {
        status = command.status() => status.map_err(|error| tau_error(tau, &error.to_string()))?,
        _ = stop.wait_for(|is_wanted| *is_wanted) => return Ok(None),
    };
    if !status.success() {
        return Err(tau_error(
            tau,
            &format!("run.py did not succeed ({status}); its messages are above"),
        ));
    }
    read_results(tau, logs.path()).map(Some)
}

/// Returns the command that plays the tasks against a server.
fn tau_command(
    tau: &TauBench,
    options: &EvaluationOptions,
    served: &Served,
    logs: &Path,
) -> Command {
    let base_url = served.base_url();
    let (start, end) = (tau.start.to_string(), tau.end.to_string());
    let mut command = Command::new(&tau.python);
    command
        .arg("run.py")
        .args(["--env", &tau.env])
        .args([
            "--model",
            &options.provider.model,
            "--model-provider",
            "openai",
        ])
        .args([
            "--user-model",
            &tau.user_model,
            "--user-model-provider",
            "openai",
        ])
        .args(["--start-index", &start, "--end-index", &end])
        .arg("--log-dir")
        .arg(logs)
        .args(&tau.arguments)
        .current_dir(&tau.checkout)
        // The client below it reads one or the other, by its version.
        .env("OPENAI_BASE_URL", &base_url)
        .env("OPENAI_API_BASE", &base_url)
        .env("OPENAI_API_KEY", &options.provider.key)
        .stdin(Stdio::null())
        // Standard output is the report's; what the program tells goes where progress goes.
        .stdout(Stdio::from(std::io::stderr()))
        .kill_on_drop(true);
    command
}

/// Reads the only results file of a folder.
fn read_results(tau: &TauBench, logs: &Path) -> Result<Vec<TauResult>, EvalError> {
    let unreadable = |why: &dyn std::fmt::Display| tau_error(tau, &why.to_string());
    let mut files: Vec<PathBuf> = Vec::new();
    for entry in std::fs::read_dir(logs).map_err(|error| unreadable(&error))? {
        let path = entry.map_err(|error| unreadable(&error))?.path();
        if path
            .extension()
            .is_some_and(|extension| extension == "json")
        {
            files.push(path);
        }
    }
    let [file] = files.as_slice() else {
        let why = format!("run.py wrote {} results files, expected one", files.len());
        return Err(tau_error(tau, &why));
    };
    let text = std::fs::read_to_string(file).map_err(|error| unreadable(&error))?;
    serde_json::from_str(&text)
        .map_err(|error| unreadable(&format!("its results file is in an unknown shape: {error}")))
}

/// Sums the rewards of the tasks that ran to their end. A task that an exception ended has no reward worth the name.
fn judge_results(results: &[TauResult]) -> Verdict {
    let mut faults = Vec::new();
    let (mut done, mut of) = (0.0, 0);
    for result in results {
        if let Some(error) = &result.info.error {
            let error: String = error.chars().take(200).collect();
            faults.push(format!("task {} was not judged: {error}", result.task_id));
            continue;
        }
        done += result.reward;
        of += 1;
        if result.reward < 1.0 {
            faults.push(format!("task {}: reward {}", result.task_id, result.reward));
        }
    }
    match of {
        0 => Verdict::ProviderFailed {
            why: faults.join("; "),
        },
        of => Verdict::Judged { done, of, faults },
    }
}

fn tau_error(tau: &TauBench, why: &str) -> EvalError {
    EvalError::TauBench {
        checkout: tau.checkout.clone(),
        why: why.to_owned(),
    }
}
