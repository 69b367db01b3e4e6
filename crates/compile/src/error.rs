//! Why a request was not compiled. There is no payload that breaks the post-condition: there is a
//! refusal instead, and it says by how much and by what.

use contexture_catalogue::CatalogueError;
use contexture_ir::Cancelled;
use contexture_wire::{Format, ToolRefusal};

/// A request that cannot be compiled as asked.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Refusal {
    /// What must be said is larger than what may be said. `needed` is the sum of `segments`, which
    /// lists only what is required.
    #[error(
        "the request does not fit: {needed} tokens needed, {allowed} allowed (window {window} − reserve {reserve})"
    )]
    DoesNotFit {
        /// The sum of the required segments.
        needed: u64,
        /// Window minus reserve.
        allowed: u64,
        /// The model's window.
        window: u64,
        /// What is kept free for the answer.
        reserve: u64,
        /// The required segments and their tokens, in payload order.
        segments: Vec<RequiredSegment>,
    },
    /// The reserve leaves no room for a request.
    #[error("window {window} is not larger than the reserve {reserve}: nothing may be said")]
    WindowTooSmall {
        /// The model's window.
        window: u64,
        /// What is kept free for the answer.
        reserve: u64,
    },
    /// There is nothing a model could answer.
    #[error("nothing to say: {target} needs at least one message")]
    NothingToSay {
        /// Name of the target's format or adapter.
        target: String,
    },
    /// The target takes no requests.
    #[error("{format} is not a provider's format: it takes no requests")]
    UnsupportedTarget {
        /// Format of the target.
        format: Format,
    },
    /// A verbatim parameter is not valid JSON text or names a field that compile owns.
    #[error("parameter `{name}`: {reason}")]
    BadParameter {
        /// Name of the parameter.
        name: String,
        /// What is wrong with it.
        reason: &'static str,
    },
    /// The tools cannot be offered together.
    #[error(transparent)]
    Tools(#[from] ToolRefusal),
    /// The items of a contribution cannot stand where they are to be placed.
    #[error("contribution `{source_name}`: {reason}")]
    BadContribution {
        /// The contribution's source.
        source_name: String,
        /// What is wrong with its items.
        reason: String,
    },
    /// A renderer cannot write a contribution.
    #[error("cannot render `{source_name}`: {reason}")]
    Render {
        /// The contribution's source.
        source_name: String,
        /// The renderer's account.
        reason: String,
    },
    /// A program's own target adapter cannot write the request.
    #[error("target adapter `{adapter}`: {reason}")]
    Adapter {
        /// The adapter's name.
        adapter: String,
        /// Reason the adapter gave.
        reason: String,
    },
    /// Another thread called the compile off.
    #[error("the compile was cancelled")]
    Cancelled,
    /// The finished payload broke the post-condition: a fault of this program, reported instead of
    /// being sent.
    #[error("the payload would be refused: {reason}")]
    Unsound {
        /// Which condition, where.
        reason: String,
    },
}

/// One segment that must be sent.
#[derive(Clone, Debug, PartialEq, Eq, serde::Serialize)]
pub struct RequiredSegment {
    /// `framing`, `tools`, a contribution's source, `task`, `last round`.
    pub name: String,
    /// Its tokens, as budgeted.
    pub tokens: u64,
}

impl Refusal {
    /// A stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::DoesNotFit { .. } => "does_not_fit",
            Self::WindowTooSmall { .. } => "window_too_small",
            Self::NothingToSay { .. } => "nothing_to_say",
            Self::UnsupportedTarget { .. } => "unsupported_target",
            Self::BadParameter { .. } => "bad_parameter",
            Self::Tools(refusal) => refusal.kind(),
            Self::BadContribution { .. } => "bad_contribution",
            Self::Render { .. } => "render",
            Self::Adapter { .. } => "adapter",
            Self::Cancelled => "cancelled",
            Self::Unsound { .. } => "unsound",
        }
    }
}

impl From<Cancelled> for Refusal {
    fn from(Cancelled: Cancelled) -> Self {
        Self::Cancelled
    }
}

/// Why there is no payload.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// The model is not in the catalogue.
    #[error(transparent)]
    Catalogue(#[from] CatalogueError),
    /// The request cannot be compiled.
    #[error(transparent)]
    Refused(#[from] Refusal),
}
