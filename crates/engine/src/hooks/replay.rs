//! Repeating hooks after somebody else changed a state.
//!
//! What a hook changed is stored with the next append, or not at all. If that append finds another state than was read,
//! the states are read again and the same hooks run on them. `on_append`, `after_model`, functions of layers and `observe`
//! are repeated by the caller, who needs their results again; all others, `before_tool` among them, are logged and
//! repeated here.

use contexture_layers::{
    ChildEnd, ChildResult, HookOutcome, LayerId, RunEnd, StoredState, ToolRequest,
};

use super::open_session::{RunScope, load_position, load_stored_session, track_side_usage};
use super::session::LayerSession;
use crate::error::EngineError;
use crate::handle::Conversation;

impl LayerSession {
    /// The states, as hooks have left them.
    fn pending_states(&self) -> StoredStates {
        self.layers.pending_states(&self.states)
    }

    /// The first states of a child's layers.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub(crate) async fn spawn_into(&self, child: &mut Self) -> Result<(), EngineError> {
        child
            .run_hook(LoggedHook::Spawn(self.pending_states()))
            .await
    }

    /// Tells a running child's layers of this parent's states.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn update_child(&self, child: &mut Self) -> Result<(), EngineError> {
        child
            .run_hook(LoggedHook::ParentUpdate(self.pending_states()))
            .await
    }

    /// Tells the layers how a child ended, and returns what they make of its result.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn on_return(
        &mut self,
        child: &Self,
        end: &ChildEnd,
    ) -> Result<ChildResult, EngineError> {
        let states = child.pending_states();
        let read = self.layers.restore_states(states.iter().cloned());
        let returning = self
            .layers
            .on_return(&mut self.states, &read, end, &self.context);
        let (result, outcomes) = returning.await?;
        self.outcomes.extend(outcomes);
        // Logged although it has an answer: what the model reads of the child is decided, so only the changes of state are
        // repeated.
        self.hook_log.push(LoggedHook::Return(states, end.clone()));
        Ok(result)
    }

    /// Tells the layers how the run ended.
    pub async fn on_complete(&mut self, end: &RunEnd) {
        let outcomes = self
            .layers
            .on_complete(&mut self.states, end, &self.context);
        self.outcomes.extend(outcomes.await);
        self.hook_log.push(LoggedHook::Complete(end.clone()));
    }

    async fn run_hook(&mut self, hook: LoggedHook) -> Result<(), EngineError> {
        let (layers, states, context) = (&self.layers, &mut self.states, &self.context);
        let read = |left: &StoredStates| layers.restore_states(left.iter().cloned());
        let outcomes: Vec<HookOutcome> = match &hook {
            LoggedHook::Spawn(parent) => layers.on_spawn(&read(parent), states, context).await?,
            LoggedHook::ParentUpdate(parent) => {
                let parent = read(parent);
                layers.on_parent_update(states, &parent, context).await?
            }
            LoggedHook::Return(child, end) => {
                let child = read(child);
                layers.on_return(states, &child, end, context).await?.1
            }
            LoggedHook::Tool(call) => layers.before_tool(states, call, context).await.1,
            LoggedHook::Complete(end) => layers.on_complete(states, end, context).await,
        };
        self.outcomes.extend(outcomes);
        self.hook_log.push(hook);
        Ok(())
    }

    /// Runs the logged hooks again, in order, on the states that were read anew. A layer without a state begins at the
    /// same hook as it did before.
    async fn replay_hooks(&mut self, hooks: Vec<LoggedHook>) -> Result<(), EngineError> {
        let begins = |one: &LoggedHook| matches!(one, LoggedHook::Spawn(_));
        let mut hooks = hooks.into_iter().peekable();
        // Spawn hooks come first: they give layers their first states, and `init_states` fills in the others.
        while let Some(one) = hooks.next_if(begins) {
            self.run_hook(one).await?;
        }
        self.init_states().await?;
        for one in hooks {
            self.run_hook(one).await?;
        }
        Ok(())
    }
}

/// Reads a session's states again, as they are stored at this branch's head now, and tells the layers again what
/// they were told since the last append. For whoever finds that an append was made on older states
/// ([`EngineError::is_stale_state`]): what layers were *asked* since then is to be asked again.
pub(crate) async fn refresh_session(
    chat: &Conversation,
    session: &mut LayerSession,
) -> Result<(), EngineError> {
    let run = session.context.run.map(|id| RunScope {
        id,
        depth: session.context.depth,
    });
    // At the branch and not at the head of the session: the winner appended in between.
    let (standing, state) = load_position(chat, chat.current_position()).await?;
    let mut fresh = load_stored_session(chat, standing, &state, run).await?;
    if let Some(tracker) = session.tracker.clone() {
        track_side_usage(chat, &mut fresh, tracker);
    }
    fresh.replay_hooks(session.hook_log.clone()).await?;
    // Outcomes of the first attempt stay: they were hooks that ran, whatever became of their changes.
    fresh.outcomes.splice(..0, session.take_outcomes());
    // Last, so that a failure above leaves the session as it was.
    *session = fresh;
    Ok(())
}

/// The states of another run, as its hooks have left them.
pub(crate) type StoredStates = Vec<(LayerId, StoredState)>;

/// A hook without an answer, logged so that it can be repeated.
#[derive(Clone, Debug)]
pub(crate) enum LoggedHook {
    /// The layers begin in a child run; holds the states of the parent's layers.
    Spawn(StoredStates),
    /// The states of the parent's layers have changed; holds the new ones.
    ParentUpdate(StoredStates),
    /// How a child ended; its states.
    Return(StoredStates, ChildEnd),
    /// That a tool is called. What they said to it stays said.
    Tool(ToolRequest),
    /// How the run ended.
    Complete(RunEnd),
}
