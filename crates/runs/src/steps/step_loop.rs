//! The agent loop: drives a run step by step until it ends or waits.

use std::pin::pin;

use contexture_engine::{BranchClaim, EngineError};
use contexture_store::Error as StoreError;
use contexture_telemetry::{Operation, record_cost};
use futures_util::future::{Either, select};
use tracing::{Instrument as _, Span};

use crate::agent::{RunEventKind, Turn, TurnEnd};
use crate::error::RunError;
use crate::execution::{LiveRun, NextStep};
use crate::limits::{RunUsage, Snapshot, StopReason};
use crate::record::{RunStatus, StoredRunEnd};
use crate::steps::cancel::{abort_if_requested, clear_request, watch_for_cancel};
use crate::steps::final_answer::reject_final_answer;
use crate::steps::finish::{finish_run, store_waiting};
use crate::steps::inbox::drain_inbox;
use crate::steps::model_step::run_model_step;
use crate::steps::resume::reclaim;
use crate::steps::tool_step::run_calls;

/// Drives the run until it ends or waits.
///
/// # Errors
/// [`RunError`]. If the store fails, the run stays open; any other error has ended it.
pub(crate) async fn drive(run: &mut LiveRun) -> Result<Turn, RunError> {
    // A child run may have ended before its parent could store that: then nothing runs again.
    if let Some(ended) = run.stored_end.clone() {
        return stored_outcome(run, ended);
    }
    run.check_open()?;
    // It waited, or the store failed: meanwhile decisions may have been stored, or another process may have gone on.
    if !run.claim.as_ref().is_some_and(BranchClaim::is_held) {
        reclaim(run).await?;
    }
    let (agent, chat, id) = (&run.record.agent, run.chat.id(), run.id.to_string());
    let operation = Operation::for_agent(agent, chat.as_str(), &id, run.record.depth);
    let span = operation.span().clone();
    record_resource(run, &span).await;
    let ended = run_until_cancelled(run).instrument(span.clone()).await;
    record_run_usage(&run.usage(), &span);
    if let Ok(turn) = &ended {
        span.record("ctx.run.status", turn.end.as_str());
    }
    // Waiting is not a failure, so only an error ends the operation as failed.
    operation.end(ended.as_ref().err().map(RunError::kind));
    ended
}

/// Records on the run's span whose conversation it works in. A store that cannot say so is no reason to fail a run.
async fn record_resource(run: &LiveRun, span: &Span) {
    // Without anybody who listens, the store is not asked.
    if !span.is_disabled()
        && let Ok(Some(resource)) = run.chat.resource().await
    {
        span.record("ctx.resource.id", resource);
    }
}

/// Records what the run has used until now, its children included.
fn record_run_usage(usage: &RunUsage, span: &Span) {
    for (name, tokens) in [
        ("gen_ai.usage.input_tokens", usage.tokens.input),
        ("gen_ai.usage.output_tokens", usage.tokens.output),
    ] {
        if let Some(tokens) = tokens {
            span.record(name, tokens);
        }
    }
    if let Some(dollars) = usage.cost_in_dollars() {
        record_cost(span, dollars);
    }
}

/// Runs the loop, and aborts it if somebody asks for that, in any process.
async fn run_until_cancelled(run: &mut LiveRun) -> Result<Turn, RunError> {
    let (chat, id, abort) = (run.chat.clone(), run.id, run.abort.clone());
    // Somebody may have asked while nobody drove it.
    if run.was_resumed {
        let looked = abort_if_requested(&chat, id, &abort).await;
        if let Err(error) = looked {
            // The store failed before the first step: the run stays open, for whoever resumes it.
            run.release_claim().await;
            return Err(error.into());
        }
    }
    let ended = {
        let work = pin!(run_to_end(run));
        let watch = pin!(watch_for_cancel(chat.clone(), id, abort.clone()));
        match select(work, watch).await {
            Either::Left((ended, _)) => ended,
            // It ends by its abort, and stores what is finished.
            Either::Right(((), work)) => work.await,
        }
    };
    // Where its end could not be stored, whoever takes it up must still see that it was cancelled.
    if abort.reason().is_some() && run.end.is_some() {
        clear_request(&chat, id).await;
    }
    ended
}

/// Runs the loop and stores how it ended.
async fn run_to_end(run: &mut LiveRun) -> Result<Turn, RunError> {
    let ended = match step_loop(run).await {
        Ok(end) => Ok(end),
        Err(error) => Err(explain_error(run, error).await),
    };
    match ended {
        Ok(TurnEnd::Waiting { calls }) => {
            run.notify_observer(|| RunEventKind::Waiting {
                calls: calls.clone(),
            });
            let stored = store_waiting(run, &calls).await;
            run.is_waiting = stored.is_ok();
            // Nobody drives a run that waits, so whoever has the decision can go on with it. The same if the store failed.
            run.release_claim().await;
            stored?;
            Ok(build_turn(run, TurnEnd::Waiting { calls }))
        }
        Ok(end) => {
            let finished = finish_run(run, RunStatus::Completed, None).await;
            if let Err(error) = finished {
                let error = explain_error(run, error).await;
                run.release_claim().await;
                return Err(error);
            }
            Ok(build_turn(run, end))
        }
        // A store that failed cannot store the end either, and another driver goes on by itself. What is stored is consistent,
        // so the run can be resumed.
        Err(error) if error.leaves_open() => {
            run.release_claim().await;
            Err(error)
        }
        Err(error) => {
            let status = match &error {
                RunError::Cancelled(_) => RunStatus::Aborted,
                _ => RunStatus::Failed,
            };
            // The caller gets the first error, which is the cause. If the end could not be stored, the run stays open.
            if let Err(second) = finish_run(run, status, Some(&error)).await {
                tracing::warn!(run = %run.id, error = %second, "a run's end is not stored");
                run.release_claim().await;
            }
            Err(error)
        }
    }
}

