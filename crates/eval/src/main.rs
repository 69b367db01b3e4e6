//! `cargo xtask eval`: does an agent still do its work under a policy, and what does that save?
//!
//! Not here: the tasks and how they are played (the library).

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "a program talks to its terminal"
)]

use std::path::PathBuf;
use std::process::ExitCode;

use clap::Parser;
use contexture::Catalogue;
use contexture::catalogue::Money;
use contexture_eval::{
    Arm, CallFigures, DEFAULT_POLICY, EvalError, EvalTask, EvaluationOptions, EvaluationReport,
    PlayedRun, PolicyUnderTest, ProviderAddress, TauBench, Verdict, all_tasks, play_tasks,
    play_tau_bench,
};
use tokio::sync::watch;

/// Window of the policy in tokens where neither the command nor the policy's file says one. Small enough that every task
/// outgrows it.
const WINDOW: u64 = 8_000;

/// Play tasks with and without a policy, with your own key, and print success, cost and calls
#[derive(Debug, Parser)]
#[command(
    name = "cargo xtask eval",
    after_long_help = "\
The agent speaks OpenAI's chat format; any provider that does can be called. Both ways go through a server in this process,
and every figure is read from its record of calls. All tasks of our own once, with gpt-5-mini: at most about 0.50 dollars.

Examples:
  cargo xtask eval --model gpt-5-mini
  cargo xtask eval --model gpt-5-mini --policy frugal.toml --window 12000 --repeat 5 --budget 5
  cargo xtask eval --model qwen3:30b --base-url http://127.0.0.1:11434 --key-env NONE --like gpt-4.1-mini
  cargo xtask eval --model gpt-4.1 --tau-bench ~/tau-bench --tau-end 20 --budget 10"
)]
struct EvalCommand {
    /// Model to call
    #[arg(long, required_unless_present = "list")]
    model: Option<String>,
    /// Address of the provider, with or without /v1
    #[arg(long, default_value = "https://api.openai.com")]
    base_url: String,
    /// Variable of the environment that holds the key; NONE if the provider wants none
    #[arg(long, default_value = "OPENAI_API_KEY")]
    key_env: String,
    /// Model of the catalogue by whose prices and tokens this one is counted
    #[arg(long)]
    like: Option<String>,
    /// File with the policy: its members, or one section [policies.NAME]; default: clear, preview and compact as the documentation shows them
    #[arg(long)]
    policy: Option<PathBuf>,
    /// Window under the policy, in tokens; default: the policy's limit_tokens, else 8000
    #[arg(long, value_parser = clap::value_parser!(u64).range(1000..))]
    window: Option<u64>,
    /// Only these tasks, with commas between
    #[arg(long, value_delimiter = ',')]
    tasks: Vec<String>,
    /// List the tasks and end
    #[arg(long)]
    list: bool,
    /// How often each task is played in each way
    #[arg(long, default_value_t = 1)]
    repeat: u32,
    /// Most calls that the agent makes for one task
    #[arg(long, default_value_t = 60)]
    max_calls: u32,
    /// Most dollars to spend; calls of models without a price count nothing
    #[arg(long, default_value = "1")]
    budget: Money,
    /// Print the report as JSON
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    tau: TauArguments,
}

/// tau-bench, where the user has it.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "tau-bench")]
struct TauArguments {
    /// Checkout of tau-bench to play from, instead of our own tasks (with --tasks: beside them)
    #[arg(long, value_name = "PATH")]
    tau_bench: Option<PathBuf>,
    /// Its environment: airline or retail
    #[arg(long, default_value = "airline")]
    tau_env: String,
    /// Its first task
    #[arg(long, default_value_t = 0)]
    tau_start: u32,
    /// Its task before which to end
    #[arg(long, default_value_t = 5)]
    tau_end: u32,
    /// Model of the simulated user; default: the agent's, and then the policy holds for both
    #[arg(long)]
    user_model: Option<String>,
    /// Python with its requirements
    #[arg(long, default_value = "python3")]
    python: PathBuf,
    /// A further argument for its run.py; may be repeated
    #[arg(long = "tau-arg", value_name = "ARGUMENT", allow_hyphen_values = true)]
    tau_arguments: Vec<String>,
}

fn main() -> ExitCode {
    let command = EvalCommand::parse();
    if command.list {
        list_tasks();
        return ExitCode::SUCCESS;
    }
    let runtime = tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build();
    let outcome = match runtime {
        Ok(runtime) => runtime.block_on(evaluate(&command)),
        Err(error) => Err(error.to_string()),
    };
    match outcome {
        Ok(code) => code,
        Err(why) => {
            eprintln!("error: {why}");
            ExitCode::FAILURE
        }
    }
}

fn list_tasks() {
    for task in all_tasks() {
        let needs = match task.needs_history {
            true => "needs its history",
            false => "needs none of its history",
        };
        println!("{:<24} {}; {needs}", task.name, task.summary);
    }
}

