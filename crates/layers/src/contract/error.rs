//! What goes wrong in a layer, and in a list of them.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::contract::hook_outcome::Hook;
use crate::contract::layer_id::LayerId;

/// Why a hook did not do its work. It never leaves its layer unless the layer says so ([`OnError::Fail`](crate::OnError::Fail)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The layer says so, in its own words.
    #[error("{0}")]
    Failed(String),
    /// It took too long.
    #[error("no result within {ms} ms")]
    TimedOut {
        /// The limit in milliseconds.
        ms: u128,
    },
    /// Its stored state cannot be read.
    #[error("its state of version {stored} cannot be read by version {current}: {reason}")]
    State {
        /// The version it was stored with.
        stored: u32,
        /// The version the layer has now.
        current: u32,
        /// Why it cannot be read.
        reason: String,
    },
    /// Its state is larger than a value may be.
    #[error("its state has {bytes} bytes, the limit is {limit}: keep less")]
    StateTooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// What a layer asked the host for is not there.
    #[error("{capability} is not available here: {hint}")]
    Unavailable {
        /// What the layer asked for.
        capability: &'static str,
        /// What to do.
        hint: &'static str,
    },
}

impl LayerError {
    /// A failure in the layer's words.
    #[must_use]
    pub fn from_message(reason: impl std::fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }
}

/// Why layers cannot be run, or an operation with them failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayersError {
    /// Two layers of one name.
    #[error("two layers are named {id}: give one of them another name")]
    DuplicateId {
        /// The name that two layers have.
        id: LayerId,
    },
    /// A budget that cannot be kept.
    #[error(
        "the budget of the layer {id} has a minimum of {min} tokens above its maximum of {max}"
    )]
    BadBudget {
        /// Name of the layer.
        id: LayerId,
        /// Its minimum in tokens.
        min: u64,
        /// Its maximum in tokens.
        max: u64,
    },
    /// A share that is none.
    #[error("the budget of the layer {id} has a share of {share} per cent: 100 is all there is")]
    BadShare {
        /// Name of the layer.
        id: LayerId,
        /// Its share in per cent.
        share: u8,
    },
    /// Two functions that the model would see under one name.
    #[error("the layers {first} and {second} both offer a tool named {name}: rename one")]
    DuplicateTool {
        /// The tool's name.
        name: String,
        /// The layer that has it.
        first: LayerId,
        /// The layer that wants it too.
        second: LayerId,
    },
    /// A function whose name or schema is wrong.
    #[error("the function {name} of the layer {id}: {reason}")]
    BadFunction {
        /// Name of the layer.
        id: LayerId,
        /// The function's tool name.
        name: String,
        /// What is wrong.
        reason: String,
    },
    /// There is no layer of this name or type.
    #[error("there is no layer {id}; there are: {there}")]
    NoLayer {
        /// The name asked for.
        id: String,
        /// Those there are.
        there: String,
    },
    /// A layer that must not fail did.
    #[error("the layer {id} failed in {hook}: {source}")]
    Layer {
        /// Name of the layer.
        id: LayerId,
        /// The hook that failed.
        hook: Hook,
        /// Why it failed.
        source: LayerError,
    },
}

/// Runs work that takes no time. A panic is a failure like any other.
///
/// Unwinding is safe: what the work changes is a copy that is dropped with the failure.
pub(crate) fn catch_panic<T>(
    work: impl FnOnce() -> Result<T, LayerError>,
) -> Result<T, LayerError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panic_error(&panic)))
}

/// A panic as a failure, with what it said.
pub(crate) fn panic_error(panic: &Box<dyn Any + Send>) -> LayerError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    LayerError::from_message(format!("it panicked: {}", text.unwrap_or("without a word")))
}
