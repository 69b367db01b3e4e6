//! Runs below a run: each on a branch of its own, with what its parent hands over, giving back a text.

use contexture_engine::{Conversation, EngineError};
use contexture_ir::{NodeId, RunId};
use contexture_layers::{ChildEnd, RunEnd};
use contexture_store::{
    Activation, BranchLabel, Error as StoreError, NewBranch, PathEnd, RefChange, StateChange,
};

use super::beside::SideUsageLog;
use super::config::{ChildHistory, SubAgent};
use super::ended::StoredRunEnd;
use super::entry::{RUN_STATE_VERSION, RunEntry, RunRecord, RunStatus, head_to_string};
use super::event::RunEventKind;
use super::keys::{child_branch, child_id, child_key};
use super::outcome::{Turn, TurnEnd};
use super::run::{Run, json_bytes, user_message};
use super::situation::{UnansweredCall, UnansweredCalls};
use crate::error::RunError;
use crate::tools::{ToolFailure, ToolOutput};

/// What became of a task that was given to another agent.
pub(crate) enum SubAgentOutcome {
    /// It is done, or cannot be.
    Done {
        result: Result<ToolOutput, ToolFailure>,
        changes: Vec<StateChange>,
    },
    /// These calls wait for a person's decision.
    Waits(Vec<NodeId>),
}

impl SubAgentOutcome {
    fn from_failure(failure: ToolFailure) -> Self {
        Self::Done {
            result: Err(failure),
            changes: Vec::new(),
        }
    }
}

impl Run {
    /// Begins a child run, or takes up the one that was begun under this name: on a branch of its own, its budget within
    /// what this run has left. Whoever drives it gives its end back by [`Run::join_child`].
    ///
    /// # Errors
    /// [`RunError::Depth`] below 64 ancestors; [`RunError::Engine`].
    pub async fn spawn_child(
        &mut self,
        name: &str,
        agent: &SubAgent,
        task: &str,
    ) -> Result<Run, RunError> {
        let base = match agent.history {
            ChildHistory::Fresh => None,
            ChildHistory::Forked => self.last_head(),
        };
        let id = child_id(self.id, name.as_bytes());
        self.open_child_run(id, agent, base, task).await
    }

    /// Tells a running child's layers of this run's states.
    ///
    /// # Errors
    /// [`RunError::Engine`] for a layer that must not fail.
    pub async fn update_child(&self, child: &mut Run) -> Result<(), RunError> {
        self.session.update_child(&mut child.session).await?;
        Ok(())
    }

    /// Takes back what a child gave: layers are told, and what it spent counts here. Done twice, also by a run that is
    /// resumed, it does nothing new. One that waits has no end yet: nothing is taken back.
    ///
    /// # Errors
    /// [`RunError::Engine`].
    pub async fn join_child(
        &mut self,
        child: &Run,
        turn: &Result<Turn, RunError>,
    ) -> Result<(), RunError> {
        if let Ok(Turn {
            end: TurnEnd::Waiting { .. },
            ..
        }) = turn
        {
            return Ok(());
        }
        if self
            .load_state_value(&child_key(self.id, child.id)?)
            .await?
            .is_some()
        {
            return Ok(());
        }
        let changes = self.collect_child_result(child, turn).await?;
        self.append_state("child", changes).await
    }

    /// The task of a call, done by another agent.
    pub(crate) async fn run_sub_agent(
        &mut self,
        of: &UnansweredCalls,
        call: &UnansweredCall,
        task: &str,
    ) -> Result<SubAgentOutcome, RunError> {
        let Some(agent) = self.agent.agents.get(&call.call.name).cloned() else {
            let why = format!("{} is no agent", call.call.name);
            return Ok(SubAgentOutcome::from_failure(ToolFailure::Unknown { why }));
        };
        let base = match agent.history {
            ChildHistory::Fresh => None,
            ChildHistory::Forked => of.base,
        };
        let id = child_id(self.id, call.node.as_bytes());
        let mut child = match self.open_child_run(id, &agent, base, task).await {
            Ok(child) => child,
            Err(error @ RunError::Depth { .. }) => {
                return Ok(SubAgentOutcome::from_failure(ToolFailure::from_message(
                    error,
                )));
            }
            Err(error) => return Err(error),
        };
        let turn = Box::pin(child.drive()).await;
        match turn {
            // It is open still, and so is this run.
            Err(error @ RunError::Engine(EngineError::Store(_))) => return Err(error),
            Ok(Turn {
                end: TurnEnd::Waiting { calls },
                ..
            }) => return Ok(SubAgentOutcome::Waits(calls)),
            _ => {}
        }
        let changes = self.collect_child_result(&child, &turn).await?;
        let result = match turn {
            Ok(turn) => Ok(turn
                .value
                .map_or(turn.text, |value| value.get().to_owned())
                .into()),
            Err(RunError::Cancelled(cancelled)) => Err(cancelled.into()),
            Err(error) => Err(ToolFailure::from_message(error)),
        };
        Ok(SubAgentOutcome::Done { result, changes })
    }

