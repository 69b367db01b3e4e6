//! Errors of layers, and of lists of layers.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::contract::hook_outcome::Hook;
use crate::contract::layer_id::LayerId;

/// Why a hook failed. It affects only its layer unless the layer must not fail
/// ([`OnError::Fail`](crate::OnError::Fail)).
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The layer reported a failure.
    #[error("{0}")]
    Failed(String),
    /// The hook exceeded its time limit.
    #[error("no result within {ms} ms")]
    TimedOut {
        /// The limit in milliseconds.
        ms: u128,
    },
    /// The stored state cannot be read.
    #[error("its state of version {stored} cannot be read by version {current}: {reason}")]
    State {
        /// The version it was stored with.
        stored: u32,
        /// The version the layer has now.
        current: u32,
        /// Why it cannot be read.
        reason: String,
    },
    /// The state is larger than the limit.
    #[error("its state has {bytes} bytes, the limit is {limit}: keep less")]
    StateTooLarge {
        /// Its size in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The host does not offer what the layer asked for.
    #[error("{capability} is not available here: {hint}")]
    Unavailable {
        /// What the layer asked for.
        capability: &'static str,
        /// What to do.
        hint: &'static str,
    },
}

impl LayerError {
    /// Creates a failure with the layer's own message.
    #[must_use]
    pub fn from_message(reason: impl std::fmt::Display) -> Self {
        Self::Failed(reason.to_string())
    }
}

/// Why layers cannot be run, or an operation with them failed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LayersError {
    /// Two layers have the same name.
    #[error("two layers are named {id}: give one of them another name")]
    DuplicateId {
        /// The name that two layers have.
        id: LayerId,
    },
    /// The budget's minimum is above its maximum.
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
    /// The budget's share is above 100 per cent.
    #[error("the budget of the layer {id} has a share of {share} per cent: 100 is all there is")]
    BadShare {
        /// Name of the layer.
        id: LayerId,
        /// Its share in per cent.
        share: u8,
    },
    /// Two functions would have the same tool name.
    #[error("the layers {first} and {second} both offer a tool named {name}: rename one")]
    DuplicateTool {
        /// The tool's name.
        name: String,
        /// The layer that already has the name.
        first: LayerId,
        /// The layer that was added.
        second: LayerId,
    },
    /// The name or the schema of a function is invalid.
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
        /// Names of the existing layers.
        there: String,
    },
    /// A layer that must not fail has failed.
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

/// Runs synchronous work and turns a panic into a failure.
///
/// Unwinding is safe: what the work changes is a copy that is dropped with the failure.
pub(crate) fn catch_panic<T>(
    work: impl FnOnce() -> Result<T, LayerError>,
) -> Result<T, LayerError> {
    catch_unwind(AssertUnwindSafe(work)).unwrap_or_else(|panic| Err(panic_error(&panic)))
}

/// Converts a panic to a failure with its message.
pub(crate) fn panic_error(panic: &Box<dyn Any + Send>) -> LayerError {
    let text = panic.downcast_ref::<&str>().copied();
    let text = text.or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    LayerError::from_message(format!("it panicked: {}", text.unwrap_or("without a word")))
}
