//! What runs a tool, what it is given, and what comes of it.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use contexture_ir::{Extra, FunctionCallOutput, Output, Raw};
use contexture_layers::Rerun;
use contexture_tools::{ResolveError, ToolId};

use crate::tasks::{Abort, Cancelled};

/// A call that runs now.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Id of the tool.
    pub tool: ToolId,
    /// The id by which the output answers.
    pub call_id: String,
    /// The arguments: an object that fits the tool's schema.
    pub arguments: Raw,
    /// Aborted when the call is over, whatever its end: for what the tool has begun elsewhere. The tool itself is dropped
    /// where it stands by a timeout or an abort.
    pub abort: Abort,
}

/// Runs a tool. Functions of a [`ToolCall`] that give a future of a result are handlers.
#[async_trait]
pub trait ToolHandler: Send + Sync {
    /// Runs it. May be dropped at any await, by a timeout or an abort.
    ///
    /// # Errors
    /// [`ToolFailure::from_message`], in words that the model can use.
    async fn run_call(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure>;
}

#[async_trait]
impl<F, Fut> ToolHandler for F
where
    F: Fn(ToolCall) -> Fut + Send + Sync,
    Fut: Future<Output = Result<ToolOutput, ToolFailure>> + Send,
{
    async fn run_call(&self, call: ToolCall) -> Result<ToolOutput, ToolFailure> {
        self(call).await
    }
}

/// How a tool is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ToolOptions {
    /// What to do with a call that was begun before a crash. Default: tell the model that nobody knows whether it ran,
    /// which is true of any tool.
    pub rerun: Rerun,
    /// Whether it may run beside others. Default: alone.
    pub concurrency: ToolConcurrency,
    /// The longest it may take; absent for no limit. Default 2 minutes.
    pub timeout: Option<Duration>,
    /// The longest output, in bytes: text beyond it is cut, other output is refused. Default 1 MiB.
    pub max_bytes: usize,
}

impl Default for ToolOptions {
    fn default() -> Self {
        Self {
            rerun: Rerun::Unknown,
            concurrency: ToolConcurrency::Exclusive,
            timeout: Some(Duration::from_secs(120)),
            max_bytes: 1 << 20,
        }
    }
}

/// Whether a tool may run beside others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolConcurrency {
    /// While it runs, no other does.
    #[default]
    Exclusive,
    /// Together with others that may.
    Parallel,
}

/// What a tool gives back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// For the model.
    pub output: Output,
    /// How many bytes of text were cut off, for it was too long.
    pub truncated_bytes: usize,
    /// The value that it ends the run with, once the answer's other calls are carried out.
    pub final_value: Option<Raw>,
}

impl<T: Into<String>> From<T> for ToolOutput {
    fn from(text: T) -> Self {
        Self {
            output: Output::Text(text.into()),
            truncated_bytes: 0,
            final_value: None,
        }
    }
}

impl ToolOutput {
    /// Ends the run with a value: no model is asked again, and [`Turn::value`](crate::Turn::value) tells it.
    #[must_use]
    pub fn end_run(value: Raw) -> Self {
        Self {
            final_value: Some(value.clone()),
            ..Self::from(value.get())
        }
    }

    /// The same within a limit, a note at the place of the cut.
    pub(super) fn limit_bytes(self, max_bytes: usize) -> Result<Self, ToolFailure> {
        let text = match &self.output {
            Output::Text(text) if text.len() <= max_bytes => return Ok(self),
            Output::Text(text) => text,
            Output::Parts(_) => return self.check_parts_size(max_bytes),
        };
        let shown = text
            .get(..text.floor_char_boundary(max_bytes))
            .unwrap_or_default();
        let cut = text.len() - shown.len();
        let note = format!(
            "{shown}\n[{cut} of {} bytes are cut off here: the output is limited to {max_bytes}]",
            text.len()
        );
        Ok(Self {
            output: Output::Text(note),
            truncated_bytes: cut,
            final_value: self.final_value,
        })
    }

    fn check_parts_size(self, max_bytes: usize) -> Result<Self, ToolFailure> {
        let bytes =
            contexture_ir::Item::FunctionCallOutput(function_call_output("", Ok(self.clone())))
                .to_json()
                .len();
        if bytes > max_bytes {
            return Err(ToolFailure::from_message(format_args!(
                "the output has {bytes} bytes, the limit is {max_bytes}"
            )));
        }
        Ok(self)
    }
}

/// Why a call has no output. The texts are fit to be shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolFailure {
    /// It may not run.
    #[error("{reason}")]
    Denied {
        /// What denied it, and why.
        reason: String,
    },
    /// There is no such tool, or it cannot be called now.
    #[error("{reason}")]
    Unknown {
        /// What there is instead.
        reason: String,
    },
    /// The arguments cannot be read, or do not fit.
    #[error("{reason}")]
    BadArguments {
        /// What is wrong, and where.
        reason: String,
    },
    /// It took too long, and was stopped.
    #[error("{tool} was stopped: it gave no result within {limit:?}")]
    TimedOut {
        /// Id of the tool.
        tool: ToolId,
        /// The time limit.
        limit: Duration,
    },
    /// The tool failed.
    #[error("{reason}")]
    Failed {
        /// In its own words.
        reason: String,
    },
    /// It was stopped.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl ToolFailure {
    /// A failure in the tool's words.
    #[must_use]
    pub fn from_message(reason: impl fmt::Display) -> Self {
        Self::Failed {
            reason: reason.to_string(),
        }
    }

    /// A short stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Denied { .. } => "denied",
            Self::Unknown { .. } => "unknown_tool",
            Self::BadArguments { .. } => "bad_arguments",
            Self::TimedOut { .. } => "tool_timed_out",
            Self::Failed { .. } => "tool_failed",
            Self::Cancelled(_) => "cancelled",
        }
    }
}

impl From<ResolveError> for ToolFailure {
    fn from(error: ResolveError) -> Self {
        let reason = error.to_string();
        match error {
            ResolveError::Denied { .. } => Self::Denied { reason },
            ResolveError::Arguments { .. } => Self::BadArguments { reason },
            _ => Self::Unknown { reason },
        }
    }
}

/// What the model is told: the output, or the failure in words.
#[must_use]
pub fn function_call_output(
    call_id: &str,
    result: Result<ToolOutput, ToolFailure>,
) -> FunctionCallOutput {
    let (output, is_error) = match result {
        Ok(given) => (given.output, None),
        Err(failure) => (Output::Text(failure.to_string()), Some(true)),
    };
    FunctionCallOutput {
        id: None,
        call_id: call_id.to_owned(),
        output,
        is_error,
        status: None,
        extra: Extra::default(),
    }
}
