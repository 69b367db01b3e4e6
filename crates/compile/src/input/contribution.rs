//! What layers and hosts add to a call: where it stands, how long it may be, how often it changes.

use std::sync::Arc;

use contexture_ir::{Fragment, Item, Message};
use contexture_render::Renderer;
use contexture_report::Report;
use contexture_report::number_format::group_thousands;
use serde::{Deserialize, Serialize};

/// Where a contribution stands in the payload, from the first byte to the last.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Band {
    /// The system prompt, before everything.
    System,
    /// Before the history, as messages.
    Anchor,
    /// The conversation itself. Contributions do not stand here: they are placed as [`Band::Live`].
    History,
    /// After the history.
    Live,
    /// At the very end.
    Tail,
}

impl Band {
    /// The lower-case word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::Anchor => "anchor",
            Self::History => "history",
            Self::Live => "live",
            Self::Tail => "tail",
        }
    }
}

/// How often a contribution's text changes, which decides whether it may stand before the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Stability {
    /// Never within a conversation.
    Frozen,
    /// Seldom; a change opens an epoch.
    Epoch,
    /// With every call. It is placed behind the history whatever its band, so that it never changes
    /// earlier bytes.
    Volatile,
}

/// How many tokens a contribution may take.
///
/// Minima are granted first, in the order of the contributions; then each takes up to its share of
/// what the minima left, and never more than `max`. What nobody takes is the history's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Budget {
    /// Granted before any share. Default 0.
    pub min: u64,
    /// Never exceeded. Default: no limit.
    pub max: Option<u64>,
    /// Per cent of the space that the minima leave. Default 100.
    pub share: u8,
}

impl Default for Budget {
    fn default() -> Self {
        Self {
            min: 0,
            max: None,
            share: 100,
        }
    }
}

impl Budget {
    /// At most so many tokens.
    #[must_use]
    pub const fn at_most(max: u64) -> Self {
        Self {
            min: 0,
            max: Some(max),
            share: 100,
        }
    }
}

/// What a contribution says.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Content {
    /// One text: kept whole or left out.
    Text(String),
    /// Texts of which the last are left out first, joined by a blank line.
    Texts(Vec<String>),
    /// Fragments of which the last are left out first, as the renderer writes them. Fragments that
    /// carry messages are not rendered.
    Fragments {
        /// The fragments in order.
        fragments: Vec<Fragment>,
        /// What writes them.
        renderer: Arc<dyn Renderer>,
    },
    /// Instructions as another system wrote them, kept message by message. Outside the system band
    /// they are placed as messages of the history are.
    Instructions(Vec<Message>),
    /// Items: kept whole or left out.
    Items(Vec<Item>),
}

/// Something to say beside the conversation.
#[derive(Clone, Debug)]
pub struct Contribution {
    /// Whose it is: a layer's id, `instructions`, …. The report's name for the segment.
    pub source: String,
    /// Where it stands.
    pub band: Band,
    /// How often it changes.
    pub stability: Stability,
    /// Its place within its band, ascending; equal numbers keep the order given.
    pub order: i32,
    /// How many tokens it may take.
    pub budget: Budget,
    /// What it says.
    pub content: Content,
    /// Never cut: if it does not fit, the request is refused. Contributions to the system band that
    /// state no maximum are never cut either.
    pub pinned: bool,
}

/// The source of the line about the window.
const BUDGET_SOURCE: &str = "context_budget";

impl Contribution {
    /// A contribution of the given content: frozen in the system and anchor bands, volatile in the
    /// others, no budget, not pinned.
    #[must_use]
    pub fn new(source: impl Into<String>, band: Band, content: Content) -> Self {
        let stability = match band {
            Band::System | Band::Anchor => Stability::Frozen,
            Band::History | Band::Live | Band::Tail => Stability::Volatile,
        };
        Self {
            source: source.into(),
            band,
            stability,
            order: 0,
            budget: Budget::default(),
            content,
            pinned: false,
        }
    }

    /// A text in the system prompt.
    #[must_use]
    pub fn system(source: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(source, Band::System, Content::Text(text.into()))
    }

    /// A text at the very end, new with every call.
    #[must_use]
    pub fn tail(source: impl Into<String>, text: impl Into<String>) -> Self {
        Self::new(source, Band::Tail, Content::Text(text.into()))
    }

    /// The same, never cut.
    #[must_use]
    pub fn into_pinned(mut self) -> Self {
        self.pinned = true;
        self
    }

    /// The same with a budget.
    #[must_use]
    pub const fn with_budget(mut self, budget: Budget) -> Self {
        self.budget = budget;
        self
    }

    /// Whether the request is refused rather than this cut.
    #[must_use]
    pub const fn is_required(&self) -> bool {
        self.pinned || (matches!(self.band, Band::System) && self.budget.max.is_none())
    }

    /// A line at the tail that tells the model how full its window was: the figures of the previous request's
    /// report, and what the provider billed for it, if that is known.
    #[must_use]
    pub fn remaining_budget(previous: &Report, billed: Option<u64>) -> Self {
        let limit = previous.target.limit;
        let used = billed.unwrap_or(previous.totals.tokens);
        let left = limit.saturating_sub(used);
        let about = match billed {
            Some(_) => "took",
            None if previous.totals.low == previous.totals.tokens => "took",
            None => "took at most",
        };
        let text = format!(
            "<{BUDGET_SOURCE}>The previous request {about} {} of {} tokens; {} were left.</{BUDGET_SOURCE}>",
            group_thousands(used),
            group_thousands(limit),
            group_thousands(left)
        );
        Self::tail(BUDGET_SOURCE, text)
    }
}