/// Plays what was asked for and prints the report.
async fn evaluate(command: &EvalCommand) -> Result<ExitCode, String> {
    let (send_stop, stop) = watch::channel(false);
    let options = make_options(command, stop)?;
    warn_about_price(&options);
    tokio::spawn(async move {
        // The first Ctrl-C ends the run that is played, and what is known is printed; the second ends the program.
        if tokio::signal::ctrl_c().await.is_ok() {
            send_stop.send_replace(true);
            let _ = tokio::signal::ctrl_c().await;
            std::process::exit(130);
        }
    });
    let mut report = options.empty_report();
    let played = play_everything(command, &options, &mut report).await;
    if let Err(error) = &played {
        // What was played before stays worth its money.
        report.stopped = Some(error.to_string());
    }
    match command.json {
        true => println!("{}", report.to_json()),
        false => print!("{}", report.to_text()),
    }
    if let (Err(error), true) = (&played, report.runs.is_empty()) {
        return Err(error.to_string());
    }
    match report.has_comparison() {
        true => Ok(ExitCode::SUCCESS),
        false => Ok(ExitCode::FAILURE),
    }
}

async fn play_everything(
    command: &EvalCommand,
    options: &EvaluationOptions,
    report: &mut EvaluationReport,
) -> Result<(), EvalError> {
    let mut on_run = |run: &PlayedRun| eprintln!("{}", progress_line(run));
    play_tasks(options, report, &mut on_run).await?;
    match tau_bench(command) {
        Some(tau) if report.stopped.is_none() => {
            play_tau_bench(&tau, options, report, &mut on_run).await
        }
        _ => Ok(()),
    }
}

fn make_options(
    command: &EvalCommand,
    stop: watch::Receiver<bool>,
) -> Result<EvaluationOptions, String> {
    let is_said = |error: EvalError| error.to_string();
    let policy = match &command.policy {
        Some(file) => PolicyUnderTest::load(file, command.window, WINDOW),
        None => {
            PolicyUnderTest::parse(DEFAULT_POLICY, "(default)".as_ref(), command.window, WINDOW)
        }
    };
    let key = match command.key_env.as_str() {
        "NONE" => "none".to_owned(),
        variable => std::env::var(variable).map_err(|_| {
            format!("no key: {variable} is not set; --key-env names another variable")
        })?,
    };
    Ok(EvaluationOptions {
        provider: ProviderAddress {
            base_url: command.base_url.clone(),
            key,
            model: command.model.clone().unwrap_or_default(),
            like: command.like.clone(),
        },
        policy: policy.map_err(is_said)?,
        tasks: choose_tasks(command).map_err(is_said)?,
        repeat: command.repeat,
        max_calls: command.max_calls,
        budget: Some(command.budget),
        stop,
    })
}

fn choose_tasks(command: &EvalCommand) -> Result<Vec<EvalTask>, EvalError> {
    let all = all_tasks();
    if command.tasks.is_empty() {
        // A checkout that is named is what was meant.
        return Ok(match command.tau.tau_bench {
            Some(_) => Vec::new(),
            None => all,
        });
    }
    let names: Vec<&str> = all.iter().map(|task| task.name).collect();
    let find = |name: &String| {
        let found = all.iter().find(|task| task.name == name.trim());
        found.cloned().ok_or_else(|| EvalError::UnknownTask {
            name: name.clone(),
            known: names.join(", "),
        })
    };
    command.tasks.iter().map(find).collect()
}

fn tau_bench(command: &EvalCommand) -> Option<TauBench> {
    let tau = &command.tau;
    let model = command.model.as_deref().unwrap_or_default();
    Some(TauBench {
        checkout: tau.tau_bench.clone()?,
        python: tau.python.clone(),
        env: tau.tau_env.clone(),
        start: tau.tau_start,
        end: tau.tau_end,
        user_model: tau.user_model.clone().unwrap_or_else(|| model.to_owned()),
        arguments: tau.tau_arguments.clone(),
    })
}

/// Without a price nothing counts against the budget, and people should know before money is spent.
fn warn_about_price(options: &EvaluationOptions) {
    let provider = &options.provider;
    let model = provider.like.as_ref().unwrap_or(&provider.model);
    let priced = Catalogue::builtin()
        .resolve(model)
        .is_ok_and(|spec| spec.prices.input.is_some() && spec.prices.output.is_some());
    if !priced {
        eprintln!(
            "no price of {model} is known: --budget stops nothing; --like names a model with a price"
        );
    }
}

fn progress_line(run: &PlayedRun) -> String {
    let arm = match run.arm {
        Arm::Plain => "plain",
        Arm::Policy => "policy",
    };
    let end = match &run.verdict {
        Verdict::Judged { done, of, .. } => format!("done {done} of {of}"),
        Verdict::ProviderFailed { why } => format!("the provider failed: {why}"),
        Verdict::OutOfBudget => "the budget is used up".to_owned(),
        Verdict::Interrupted => "interrupted".to_owned(),
    };
    let CallFigures { calls, dollars, .. } = &run.figures;
    format!("{} ({arm}): {end}, {calls} calls, {dollars}", run.task)
}
