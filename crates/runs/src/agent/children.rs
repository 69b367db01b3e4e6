//! Runs below a run: each on a branch of its own, with what its parent hands over, giving back a text.

use contexture_engine::{Conversation, EngineError};
use contexture_ir::{NodeId, RunId};
use contexture_layers::{ChildEnd, RunEnd};
use contexture_store::{
    Activation, At, BranchLabel, Error as StoreError, NewBranch, RefChange, StateChange,
};

use super::beside::Books;
use super::config::{ChildHistory, Delegate};
use super::ended::RunEnded;
use super::entry::{RunEntry, RunRecord, RunStatus, VERSION, head_text};
use super::event::RunNews;
use super::keys::{child_branch, child_id, child_key};
use super::outcome::{Ended, Turn};
use super::run::{Run, json, said_by_user};
use super::situation::{Call, Calls};
use crate::error::RunError;
use crate::tools::{ToolFailure, ToolOutput};

/// What became of a task that was given to another agent.
pub(crate) enum Delegated {
    /// It is done, or cannot be.
    Done {
        result: Result<ToolOutput, ToolFailure>,
        changes: Vec<StateChange>,
    },
    /// These calls wait for a person's decision.
    Waits(Vec<NodeId>),
}

impl Delegated {
    fn not(failure: ToolFailure) -> Self {
        Self::Done {
            result: Err(failure),
            changes: Vec::new(),
        }
    }
}

impl Run {
    /// Begins a child run, or takes up the one that was begun under this name: on a branch of its own, its budget within
    /// what this run has left. Whoever drives it gives its end back by [`Run::take_back`].
    ///
    /// # Errors
    /// [`RunError::Depth`] below 64 ancestors; [`RunError::Engine`].
    pub async fn spawn(
        &mut self,
        name: &str,
        agent: &Delegate,
        task: &str,
    ) -> Result<Run, RunError> {
        let base = match agent.history {
            ChildHistory::Fresh => None,
            ChildHistory::Forked => self.last_head(),
        };
        let id = child_id(self.id, name.as_bytes());
        self.child(id, agent, base, task).await
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
    pub async fn take_back(
        &mut self,
        child: &Run,
        turn: &Result<Turn, RunError>,
    ) -> Result<(), RunError> {
        if let Ok(Turn {
            end: Ended::Waiting { .. },
            ..
        }) = turn
        {
            return Ok(());
        }
        if self.value(&child_key(self.id, child.id)?).await?.is_some() {
            return Ok(());
        }
        let changes = self.taken(child, turn).await?;
        self.note("child", changes).await
    }

    /// The task of a call, done by another agent.
    pub(crate) async fn delegate(
        &mut self,
        of: &Calls,
        call: &Call,
        task: &str,
    ) -> Result<Delegated, RunError> {
        let Some(agent) = self.agent.agents.get(&call.call.name).cloned() else {
            let why = format!("{} is no agent", call.call.name);
            return Ok(Delegated::not(ToolFailure::Unknown { why }));
        };
        let base = match agent.history {
            ChildHistory::Fresh => None,
            ChildHistory::Forked => of.base,
        };
        let id = child_id(self.id, call.node.as_bytes());
        let mut child = match self.child(id, &agent, base, task).await {
            Ok(child) => child,
            Err(error @ RunError::Depth { .. }) => {
                return Ok(Delegated::not(ToolFailure::failed(error)));
            }
            Err(error) => return Err(error),
        };
        let turn = Box::pin(child.drive()).await;
        match turn {
            // It is open still, and so is this run.
            Err(error @ RunError::Engine(EngineError::Store(_))) => return Err(error),
            Ok(Turn {
                end: Ended::Waiting { calls },
                ..
            }) => return Ok(Delegated::Waits(calls)),
            _ => {}
        }
        let changes = self.taken(&child, &turn).await?;
        let result = match turn {
            Ok(turn) => Ok(turn
                .value
                .map_or(turn.text, |value| value.get().to_owned())
                .into()),
            Err(RunError::Cancelled(cancelled)) => Err(cancelled.into()),
            Err(error) => Err(ToolFailure::failed(error)),
        };
        Ok(Delegated::Done { result, changes })
    }

    async fn taken(
        &mut self,
        child: &Run,
        turn: &Result<Turn, RunError>,
    ) -> Result<Vec<StateChange>, RunError> {
        let spent = child.spent();
        let end = ChildEnd {
            run: child.id,
            end: run_end(turn.as_ref().err()),
            result: turn.as_ref().ok().map(|turn| turn.text.clone()),
            usage: spent.tokens.into(),
        };
        self.session.on_return(&child.session, &end).await?;
        self.spent.roll_up(&spent);
        let put = StateChange::put(child_key(self.id, child.id)?, VERSION, json(&spent));
        Ok(vec![put])
    }

    async fn child(
        &mut self,
        id: RunId,
        agent: &Delegate,
        base: Option<NodeId>,
        task: &str,
    ) -> Result<Run, RunError> {
        let depth = self.record.depth + 1;
        RunError::check_depth(depth as usize)?;
        let chat = self.open_branch(id, base).await?;
        self.tell(|| RunNews::Spawned { child: id });
        let mut config = agent.agent.clone();
        config.budget = self
            .record
            .budget
            .for_child(&self.spent(), &agent.agent.budget);
        config.observer = config.observer.or_else(|| self.agent.observer.clone());
        if let Some(mut run) = Self::taken_up(&chat, id, &config, self.abort.child()).await? {
            run.channels = self.channels.clone();
            return Ok(run);
        }
        let ended = RunEnded::of(&chat, id).await?;
        let record = RunRecord {
            agent: config.name.clone(),
            parent: Some(self.id.to_string()),
            depth,
            budget: config.budget,
            began_ms: chat.engine().now_ms(),
            base: head_text(base),
        };
        let place = record.place(id);
        let session = match &ended {
            None => chat.child_session(place, &self.session).await?,
            // As its layers were before they were told of its end.
            Some((node, _)) => {
                let at = node.parent.map_or(At::Branch(chat.branch()), At::Node);
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
            Books::new(),
        )?;
        run.channels = self.channels.clone();
        match ended {
            None => run.enter(vec![said_by_user(task)]).await?,
            Some((_, ended)) => run.ended_before(ended).await?,
        }
        Ok(run)
    }

    /// A child that has ended, and its parent does not know: what it gave and spent, and how its layers took it.
    async fn ended_before(&mut self, ended: RunEnded) -> Result<(), RunError> {
        let entry = RunEntry::new(self.id, &self.record, &self.chat.branch());
        let entry = ended.clone().onto(entry);
        entry.put(&self.chat, self.id).await?;
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
        self.session.take_back_shared();
        self.spent = ended.spent.unwrap_or_default();
        self.before = self.spent.elapsed;
        self.last_text.clone_from(&ended.result);
        self.value.clone_from(&ended.value);
        self.ended = Some(ended);
        Ok(())
    }

    /// The branch of a child, made if it is not there.
    async fn open_branch(&self, id: RunId, base: Option<NodeId>) -> Result<Conversation, RunError> {
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
        Ok(self.chat.on_branch(branch))
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
