//! Driving a run to its end: what comes next, until nothing does.

use contexture_engine::{Conversation, EngineError};
use contexture_ir::Item;
use contexture_telemetry::Operation;
use tracing::Instrument as _;

use super::config::Agent;
use super::ended::RunEnded;
use super::entry::RunStatus;
use super::event::RunNews;
use super::outcome::{Ended, Turn};
use super::run::{Run, said_by_user};
use super::situation::Next;
use crate::error::RunError;
use crate::until::{Snapshot, Stop};

impl Run {
    /// Goes on until the run ends, or waits.
    ///
    /// # Errors
    /// [`RunError`]. A run that went wrong or was called off has ended, with all that was finished kept; only where the
    /// store itself fails it stays open, to be resumed.
    pub async fn drive(&mut self) -> Result<Turn, RunError> {
        if let Some(ended) = self.ended.clone() {
            return self.as_it_ended(ended);
        }
        let (agent, chat, id) = (&self.record.agent, self.chat.id(), self.id.to_string());
        let operation = Operation::agent(agent, chat.as_str(), &id, self.record.depth);
        let span = operation.span().clone();
        let ended = self.driven().instrument(span.clone()).await;
        if let Ok(turn) = &ended {
            span.record("ctx.run.status", turn.end.as_str());
        }
        operation.end(ended.as_ref().err().map(RunError::kind));
        ended
    }

    async fn driven(&mut self) -> Result<Turn, RunError> {
        let ended = self.go_on().await;
        match ended {
            Ok(Ended::Waiting { calls }) => {
                self.tell(|| RunNews::Waiting {
                    calls: calls.clone(),
                });
                self.store_waiting(&calls).await?;
                Ok(self.turn(Ended::Waiting { calls }))
            }
            Ok(end) => {
                self.end(RunStatus::Completed, None).await?;
                Ok(self.turn(end))
            }
            // The store failed: what is there is whole, and can be taken up.
            Err(error @ RunError::Engine(EngineError::Store(_))) => Err(error),
            Err(error) => {
                let status = match &error {
                    RunError::Cancelled(_) => RunStatus::Aborted,
                    _ => RunStatus::Failed,
                };
                // What ended the run counts more than that its end could not be stored.
                if let Err(second) = self.end(status, Some(&error)).await {
                    tracing::warn!(run = %self.id, error = %second, "a run's end is not stored");
                }
                Err(error)
            }
        }
    }

    /// What it came to, of a run that has ended before it was taken up.
    fn as_it_ended(&self, ended: RunEnded) -> Result<Turn, RunError> {
        let why = ended.why.unwrap_or_default();
        match ended.status {
            RunStatus::Completed | RunStatus::Running | RunStatus::Waiting => {
                Ok(self.turn(Ended::Completed))
            }
            RunStatus::Aborted | RunStatus::Failed => Err(RunError::Ended { why }),
        }
    }

    async fn go_on(&mut self) -> Result<Ended, RunError> {
        loop {
            if std::mem::take(&mut self.answered)
                && let Some(stop) = self.stops()
            {
                let reason = stop.reason;
                return Ok(Ended::Stopped { reason });
            }
            if self.value.is_some() && !matches!(self.next, Next::Run(_)) {
                return Ok(Ended::Completed);
            }
            self.may_go_on()?;
            match self.next.clone() {
                Next::Ask { refused } => {
                    self.take_in().await?;
                    self.ask(refused).await?;
                }
                Next::Run(calls) => {
                    let waiting = self.run_calls(calls).await?;
                    if !waiting.is_empty() {
                        // Called off while somebody was asked, it does not wait.
                        self.may_go_on()?;
                        return Ok(Ended::Waiting { calls: waiting });
                    }
                }
                Next::End { .. } => {
                    if !self.take_in().await? {
                        return Ok(Ended::Completed);
                    }
                    self.next = Next::Ask { refused: 0 };
                }
            }
        }
    }

    /// Whether what is to stop the run holds after an answer.
    fn stops(&self) -> Option<Stop> {
        let calls: Vec<_> = match &self.next {
            Next::Run(calls) => calls.calls.iter().map(|call| call.call.clone()).collect(),
            Next::Ask { .. } | Next::End { .. } => Vec::new(),
        };
        let until = self.agent.until.as_ref()?;
        let spent = self.spent();
        let mut now = Snapshot::new(u64::from(self.step), &spent);
        now.elapsed = spent.elapsed;
        now.text = self.last_text.as_deref();
        now.calls = &calls;
        now.outputs = &self.texts;
        now.depth = self.record.depth as usize;
        until.check(&now)
    }

    fn turn(&self, end: Ended) -> Turn {
        Turn {
            run: self.id,
            branch: self.chat.branch(),
            end,
            text: self.last_text.clone().unwrap_or_default(),
            value: self.value.clone(),
            spent: self.spent(),
        }
    }
}

/// One turn of an agent: what is said, until it is done.
///
/// # Errors
/// As [`Run::drive`].
pub async fn turn(
    chat: &Conversation,
    agent: &Agent,
    input: impl IntoIterator<Item = Item>,
) -> Result<Turn, RunError> {
    let mut run = Run::begin(chat, agent, input).await?;
    run.drive().await
}

/// As [`turn`], saying a text.
///
/// # Errors
/// As [`Run::drive`].
pub async fn turn_text(chat: &Conversation, agent: &Agent, text: &str) -> Result<Turn, RunError> {
    turn(chat, agent, [said_by_user(text)]).await
}
