//! Asking layers again: what they were told since the last append, where another changed a state meanwhile.
//!
//! What a hook changed is stored with the next append, or not at all. Where that append finds another state than was
//! read, the states are read again and the same hooks run on them. Those whose answer counts (`on_append`,
//! `after_model`, a function, `observe`) are run again by whoever asked; all others are remembered here.

use contexture_layers::{ChildEnd, Outcome, RunEnd};

use crate::conversation::Conversation;
use crate::error::EngineError;
use crate::layer_session::LayerSession;
use crate::layer_store::RunPlace;
use crate::layer_told::{States, Told};

impl LayerSession {
    /// The states, as hooks have left them.
    fn left(&self) -> States {
        self.layers.left(&self.states)
    }

    /// The first states of a child's layers.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn spawn_into(&self, child: &mut Self) -> Result<(), EngineError> {
        child.tell(Told::Spawn(self.left())).await
    }

    /// Tells a running child's layers of this parent's states.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn update_child(&self, child: &mut Self) -> Result<(), EngineError> {
        child.tell(Told::ParentUpdate(self.left())).await
    }

    /// Tells the layers how a child ended.
    ///
    /// # Errors
    /// [`EngineError::Layers`]: the failure of a layer that must not fail.
    pub async fn on_return(&mut self, child: &Self, end: &ChildEnd) -> Result<(), EngineError> {
        self.tell(Told::Return(child.left(), end.clone())).await
    }

    /// Tells the layers how the run ended.
    pub async fn on_complete(&mut self, end: &RunEnd) {
        let told = self
            .layers
            .on_complete(&mut self.states, end, &self.context);
        self.outcomes.extend(told.await);
        self.told.push(Told::Complete(end.clone()));
    }

    async fn tell(&mut self, told: Told) -> Result<(), EngineError> {
        let (layers, states, context) = (&self.layers, &mut self.states, &self.context);
        let read = |left: &States| layers.states(left.iter().cloned());
        let outcomes: Vec<Outcome> = match &told {
            Told::Spawn(parent) => layers.on_spawn(&read(parent), states, context).await?,
            Told::ParentUpdate(parent) => {
                let parent = read(parent);
                layers.on_parent_update(states, &parent, context).await?
            }
            Told::Return(child, end) => {
                let child = read(child);
                layers.on_return(states, &child, end, context).await?
            }
            Told::Tool(call) => layers.before_tool(states, call, context).await.1,
            Told::Complete(end) => layers.on_complete(states, end, context).await,
        };
        self.outcomes.extend(outcomes);
        self.told.push(told);
        Ok(())
    }

    /// Tells the layers of fresh states all of it, those without a state beginning where they began then.
    async fn tell_again(&mut self, told: Vec<Told>) -> Result<(), EngineError> {
        let begins = |one: &Told| matches!(one, Told::Spawn(_));
        let mut told = told.into_iter().peekable();
        while let Some(one) = told.next_if(begins) {
            self.tell(one).await?;
        }
        self.init().await?;
        for one in told {
            self.tell(one).await?;
        }
        Ok(())
    }
}

impl Conversation {
    /// Reads a session's states again, as they are stored at this branch's head now, and tells the layers again what
    /// they were told since the last append. For whoever finds that an append was made on older states
    /// ([`EngineError::is_stale_state`]): what layers were *asked* since then is to be asked again.
    ///
    /// # Errors
    /// [`EngineError::Layers`], or the store's; the session is as it was then.
    pub async fn again(&self, session: &mut LayerSession) -> Result<(), EngineError> {
        let run = session.context.run.map(|id| RunPlace {
            id,
            depth: session.context.depth,
        });
        let (standing, state) = self.standing_at(self.here()).await?;
        let mut fresh = self.session_as_stored(standing, &state, run).await?;
        if let Some(ledger) = session.ledger.clone() {
            self.count_in(&mut fresh, ledger);
        }
        fresh.tell_again(session.told.clone()).await?;
        fresh.outcomes.splice(..0, session.take_outcomes());
        *session = fresh;
        Ok(())
    }
}
