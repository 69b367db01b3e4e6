//! What a host says beside the conversation with every call: context, state, guardrails.
//!
//! Each is set, not added: setting one again replaces it, setting another leaves it alone, and the order in
//! which they were set is nowhere to be seen in the payload.

use std::collections::BTreeMap;

use contexture_catalogue::Capabilities;

use crate::input::contribution::Contribution;
use crate::input::guardrails::{GuardrailError, Guardrails};

/// What is said beside the conversation, all of it at the tail unless state was placed elsewhere.
///
/// In the payload: context by its names, state, the line about the window, the guardrails.
#[derive(Clone, Debug, Default)]
pub struct CallContext {
    context: BTreeMap<String, String>,
    state: Option<Contribution>,
    budget: Option<Contribution>,
    guardrails: Guardrails,
}

impl CallContext {
    /// Returns a call context without any content.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets a text that belongs to the call and not to the conversation: the time, an open file. An empty
    /// text takes it back.
    pub fn set_context(&mut self, name: impl Into<String>, text: impl Into<String>) {
        let (name, text) = (name.into(), text.into());
        if text.is_empty() {
            self.context.remove(&name);
        } else {
            self.context.insert(name, text);
        }
    }

    /// Sets the state, usually a [`Contribution::state`]; `None` takes it back.
    pub fn set_state(&mut self, state: Option<Contribution>) {
        self.state = state;
    }

    /// Sets the line about the window, usually a [`Contribution::remaining_budget`].
    pub fn set_budget(&mut self, budget: Option<Contribution>) {
        self.budget = budget;
    }

    /// Sets how the model is to answer; the default asks nothing.
    pub fn set_guardrails(&mut self, guardrails: Guardrails) {
        self.guardrails = guardrails;
    }

    /// The contributions for a model that can do so much.
    ///
    /// # Errors
    /// Guardrails that cannot be said.
    pub fn build_contributions(
        &self,
        capabilities: &Capabilities,
    ) -> Result<Vec<Contribution>, GuardrailError> {
        // By name, not in the order in which hosts set them: the bytes must not depend on that.
        let context = self.context.iter();
        let context = context.map(|(name, text)| Contribution::context(name, text));
        let set = [&self.state, &self.budget].into_iter().flatten().cloned();
        let mut all: Vec<Contribution> = context.chain(set).collect();
        // Guardrails stand last, next to the answer, where models follow them best.
        all.extend(self.guardrails.build_contributions(capabilities)?);
        Ok(all)
    }
}