/// Says what a refused append means: whether another process has taken the run up.
async fn explain_error(run: &LiveRun, error: RunError) -> RunError {
    let error = error.or_superseded();
    let RunError::Engine(EngineError::Store(StoreError::IdConflict { .. })) = &error else {
        return error;
    };
    // The other driver's nodes have the same ids, because these derive from what they are about.
    match run.check_current().await {
        Err(superseded @ RunError::Superseded { .. }) => superseded,
        Ok(()) | Err(_) => error,
    }
}

/// Returns the outcome of a run that had ended before it was loaded.
fn stored_outcome(run: &LiveRun, ended: StoredRunEnd) -> Result<Turn, RunError> {
    let reason = ended.reason.unwrap_or_default();
    match ended.status {
        // A stored end is never that of an open run; if one is, that is no reason to fail.
        RunStatus::Completed | RunStatus::Queued | RunStatus::Running | RunStatus::Waiting => {
            Ok(build_turn(run, TurnEnd::Completed))
        }
        RunStatus::Aborted | RunStatus::Failed => Err(RunError::Ended { reason }),
    }
}

/// Takes steps until the run ends or waits.
async fn step_loop(run: &mut LiveRun) -> Result<TurnEnd, RunError> {
    loop {
        // The stop condition is evaluated before the answer's calls run: a run that is to stop starts no further work.
        if run.has_unchecked_answer {
            if let Some(stop) = check_stop_condition(run).await? {
                let reason = stop.reason;
                return Ok(TurnEnd::Stopped { reason });
            }
            run.has_unchecked_answer = false;
        }
        // Open calls of the last answer run even if a value has ended the run: a call without an output would make the
        // history invalid for the next turn.
        if run.value.is_some() && !matches!(run.next_step, NextStep::Run(_)) {
            return Ok(TurnEnd::Completed);
        }
        // Before each step and not within one: a step in progress is finished and stored, even if it exceeds the
        // budget.
        run.check_budget()?;
        match run.next_step.clone() {
            NextStep::Ask { refused } => {
                run.check_answers()?;
                // Before the call is compiled, so that the model sees what has just arrived.
                drain_inbox(run).await?;
                run_model_step(run, refused).await?;
            }
            NextStep::Run(calls) => {
                let waiting = run_calls(run, calls).await?;
                if !waiting.is_empty() {
                    // If the run was aborted meanwhile, or its budget is used up, it ends now instead of waiting.
                    run.check_budget()?;
                    return Ok(TurnEnd::Waiting { calls: waiting });
                }
            }
            // Providers give empty answers at times; the next one mostly is not.
            NextStep::End { text } if text.is_empty() && run.may_ask_again() => {
                let feedback = "the answer is empty".to_owned();
                run.notify_observer(|| RunEventKind::ResponseRejected { feedback });
                run.next_step = NextStep::Ask { refused: 0 };
            }
            NextStep::End { text } => {
                if reject_final_answer(run, &text).await? {
                    run.next_step = NextStep::Ask { refused: 0 };
                    continue;
                }
                // A message that arrived during the last answer still belongs to this run.
                if !drain_inbox(run).await? {
                    return Ok(TurnEnd::Completed);
                }
                run.next_step = NextStep::Ask { refused: 0 };
            }
        }
    }
}

/// Evaluates the agent's stop condition on the last answer.
async fn check_stop_condition(run: &LiveRun) -> Result<Option<StopReason>, RunError> {
    // Most agents have none: their runs end when an answer calls no tool.
    let Some(until) = &run.agent.stop_condition else {
        return Ok(None);
    };
    let calls: Vec<_> = match &run.next_step {
        NextStep::Run(calls) => calls.calls.iter().map(|call| call.call.clone()).collect(),
        NextStep::Ask { .. } | NextStep::End { .. } => Vec::new(),
    };
    let usage = run.usage();
    let mut now = Snapshot::new(u64::from(run.step), &usage);
    now.elapsed = usage.elapsed;
    now.text = run.last_text.as_deref();
    now.calls = &calls;
    now.outputs = &run.answer_texts;
    now.depth = run.record.depth as usize;
    // A judge may ask a model, which an abort cuts off.
    Ok(run.abort.run_until_aborted(until.evaluate(&now)).await?)
}

/// Builds the outcome that the caller gets.
fn build_turn(run: &LiveRun, end: TurnEnd) -> Turn {
    Turn {
        run: run.id,
        branch: run.chat.branch(),
        end,
        text: run.last_text.clone().unwrap_or_default(),
        value: run.value.clone(),
        usage: run.usage(),
        last_step: run.last_step.clone(),
    }
}
