//! `history`: how much of the conversation is shown to the model.
//!
//! It sets the window of the call's history policy, and nothing else. The compiler decides what is cut and keeps calls
//! complete; the tree keeps everything, so a larger window shows again what a smaller one left out.

use async_trait::async_trait;
use contexture_compile::{Contribution, Window};

use crate::contract::{Layer, LayerError, LayerId, LayerSpec, Projection, RecallInput};

/// Shows the newest part of the history.
///
/// Required items are always included: the first user message, the one being answered, the last round, and pinned
/// items.
///
/// ```
/// use contexture_layers::{Layers, builtin::History};
///
/// let layers = Layers::new().with_layer(History::last_turns(20))?;
/// # Ok::<(), contexture_layers::LayersError>(())
/// ```
#[derive(Clone, Debug)]
pub struct History {
    spec: LayerSpec,
    window: Window,
}

impl History {
    /// Shows at most this many turns; a turn is a user message and everything up to the next one.
    #[must_use]
    pub fn last_turns(turns: u32) -> Self {
        Self::new(Window::Turns(turns))
    }

    /// Shows at most this many tokens, framing included.
    #[must_use]
    pub fn last_tokens(tokens: u64) -> Self {
        Self::new(Window::Tokens(tokens))
    }

    fn new(window: Window) -> Self {
        let spec = LayerSpec::new(LayerId::built_in("history"));
        Self { spec, window }
    }

    /// Changes the name or the order; of several history layers, the last one applies.
    #[must_use]
    pub fn with_spec(mut self, change: impl FnOnce(&mut LayerSpec)) -> Self {
        change(&mut self.spec);
        self
    }
}

#[async_trait]
impl Layer for History {
    type State = ();

    fn spec(&self) -> LayerSpec {
        self.spec.clone()
    }

    async fn recall(&self, (): &(), _: &RecallInput<'_>) -> Result<Vec<Contribution>, LayerError> {
        Ok(Vec::new())
    }

    fn project_history(&self, (): &(), projection: &mut Projection) {
        projection.policy.window = self.window;
    }
}
