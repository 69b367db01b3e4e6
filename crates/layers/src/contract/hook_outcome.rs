//! Outcomes of hooks.

use std::fmt;

use serde::Serialize;

use crate::contract::layer_id::LayerId;

/// The hooks, in the order of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Hook {
    /// Creates the first state.
    Init,
    /// Creates the first state in a child run.
    OnSpawn,
    /// Changes items that are about to be appended.
    OnAppend,
    /// Contributes to a model call.
    Recall,
    /// Changes how the history is shown.
    ProjectHistory,
    /// Judges an answer before it is accepted.
    AfterModel,
    /// Judges a tool call before it runs.
    BeforeTool,
    /// Runs one of the layer's own functions.
    Function,
    /// Observes items that are being appended.
    Observe,
    /// The parent's state changed while a child runs.
    OnParentUpdate,
    /// A child run ended; called in its parent.
    OnReturn,
    /// The run has ended.
    OnComplete,
    /// The layer is no longer used in this run.
    Dispose,
}

impl Hook {
    /// Returns the name in lower case.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Init => "init",
            Self::OnSpawn => "on_spawn",
            Self::OnAppend => "on_append",
            Self::Recall => "recall",
            Self::ProjectHistory => "project_history",
            Self::AfterModel => "after_model",
            Self::BeforeTool => "before_tool",
            Self::Function => "function",
            Self::Observe => "observe",
            Self::OnParentUpdate => "on_parent_update",
            Self::OnReturn => "on_return",
            Self::OnComplete => "on_complete",
            Self::Dispose => "dispose",
        }
    }
}

impl fmt::Display for Hook {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

/// Outcome of one hook of one layer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct HookOutcome {
    /// Name of the layer.
    pub layer: LayerId,
    /// Which hook ran.
    pub hook: Hook,
    /// How it ended.
    pub status: HookStatus,
}

/// How a hook ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case", tag = "status")]
#[non_exhaustive]
pub enum HookStatus {
    /// The hook succeeded.
    Ok,
    /// The hook failed; its changes were dropped.
    Failed {
        /// Why, in words.
        #[serde(rename = "why")]
        reason: String,
    },
    /// The hook was not run, because the layer has no state.
    Skipped {
        /// Why, in words.
        #[serde(rename = "why")]
        reason: String,
    },
    /// The hook failed, and the layer's last contribution was used.
    Stale {
        /// Why, in words.
        #[serde(rename = "why")]
        reason: String,
    },
}

impl HookStatus {
    /// Whether the hook succeeded.
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }
}
