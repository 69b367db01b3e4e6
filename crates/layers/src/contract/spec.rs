//! What a layer says of itself: its name, where its state lives, where its words stand.

use std::time::Duration;

use contexture_compile::{Band, Budget, Stability};
use serde::{Deserialize, Serialize};

use crate::contract::hook_outcome::Hook;
use crate::contract::layer_id::LayerId;

/// What a layer's state belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateScope {
    /// One run; gone when it ends.
    Run,
    /// The path: it hangs off the node, so it rewinds and branches with the conversation.
    Path,
    /// The resource of the owner, or the conversation where no resource is named. Outside the tree: it does not rewind.
    Resource,
    /// The owner. Outside the tree.
    Global,
}

impl StateScope {
    /// Whether the state hangs off nodes of the tree.
    #[must_use]
    pub const fn is_on_tree(self) -> bool {
        matches!(self, Self::Run | Self::Path)
    }
}

/// What a layer's failure means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnError {
    /// It is left out of this call, and the outcome says so. A failing gate lets the call pass.
    #[default]
    Skip,
    /// The operation fails. A failing gate denies the call.
    Fail,
}

/// When a layer's words are made.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RecallMode {
    /// For every call, before it.
    #[default]
    Atomic,
    /// After the answer before: the call itself uses what was recalled last, and waits only where there is nothing yet.
    Eventual,
}

/// How long each hook may take; `None` is for ever. A hook that is out of time is dropped, with what it changed, where
/// it waits: one that computes and never waits takes the time it takes.
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
    /// That of a hook.
    pub(crate) const fn for_hook(&self, hook: Hook) -> Option<Duration> {
        match hook {
            Hook::Init => self.init,
            // It computes and never waits.
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

/// What a layer says of itself. It must say the same each time.
#[derive(Clone, Debug, PartialEq)]
pub struct LayerSpec {
    /// Name of the layer.
    pub id: LayerId,
    /// The version of its state's schema. Default 1.
    pub version: u32,
    /// What its state belongs to. Default: the path.
    pub scope: StateScope,
    /// Where its words stand. Default: the system prompt.
    pub band: Band,
    /// Its place in the band, and among the layers where hooks run one after the other: ascending. Default 100.
    pub order: i32,
    /// How many tokens its words may take. Default: no limit.
    pub budget: Budget,
    /// How often its words change. Default: seldom.
    pub stability: Stability,
    /// Default: for every call.
    pub recall: RecallMode,
    /// How long its hooks may take.
    pub timeouts: Timeouts,
    /// What its failure means. Default: it is left out.
    pub on_error: OnError,
}

impl LayerSpec {
    /// A layer of this name with the defaults.
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

    /// The same, its words standing there and changing so often.
    #[must_use]
    pub const fn with_position(mut self, band: Band, order: i32, stability: Stability) -> Self {
        self.band = band;
        self.order = order;
        self.stability = stability;
        self
    }

    /// The same, its state belonging to this.
    #[must_use]
    pub const fn with_scope(mut self, scope: StateScope) -> Self {
        self.scope = scope;
        self
    }
}
