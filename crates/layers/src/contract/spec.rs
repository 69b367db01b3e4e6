//! Specification of a layer: its name, the scope of its state, its position in a call.

use std::time::Duration;

use contexture_compile::{Band, Budget, Stability};
use serde::{Deserialize, Serialize};

use crate::contract::hook_outcome::Hook;
use crate::contract::layer_id::LayerId;

/// What a layer's state belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateScope {
    /// One run; the state is removed when the run ends.
    Run,
    /// The path: the state is attached to nodes, so it rewinds and branches with the conversation.
    Path,
    /// The resource of the owner, or the conversation where no resource is named. Outside the tree: it does not rewind.
    Resource,
    /// The owner. Outside the tree.
    Global,
}

impl StateScope {
    /// Whether the state is attached to nodes of the tree.
    #[must_use]
    pub const fn is_on_tree(self) -> bool {
        matches!(self, Self::Run | Self::Path)
    }
}

/// Consequence of a layer's failure.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// The layer is left out of the operation, and the outcome says so. A failing gate lets the call pass.
    #[default]
    Skip,
    /// The operation fails. A failing gate denies the call.
    Fail,
}

/// When a layer's contribution is made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallMode {
    /// For every call, before it.
    #[default]
    Atomic,
    /// After the previous answer: the call uses the last contribution, and waits only if there is none yet.
    Eventual,
}

/// Time limit of each hook; `None` means no limit. A hook that times out is dropped at its current await, with its
/// changes: code that never awaits cannot be interrupted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timeouts {
    /// Default 10 s.
    pub init: Option<Duration>,
    /// Default 5 s.
    pub recall: Option<Duration>,
    /// Default 5 s.
    pub on_append: Option<Duration>,
    /// Default 10 s.
    pub after_model: Option<Duration>,
    /// Default 5 s.
    pub before_tool: Option<Duration>,
    /// Default 30 s.
    pub observe: Option<Duration>,
    /// `on_spawn`, `on_parent_update` and `on_return`. Default 10 s.
    pub child: Option<Duration>,
    /// Default 30 s.
    pub on_complete: Option<Duration>,
    /// Default 5 s.
    pub dispose: Option<Duration>,
    /// A call of one of its functions. Default 30 s.
    pub function: Option<Duration>,
}

impl Timeouts {
    /// Returns the limit of a hook.
    pub(crate) const fn for_hook(&self, hook: Hook) -> Option<Duration> {
        match hook {
            Hook::Init => self.init,
            // It is synchronous, so it cannot be interrupted.
            Hook::ProjectHistory => None,
            Hook::OnSpawn | Hook::OnParentUpdate | Hook::OnReturn => self.child,
            Hook::OnAppend => self.on_append,
            Hook::Recall => self.recall,
            Hook::AfterModel => self.after_model,
            Hook::BeforeTool => self.before_tool,
            Hook::Function => self.function,
            Hook::Observe => self.observe,
            Hook::OnComplete => self.on_complete,
            Hook::Dispose => self.dispose,
        }
    }
}

impl Default for Timeouts {
    fn default() -> Self {
        const fn secs(secs: u64) -> Option<Duration> {
            Some(Duration::from_secs(secs))
        }
        Self {
            init: secs(10),
            recall: secs(5),
            on_append: secs(5),
            after_model: secs(10),
            before_tool: secs(5),
            observe: secs(30),
            child: secs(10),
            on_complete: secs(30),
            dispose: secs(5),
            function: secs(30),
        }
    }
}

/// Specification of a layer. It must be the same each time.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// Name of the layer.
    pub id: LayerId,
    /// The version of its state's schema. Default 1.
    pub version: u32,
    /// What its state belongs to. Default: the path.
    pub scope: StateScope,
    /// Band of its contribution. Default: the system prompt.
    pub band: Band,
    /// Order within the band, and among layers whose hooks run in sequence: ascending. Default 100.
    pub order: i32,
    /// Token budget of its contribution. Default: no limit.
    pub budget: Budget,
    /// How often its contribution changes. Default: seldom.
    pub stability: Stability,
    /// When its contribution is made. Default: for every call.
    pub recall: RecallMode,
    /// How long its hooks may take.
    pub timeouts: Timeouts,
    /// Consequence of its failure. Default: it is left out.
    pub on_error: OnError,
}

impl LayerSpec {
    /// Creates the default specification with this name.
    #[must_use]
    pub fn new(id: LayerId) -> Self {
        Self {
            id,
            version: 1,
            scope: StateScope::Path,
            band: Band::System,
            order: 100,
            budget: Budget::default(),
            stability: Stability::Epoch,
            recall: RecallMode::Atomic,
            timeouts: Timeouts::default(),
            on_error: OnError::Skip,
        }
    }

    /// Sets position and stability of the contribution.
    #[must_use]
    pub const fn with_position(mut self, band: Band, order: i32, stability: Stability) -> Self {
        self.band = band;
        self.order = order;
        self.stability = stability;
        self
    }

    /// Sets the scope of the state.
    #[must_use]
    pub const fn with_scope(mut self, scope: StateScope) -> Self {
        self.scope = scope;
        self
    }
}
