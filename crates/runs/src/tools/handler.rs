//! Tool handlers: what runs a tool, its call, options, output and failures.

use std::fmt;
use std::future::Future;
use std::time::Duration;

use async_trait::async_trait;
use contexture_ir::{Extra, FunctionCallOutput, Output, Raw};
use contexture_layers::Rerun;
use contexture_tools::{ResolveError, ToolId};

use crate::context::RunContext;
use crate::tasks::{Abort, Cancelled};

/// A call that is about to run.
#[derive(Clone, Debug)]
pub struct ToolCall {
    /// Id of the tool.
    pub tool: ToolId,
    /// The provider's id of the call, which the output repeats.
    pub call_id: String,
    /// The arguments: an object that matches the tool's schema.
    pub arguments: Raw,
    /// Aborted when the call is over, however it ends: for work that the tool has started elsewhere. The tool itself is
    /// dropped at its current await by a timeout or an abort.
    pub abort: Abort,
    /// The run that the tool works in; `None` if a program calls it by itself.
    pub run: Option<RunContext>,
}

/// Runs a tool. Functions from a [`ToolCall`] to a future of a result are handlers.
#[async_trait]
pub trait ToolHandler: Send + Sync {
    /// Runs the call. May be dropped at any await, by a timeout or an abort.
    ///
    /// # Errors
    /// [`ToolFailure::from_message`], with a text that the model can use.
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
    /// What to do with a call that was started before a crash. Default: tell the model that it is unknown whether it
    /// ran, which is true of any tool.
    pub rerun: Rerun,
    /// Whether it may run in parallel with others. Default: alone.
    pub concurrency: ToolConcurrency,
    /// The longest it may take; absent for no limit. Default 2 minutes.
    pub timeout: Option<Duration>,
    /// The longest output, in bytes: longer text is truncated, other output is refused. Default 1 MiB.
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

/// Whether a tool may run in parallel with others.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum ToolConcurrency {
    /// No other tool runs at the same time.
    #[default]
    Exclusive,
    /// Runs in parallel with others that allow it.
    Parallel,
}

/// Result of a tool.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ToolOutput {
    /// Output for the model.
    pub output: Output,
    /// Number of bytes of text that were truncated.
    pub truncated_bytes: usize,
    /// The value that ends the run, once the answer's other calls have run.
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
    /// Ends the run with a value: no model is asked again, and [`Turn::value`](crate::Turn::value) returns it.
    #[must_use]
    pub fn end_run(value: Raw) -> Self {
        Self {
            final_value: Some(value.clone()),
            ..Self::from(value.get())
        }
    }

    /// Truncates text to a limit; a note about the cut is added on top of it.
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

/// Why a call has no output. The texts may be shown to the model.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolFailure {
    /// The call is not allowed.
    #[error("{reason}")]
    Denied {
        /// What denied it, and why.
        reason: String,
    },
    /// There is no such tool, or it cannot be called now.
    #[error("{reason}")]
    Unknown {
        /// Which tools exist instead.
        reason: String,
    },
    /// The arguments cannot be parsed, or do not match the schema.
    #[error("{reason}")]
    BadArguments {
        /// What is wrong, and where.
        reason: String,
    },
    /// The tool exceeded its time limit and was stopped.
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
        /// Message of the tool.
        reason: String,
    },
    /// The call was cancelled.
    #[error(transparent)]
    Cancelled(#[from] Cancelled),
}

impl ToolFailure {
    /// Creates a failure with the tool's own message.
    #[must_use]
    pub fn from_message(reason: impl fmt::Display) -> Self {
        Self::Failed {
            reason: reason.to_string(),
        }
    }

    /// Returns a short stable name for programs.
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

/// Builds the output item for the model: the output, or the failure as text.
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