    async fn collect_child_result(
        &mut self,
        child: &Run,
        turn: &Result<Turn, RunError>,
    ) -> Result<Vec<StateChange>, RunError> {
        let spent = child.usage();
        let end = ChildEnd {
            run: child.id,
            end: run_end(turn.as_ref().err()),
            result: turn.as_ref().ok().map(|turn| turn.text.clone()),
            usage: spent.tokens.into(),
        };
        self.session.on_return(&child.session, &end).await?;
        self.usage.roll_up(&spent);
        let put = StateChange::put_entry(
            child_key(self.id, child.id)?,
            RUN_STATE_VERSION,
            json_bytes(&spent),
        );
        Ok(vec![put])
    }

    async fn open_child_run(
        &mut self,
        id: RunId,
        agent: &SubAgent,
        base: Option<NodeId>,
        task: &str,
    ) -> Result<Run, RunError> {
        let depth = self.record.depth + 1;
        RunError::check_depth(depth as usize)?;
        let chat = self.open_child_branch(id, base).await?;
        self.notify_observer(|| RunEventKind::Spawned { child: id });
        let mut config = agent.agent.clone();
        config.budget = self
            .record
            .budget
            .limit_child(&self.usage(), &agent.agent.budget);
        config.observer = config.observer.or_else(|| self.agent.observer.clone());
        if let Some(mut run) = Self::load_run(&chat, id, &config, self.abort.child()).await? {
            run.channels = self.channels.clone();
            return Ok(run);
        }
        let ended = StoredRunEnd::load(&chat, id).await?;
        let record = RunRecord {
            agent: config.name.clone(),
            parent: Some(self.id.to_string()),
            depth,
            budget: config.budget,
            began_ms: chat.engine().now_ms(),
            base: head_to_string(base),
        };
        let place = record.run_scope(id);
        let session = match &ended {
            None => chat.child_session(place, &self.session).await?,
            // As its layers were before they were told of its end.
            Some((node, _)) => {
                let at = node
                    .parent
                    .map_or(PathEnd::Branch(chat.branch()), PathEnd::Node);
                chat.layer_session_at(at, Some(place)).await?
            }
        };
        let mut run = Self::new(
            chat,
            config,
            id,
            record,
            session,
            self.abort.child(),
            SideUsageLog::new(),
        )?;
        run.channels = self.channels.clone();
        match ended {
            None => run.store_input(vec![user_message(task)]).await?,
            Some((_, ended)) => run.restore_ended_child(ended).await?,
        }
        Ok(run)
    }

    /// A child that has ended, and its parent does not know: what it gave and spent, and how its layers took it.
    async fn restore_ended_child(&mut self, ended: StoredRunEnd) -> Result<(), RunError> {
        let entry = RunEntry::new(self.id, &self.record, &self.chat.branch());
        let entry = ended.clone().apply_to_entry(entry);
        entry.store_entry(&self.chat, self.id).await?;
        let end = match ended.status {
            RunStatus::Aborted => RunEnd::Aborted {
                reason: ended.why.clone(),
            },
            RunStatus::Failed => RunEnd::Failed {
                error: ended.why.clone().unwrap_or_default(),
            },
            RunStatus::Completed | RunStatus::Running | RunStatus::Waiting => RunEnd::Completed,
        };
        self.session.on_complete(&end).await;
        // Those outside the tree were stored with its end.
        self.session.revert_shared_changes();
        self.usage = ended.spent.unwrap_or_default();
        self.earlier_elapsed = self.usage.elapsed;
        self.last_text.clone_from(&ended.result);
        self.value.clone_from(&ended.value);
        self.stored_end = Some(ended);
        Ok(())
    }

    /// The branch of a child, made if it is not there.
    async fn open_child_branch(
        &self,
        id: RunId,
        base: Option<NodeId>,
    ) -> Result<Conversation, RunError> {
        let branch = child_branch(id)?;
        let new = NewBranch {
            base,
            label: BranchLabel::Named(branch.clone()),
            activate: Activation::Keep,
        };
        let (engine, owner) = (self.chat.engine(), self.chat.owner());
        let made = engine.store().change_ref(
            owner,
            self.chat.id(),
            RefChange::CreateBranch(new),
            engine.now_ms(),
        );
        match made.await {
            Ok(_) | Err(StoreError::AlreadyExists { .. }) => {}
            Err(error) => return Err(EngineError::from(error).into()),
        }
        Ok(self.chat.for_branch(branch))
    }
}

pub(crate) fn run_end(error: Option<&RunError>) -> RunEnd {
    match error {
        None => RunEnd::Completed,
        Some(RunError::Cancelled(cancelled)) => RunEnd::Aborted {
            reason: Some(cancelled.reason.to_string()),
        },
        Some(error) => RunEnd::Failed {
            error: error.to_string(),
        },
    }
}
