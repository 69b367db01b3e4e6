//! Plays tasks, each with and without the policy, within the bounds that were given.
//!
//! Not here: how a task is played (`agent`), and how figures are shown (`report`).

use std::time::Instant;

use contexture::catalogue::Money;
use tokio::sync::watch;

use crate::agent::{ChatAgent, LoopEnd, ProviderFailure};
use crate::error::EvalError;
use crate::policy::PolicyUnderTest;
use crate::report::{Arm, EvaluationReport, PlayedRun, Verdict};
use crate::served::{ProviderAddress, Served};
use crate::tasks::{EvalTask, World};

/// What is played, and within which bounds.
#[derive(Clone, Debug)]
pub struct EvaluationOptions {
    /// Provider and model to call.
    pub provider: ProviderAddress,
    /// Policy of the second way.
    pub policy: PolicyUnderTest,
    /// Tasks in the order in which they are played.
    pub tasks: Vec<EvalTask>,
    /// How often each is played in each way.
    pub repeat: u32,
    /// Most calls that the agent makes for one task.
    pub max_calls: u32,
    /// Most dollars to spend; `None` for no limit. Calls of models without a price count nothing.
    pub budget: Option<Money>,
    /// Becomes true when the person wants to stop.
    pub stop: watch::Receiver<bool>,
}

impl EvaluationOptions {
    /// Returns what is left of the budget.
    ///
    /// # Errors
    /// The reason to stop: it is used up, or the person wants to stop.
    pub(crate) fn remaining_budget(
        &self,
        report: &EvaluationReport,
    ) -> Result<Option<Money>, String> {
        if *self.stop.borrow() {
            return Err("interrupted".to_owned());
        }
        let Some(budget) = self.budget else {
            return Ok(None);
        };
        let left = budget.saturating_sub(report.spent());
        match left > Money::ZERO {
            true => Ok(Some(left)),
            false => Err(format!("the budget of {budget} is used up (--budget)")),
        }
    }

    /// Returns a report without runs.
    #[must_use]
    pub fn empty_report(&self) -> EvaluationReport {
        EvaluationReport {
            model: self.provider.model.clone(),
            policy: self.policy.to_toml(),
            runs: Vec::new(),
            stopped: None,
        }
    }
}

/// Plays all tasks and adds their runs to the report; `on_run` sees each as it ends. It stops early, and the report says why, when
/// the budget is used up, when the provider refuses the key, or when the person wants to.
///
/// # Errors
/// The server does not start, or its record cannot be read.
pub async fn play_tasks(
    options: &EvaluationOptions,
    report: &mut EvaluationReport,
    on_run: &mut dyn FnMut(&PlayedRun),
) -> Result<(), EvalError> {
    for repetition in 1..=options.repeat {
        for task in &options.tasks {
            // One way directly after the other, so that an evaluation that ends early has pairs.
            for arm in Arm::BOTH {
                let budget = match options.remaining_budget(report) {
                    Ok(budget) => budget,
                    Err(why) => {
                        report.stopped = Some(why);
                        return Ok(());
                    }
                };
                let (run, failure) = play_once(options, task, arm, repetition, budget).await?;
                on_run(&run);
                report.runs.push(run);
                if let Some(failure) = failure.filter(ProviderFailure::is_final) {
                    report.stopped = Some(format!("the provider refuses the key: {}", failure.why));
                    return Ok(());
                }
            }
        }
    }
    Ok(())
}

/// Plays the turns of a task; `None` if the person stopped it.
async fn play_until_stopped(
    options: &EvaluationOptions,
    task: &EvalTask,
    served: &Served,
    world: &mut dyn World,
) -> Option<LoopEnd> {
    let mut stop = options.stop.clone();
    match ChatAgent::new(&served.base_url(), &options.provider, options.max_calls) {
        Ok(agent) => tokio::select! {
            // First the person's wish: otherwise another call could begin, and cost money.
            biased;
            _ = stop.wait_for(|is_wanted| *is_wanted) => None,
            end = agent.play_turns(task, world) => Some(end),
        },
        Err(failure) => Some(LoopEnd::ProviderFailed(failure)),
    }
}

/// Plays a task once, in front of a server of its own.
async fn play_once(
    options: &EvaluationOptions,
    task: &EvalTask,
    arm: Arm,
    repetition: u32,
    budget: Option<Money>,
) -> Result<(PlayedRun, Option<ProviderFailure>), EvalError> {
    let policy = (arm == Arm::Policy).then_some((&options.policy, None));
    let served = Served::start(&options.provider, policy, budget).await?;
    let mut world = task.start_world();
    let begin = Instant::now();
    let end = play_until_stopped(options, task, &served, &mut *world).await;
    let seconds = begin.elapsed().as_secs_f64();
    // Also of a run that was interrupted: what it cost counts.
    let figures = served.finish().await?;
    let judge = |faults: Vec<String>| Verdict::Judged {
        done: if faults.is_empty() { 1.0 } else { 0.0 },
        of: 1,
        faults,
    };
    let mut failed = None;
    let verdict = match end {
        None => Verdict::Interrupted,
        Some(LoopEnd::Answered) => judge(world.faults()),
        Some(LoopEnd::Stopped(why)) => judge(std::iter::once(why).chain(world.faults()).collect()),
        // Our own server refuses calls beyond the budget; to the agent that looks like any provider's refusal.
        Some(LoopEnd::ProviderFailed(_)) if figures.is_over_budget => Verdict::OutOfBudget,
        Some(LoopEnd::ProviderFailed(failure)) => {
            let why = failure.why.clone();
            failed = Some(failure);
            Verdict::ProviderFailed { why }
        }
    };
    let run = PlayedRun {
        task: task.name.to_owned(),
        arm,
        repetition,
        verdict,
        figures,
        seconds,
    };
    Ok((run, failed))
}
