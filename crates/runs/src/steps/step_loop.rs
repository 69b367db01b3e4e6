//! Driving a run to its end: what comes next, until nothing does.

use contexture_engine::EngineError;
use contexture_telemetry::Operation;
use tracing::Instrument as _;

use crate::agent::{RunEventKind, Turn, TurnEnd};
use crate::error::RunError;
use crate::execution::{LiveRun, NextStep};
use crate::limits::{Snapshot, StopReason};
use crate::record::{RunStatus, StoredRunEnd};
use crate::steps::finish::{finish_run, store_waiting};
use crate::steps::inbox::drain_inbox;
use crate::steps::model_step::run_model_step;
use crate::steps::tool_step::run_calls;

/// Goes on until the run ends, or waits.
///
/// # Errors
/// [`RunError`]. A run that went wrong or was called off has ended, with all that was finished kept; only where the
/// store itself fails it stays open, to be resumed.
pub(crate) async fn drive(run: &mut LiveRun) -> Result<Turn, RunError> {
    if let Some(ended) = run.stored_end.clone() {
        return stored_outcome(run, ended);
    }
    let (agent, chat, id) = (&run.record.agent, run.chat.id(), run.id.to_string());
    let operation = Operation::for_agent(agent, chat.as_str(), &id, run.record.depth);
    let span = operation.span().clone();
    let ended = run_to_end(run).instrument(span.clone()).await;
    if let Ok(turn) = &ended {
        span.record("ctx.run.status", turn.end.as_str());
    }
    operation.end(ended.as_ref().err().map(RunError::kind));
    ended
}

async fn run_to_end(run: &mut LiveRun) -> Result<Turn, RunError> {
    let ended = step_loop(run).await;
    match ended {
        Ok(TurnEnd::Waiting { calls }) => {
            run.notify_observer(|| RunEventKind::Waiting {
                calls: calls.clone(),
            });
            store_waiting(run, &calls).await?;
            Ok(build_turn(run, TurnEnd::Waiting { calls }))
        }
        Ok(end) => {
            finish_run(run, RunStatus::Completed, None).await?;
            Ok(build_turn(run, end))
        }
        // The store failed: what is there is whole, and can be taken up.
        Err(error @ RunError::Engine(EngineError::Store(_))) => Err(error),
        Err(error) => {
            let status = match &error {
                RunError::Cancelled(_) => RunStatus::Aborted,
                _ => RunStatus::Failed,
            };
            // What ended the run counts more than that its end could not be stored.
            if let Err(second) = finish_run(run, status, Some(&error)).await {
                tracing::warn!(run = %run.id, error = %second, "a run's end is not stored");
            }
            Err(error)
        }
    }
}

/// What it came to, of a run that has ended before it was taken up.
fn stored_outcome(run: &LiveRun, ended: StoredRunEnd) -> Result<Turn, RunError> {
    let why = ended.why.unwrap_or_default();
    match ended.status {
        RunStatus::Completed | RunStatus::Running | RunStatus::Waiting => {
            Ok(build_turn(run, TurnEnd::Completed))
        }
        RunStatus::Aborted | RunStatus::Failed => Err(RunError::Ended { why }),
    }
}

async fn step_loop(run: &mut LiveRun) -> Result<TurnEnd, RunError> {
    loop {
        if std::mem::take(&mut run.has_unchecked_answer)
            && let Some(stop) = check_stop_condition(run)
        {
            let reason = stop.reason;
            return Ok(TurnEnd::Stopped { reason });
        }
        if run.value.is_some() && !matches!(run.next_step, NextStep::Run(_)) {
            return Ok(TurnEnd::Completed);
        }
        run.check_budget()?;
        match run.next_step.clone() {
            NextStep::Ask { refused } => {
                drain_inbox(run).await?;
                run_model_step(run, refused).await?;
            }
            NextStep::Run(calls) => {
                let waiting = run_calls(run, calls).await?;
                if !waiting.is_empty() {
                    // Called off while somebody was asked, it does not wait.
                    run.check_budget()?;
                    return Ok(TurnEnd::Waiting { calls: waiting });
                }
            }
            NextStep::End { .. } => {
                if !drain_inbox(run).await? {
                    return Ok(TurnEnd::Completed);
                }
                run.next_step = NextStep::Ask { refused: 0 };
            }
        }
    }
}

/// Whether what is to stop the run holds after an answer.
fn check_stop_condition(run: &LiveRun) -> Option<StopReason> {
    let calls: Vec<_> = match &run.next_step {
        NextStep::Run(calls) => calls.calls.iter().map(|call| call.call.clone()).collect(),
        NextStep::Ask { .. } | NextStep::End { .. } => Vec::new(),
    };
    let until = run.agent.stop_condition.as_ref()?;
    let spent = run.usage();
    let mut now = Snapshot::new(u64::from(run.step), &spent);
    now.elapsed = spent.elapsed;
    now.text = run.last_text.as_deref();
    now.calls = &calls;
    now.outputs = &run.answer_texts;
    now.depth = run.record.depth as usize;
    until.evaluate(&now)
}

fn build_turn(run: &LiveRun, end: TurnEnd) -> Turn {
    Turn {
        run: run.id,
        branch: run.chat.branch(),
        end,
        text: run.last_text.clone().unwrap_or_default(),
        value: run.value.clone(),
        spent: run.usage(),
    }
}
