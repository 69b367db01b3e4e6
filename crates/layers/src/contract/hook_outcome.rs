//! What became of each hook that was run.

use std::fmt;

use serde::Serialize;

use crate::contract::layer_id::LayerId;

/// The hooks, in the order of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Hook {
    /// The first state.
    Init,
    /// The child's first state.
    OnSpawn,
    /// Items about to be appended.
    OnAppend,
    /// Words for a call.
    Recall,
    /// How the history is shown.
    ProjectHistory,
    /// An answer before it counts.
    AfterModel,
    /// A call of a tool before it runs.
    BeforeTool,
    /// A call of one of the layer's own functions.
    Function,
    /// What was appended.
    Observe,
    /// The parent's state changed while a child runs.
    OnParentUpdate,
    /// A child's end, in its parent.
    OnReturn,
    /// The run's end.
    OnComplete,
    /// Nothing will be asked any more.
    Dispose,
}

impl Hook {
    /// The lower-case word.
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

/// What became of one hook of one layer.
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
    /// It did its work.
    Ok,
    /// It failed; what it changed does not count.
    Failed {
        /// Why, in words.
        #[serde(rename = "why")]
        reason: String,
    },
    /// It was not run, because the layer's state could not be had.
    Skipped {
        /// Why, in words.
        #[serde(rename = "why")]
        reason: String,
    },
    /// It failed, and what it said last time was used.
    Stale {
        /// Why, in words.
        #[serde(rename = "why")]
        reason: String,
    },
}

impl HookStatus {
    /// Whether the hook did its work.
    #[must_use]
    pub const fn is_ok(&self) -> bool {
        matches!(self, Self::Ok)
    }
}
