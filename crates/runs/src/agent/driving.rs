//! Driving a run to its end: what comes next, until nothing does.

use contexture_engine::{Conversation, EngineError};
use contexture_ir::Item;
use contexture_telemetry::Operation;
use tracing::Instrument as _;

use super::config::Agent;
use super::ended::StoredRunEnd;
use super::entry::RunStatus;
use super::event::RunEventKind;
use super::outcome::{Turn, TurnEnd};
use super::run::{Run, user_message};
use super::situation::NextStep;
use crate::error::RunError;
use crate::until::{Snapshot, StopReason};

impl Run {
    /// Goes on until the run ends, or waits.
    ///
    /// # Errors
    /// [`RunError`]. A run that went wrong or was called off has ended, with all that was finished kept; only where the
    /// store itself fails it stays open, to be resumed.
    pub async fn drive(&mut self) -> Result<Turn, RunError> {
        if let Some(ended) = self.stored_end.clone() {
            return self.stored_outcome(ended);
        }
        let (agent, chat, id) = (&self.record.agent, self.chat.id(), self.id.to_string());
        let operation = Operation::for_agent(agent, chat.as_str(), &id, self.record.depth);
        let span = operation.span().clone();
        let ended = self.run_to_end().instrument(span.clone()).await;
        if let Ok(turn) = &ended {
            span.record("ctx.run.status", turn.end.as_str());
        }
        operation.end(ended.as_ref().err().map(RunError::kind));
        ended
    }

    async fn run_to_end(&mut self) -> Result<Turn, RunError> {
        let ended = self.step_loop().await;
        match ended {
            Ok(TurnEnd::Waiting { calls }) => {
                self.notify_observer(|| RunEventKind::Waiting {
                    calls: calls.clone(),
                });
                self.store_waiting(&calls).await?;
                Ok(self.build_turn(TurnEnd::Waiting { calls }))
            }
            Ok(end) => {
                self.finish_run(RunStatus::Completed, None).await?;
                Ok(self.build_turn(end))
            }
            // The store failed: what is there is whole, and can be taken up.
            Err(error @ RunError::Engine(EngineError::Store(_))) => Err(error),
            Err(error) => {
                let status = match &error {
                    RunError::Cancelled(_) => RunStatus::Aborted,
                    _ => RunStatus::Failed,
                };
                // What ended the run counts more than that its end could not be stored.
                if let Err(second) = self.finish_run(status, Some(&error)).await {
                    tracing::warn!(run = %self.id, error = %second, "a run's end is not stored");
                }
                Err(error)
            }
        }
    }

    /// What it came to, of a run that has ended before it was taken up.
    fn stored_outcome(&self, ended: StoredRunEnd) -> Result<Turn, RunError> {
        let why = ended.why.unwrap_or_default();
        match ended.status {
            RunStatus::Completed | RunStatus::Running | RunStatus::Waiting => {
                Ok(self.build_turn(TurnEnd::Completed))
            }
            RunStatus::Aborted | RunStatus::Failed => Err(RunError::Ended { why }),
        }
    }

    async fn step_loop(&mut self) -> Result<TurnEnd, RunError> {
        loop {
            if std::mem::take(&mut self.has_unchecked_answer)
                && let Some(stop) = self.check_stop_condition()
            {
                let reason = stop.reason;
                return Ok(TurnEnd::Stopped { reason });
            }
            if self.value.is_some() && !matches!(self.next_step, NextStep::Run(_)) {
                return Ok(TurnEnd::Completed);
            }
            self.check_budget()?;
            match self.next_step.clone() {
                NextStep::Ask { refused } => {
                    self.drain_inbox().await?;
                    self.run_model_step(refused).await?;
                }
                NextStep::Run(calls) => {
                    let waiting = self.run_calls(calls).await?;
                    if !waiting.is_empty() {
                        // Called off while somebody was asked, it does not wait.
                        self.check_budget()?;
                        return Ok(TurnEnd::Waiting { calls: waiting });
                    }
                }
                NextStep::End { .. } => {
                    if !self.drain_inbox().await? {
                        return Ok(TurnEnd::Completed);
                    }
                    self.next_step = NextStep::Ask { refused: 0 };
                }
            }
        }
    }

    /// Whether what is to stop the run holds after an answer.
    fn check_stop_condition(&self) -> Option<StopReason> {
        let calls: Vec<_> = match &self.next_step {
            NextStep::Run(calls) => calls.calls.iter().map(|call| call.call.clone()).collect(),
            NextStep::Ask { .. } | NextStep::End { .. } => Vec::new(),
        };
        let until = self.agent.stop_condition.as_ref()?;
        let spent = self.usage();
        let mut now = Snapshot::new(u64::from(self.step), &spent);
        now.elapsed = spent.elapsed;
        now.text = self.last_text.as_deref();
        now.calls = &calls;
        now.outputs = &self.answer_texts;
        now.depth = self.record.depth as usize;
        until.evaluate(&now)
    }

    fn build_turn(&self, end: TurnEnd) -> Turn {
        Turn {
            run: self.id,
            branch: self.chat.branch(),
            end,
            text: self.last_text.clone().unwrap_or_default(),
            value: self.value.clone(),
            spent: self.usage(),
        }
    }
}

/// One turn of an agent: what is said, until it is done.
///
/// # Errors
/// As [`Run::drive`].
pub async fn run_turn(
    chat: &Conversation,
    agent: &Agent,
    input: impl IntoIterator<Item = Item>,
) -> Result<Turn, RunError> {
    let mut run = Run::begin(chat, agent, input).await?;
    run.drive().await
}

/// As [`run_turn`], saying a text.
///
/// # Errors
/// As [`Run::drive`].
pub async fn run_turn_with_text(
    chat: &Conversation,
    agent: &Agent,
    text: &str,
) -> Result<Turn, RunError> {
    run_turn(chat, agent, [user_message(text)]).await
}
