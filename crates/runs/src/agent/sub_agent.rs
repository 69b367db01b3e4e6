//! An agent that another agent calls as a tool.
//!
//! Not here: its runs (`crate::steps`).

use super::config::Agent;
use crate::tools::ToolConcurrency;

/// An agent that another calls as a tool.
#[derive(Clone, Debug)]
pub struct SubAgent {
    pub(crate) agent: Agent,
    pub(crate) description: String,
    pub(crate) history: ChildHistory,
    pub(crate) concurrency: ToolConcurrency,
}

/// How much of its parent's history a child run sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ChildHistory {
    /// Nothing but its task.
    #[default]
    Fresh,
    /// All of the history before the call.
    Forked,
}

impl SubAgent {
    /// Creates a sub-agent; `description` tells the calling model what it does.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::SubAgent;
    ///
    /// let helper = SubAgent::new(agent, "Looks up the weather.");
    /// ```
    #[must_use]
    pub fn new(agent: Agent, description: impl Into<String>) -> Self {
        Self {
            agent,
            description: description.into(),
            history: ChildHistory::Fresh,
            concurrency: ToolConcurrency::Parallel,
        }
    }

    /// Sets how much of its parent's history it sees.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::{ChildHistory, SubAgent};
    ///
    /// let helper = SubAgent::new(agent, "Summarizes the conversation.").with_history(ChildHistory::Forked);
    /// ```
    #[must_use]
    pub const fn with_history(mut self, history: ChildHistory) -> Self {
        self.history = history;
        self
    }

    /// Sets whether it works beside other sub-agents, and tools that allow it, of the same answer. Default: it does. One that
    /// changes what others change as well, such as files, had better work alone.
    ///
    /// ```
    /// # use std::sync::Arc;
    /// # use contexture_models::ScriptedModel;
    /// # let model = Arc::new(ScriptedModel::new([]));
    /// # let agent = contexture_runs::Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
    /// use contexture_runs::{SubAgent, ToolConcurrency};
    ///
    /// let editor = SubAgent::new(agent, "Edits files.").with_concurrency(ToolConcurrency::Exclusive);
    /// ```
    #[must_use]
    pub const fn with_concurrency(mut self, concurrency: ToolConcurrency) -> Self {
        self.concurrency = concurrency;
        self
    }
}
