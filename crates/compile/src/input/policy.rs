//! How much of the history is shown, and how, and what the provider is to keep of it. Everything here
//! is about the view: the items stay as they are.
//!
//! What is taken away is taken in steps: once a trigger fires, down to a low-water mark, and then not
//! again until the trigger fires anew. Between two steps the history only grows at its end, so a
//! provider's cache of it holds.
//!
//! Not here: who decides when to summarise; compile only advises it.

use std::collections::BTreeSet;

use contexture_catalogue::Prices;
use contexture_condense::PreviewPolicy;
use contexture_prompt_cache::{
    CacheRules, CacheState, CachedContent, EditedThinking, MarkerPolicy,
};
use contexture_wire::Format;
use serde::{Deserialize, Serialize};

/// How the history is shown.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct HistoryPolicy {
    /// How much of it at most. Default: all.
    pub window: Window,
    /// Which old content is shown as a placeholder, and when. Default: outputs, once the history no
    /// longer fits. `None`: nothing ever is.
    pub clear: Clear,
    /// Which long outputs are shown as previews, from the first time they are sent. Default: none, as
    /// a model can read the rest only with a tool for it ([`contexture_condense::read_tool`]).
    pub preview: Option<PreviewPolicy>,
    /// How far the history is cut when it does not fit, or no longer is within its window.
    pub trim: TrimPolicy,
    /// What becomes of thinking behind an edit, for models that refuse it there
    /// ([`CompileRequest::bound_thinking`](crate::CompileRequest::bound_thinking)). Default: it is left out.
    #[serde(default, skip_serializing_if = "EditedThinking::is_omit")]
    pub edited_thinking: EditedThinking,
    /// Whether rules that a person stated are shown again once their messages are out of view. Default: they are. A policy that says
    /// nothing about them, because it was stored before there were any, means that they are not.
    #[serde(default = "StandingRulesPolicy::off")]
    pub standing_rules: StandingRulesPolicy,
}

/// What becomes of rules whose messages are out of view.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StandingRulesPolicy {
    /// They are quoted at the start of the history: at most 1,500 tokens, and at most an eighth of the window.
    #[default]
    Keep,
    /// Nothing is read for rules, and none are shown.
    Off,
}

impl StandingRulesPolicy {
    const fn off() -> Self {
        Self::Off
    }
}

impl HistoryPolicy {
    /// For a single call: the window is filled, as there are no next calls to leave room for.
    #[must_use]
    pub fn for_one_call() -> Self {
        Self::default().into_one_call()
    }

    /// The same for a single call: what is cut is cut as little as possible.
    #[must_use]
    pub fn into_one_call(mut self) -> Self {
        if let Clear::By(clear) = &mut self.clear {
            clear.low_water = 100;
        }
        self.trim = TrimPolicy { low_water: 100 };
        self
    }

    /// How many calls are expected to come.
    pub(crate) fn expected_calls(&self) -> u64 {
        let policy = self.clear.policy();
        policy.map_or(ClearPolicy::default().calls, |policy| policy.calls)
    }
}

/// How much of the history is sent at most, newest first. What is required (the first user message,
/// the one being answered, the last round, pinned items) is sent in any case.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub enum Window {
    /// All that fits.
    #[default]
    Whole,
    /// So many turns: a turn is a user message and what follows up to the next one.
    Turns(u32),
    /// So many tokens, framing included.
    Tokens(u64),
}

/// When and how far the history is trimmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TrimPolicy {
    /// Once the history does not fit, it is trimmed to this per cent of its space, so that the next
    /// calls extend it instead of trimming again. Default 70; 100 fills the window, for a single call.
    pub low_water: u8,
}

impl Default for TrimPolicy {
    fn default() -> Self {
        Self { low_water: 70 }
    }
}

/// Whether old content is cleared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Clear {
    /// Old content is never cleared.
    Never,
    /// Old content is cleared by this policy.
    By(ClearPolicy),
}

impl Default for Clear {
    fn default() -> Self {
        Self::By(ClearPolicy::default())
    }
}

impl Clear {
    /// The rule, if there is one.
    #[must_use]
    pub const fn policy(&self) -> Option<&ClearPolicy> {
        match self {
            Self::Never => None,
            Self::By(policy) => Some(policy),
        }
    }
}

/// What is cleared, and when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ClearPolicy {
    /// Clearing is considered when the history takes more than this per cent of its space. Default
    /// 100: only when something has to go. Below that it is done only if it pays: if it saves more, over
    /// the calls to come, than writing the cache anew costs, and if the last such rewriting has paid back.
    pub trigger: u8,
    /// How many calls are expected to come, for that decision. Default 5: a guess that is too
    /// high costs a re-write, one that is too low only what it would have saved.
    pub calls: u64,
    /// Then outputs are cleared, oldest first, until it takes at most this per cent. Default 70.
    pub low_water: u8,
    /// So many of the newest outputs stay, those of the last round in any case. Default 3.
    pub keep_recent: usize,
    /// Outputs of fewer bytes stay: a placeholder would save little. Default 200.
    pub min_bytes: usize,
    /// Outputs of these functions stay; in a name `*` stands for any characters and `?` for one.
    pub keep_tools: BTreeSet<String>,
    /// Whether outputs that are errors stay. Default: they do, as they keep a model from trying again.
    pub keep_errors: bool,
    /// Whether an output is cleared when the same call was made again later. Default: it is.
    pub repeated: bool,
    /// Thoughts of so many of the newest turns stay; `None`: all do. Default 1.
    pub keep_reasoning: Option<u32>,
    /// Whether content is cleared whenever the trigger fires, even if that costs more than it saves. Default: only if it
    /// pays, or the history does not fit.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub always: bool,
}

impl Default for ClearPolicy {
    fn default() -> Self {
        Self {
            trigger: 100,
            calls: 5,
            low_water: 70,
            keep_recent: 3,
            min_bytes: 200,
            keep_tools: BTreeSet::new(),
            keep_errors: true,
            repeated: true,
            keep_reasoning: Some(1),
            always: false,
        }
    }
}

/// How the provider's prompt cache is used.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct CachePolicy {
    /// How the model caches.
    pub rules: CacheRules,
    /// Where marks are set, for models whose cache is asked for by marks. `None`: no marks but those
    /// that came with the items. Default: all that help, for the usual time.
    #[serde(rename = "marks")]
    pub marker_policy: Option<MarkerPolicy>,
    /// What the model costs.
    pub prices: Prices,
    /// Whether the cache still holds what the last call wrote, as far as the host knows. Default:
    /// it does.
    pub state: CacheState,
    /// A cache object made beforehand that is named in the payload if it holds just how the payload
    /// begins. Default: none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<CachedContent>,
}

impl CachePolicy {
    /// No cache, or none that is known.
    #[must_use]
    pub fn none(format: Format) -> Self {
        Self {
            rules: CacheRules::none(format),
            marker_policy: None,
            prices: Prices::default(),
            state: CacheState::Warm,
            content: None,
        }
    }
}
