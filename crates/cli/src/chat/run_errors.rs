//! Errors of runs and models in the words of the command line.

use contexture::models::ModelError;
use contexture::models_http::ClientError;
use contexture::runs::{BudgetKind, RunError};

use crate::chat::pending_calls::next_commands;
use crate::output::error_messages::error_chain;
use crate::output::exit::Exit;
use crate::output::failure::Failure;

impl From<ClientError> for Failure {
    fn from(error: ClientError) -> Self {
        let failure = Self::new(Exit::Usage, "no_model", error.to_string());
        match &error {
            ClientError::NoKey { variables } => {
                let variable = variables.first().copied().unwrap_or_default();
                failure.with_hint(format!(
                    "export {variable}=…, ask another provider's model, or answer from a file with --script"
                ))
            }
            ClientError::BadAddress { .. } => {
                failure.with_hint("give --base-url like https://host.example/v1")
            }
            _ => failure,
        }
    }
}

impl From<ModelError> for Failure {
    fn from(error: ModelError) -> Self {
        let failure = Self::new(Exit::Model, error.kind(), error_chain(&error));
        match &error {
            ModelError::NoAnswer { .. } => {
                failure.with_hint("a line of the script or recording is needed for each request")
            }
            ModelError::Forbidden { .. } => failure.with_hint("is it the right key for this address?"),
            ModelError::Untrusted { .. } => failure.with_hint(
                "is the address right? SSL_CERT_FILE names the certificates of authorities that are trusted",
            ),
            // The compiler fitted the request to the window it was told; so that was too large.
            ModelError::Refused { too_long: Some(_), .. } => {
                failure.with_hint("give the window that the model really has: --window TOKENS")
            }
            error if error.is_retryable() => failure.with_hint("try again later"),
            _ => failure,
        }
    }
}

impl From<RunError> for Failure {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Engine(error) => error.into(),
            RunError::Model(error) => error.into(),
            // It has an exit code of its own, so that scripts can tell it from a failure.
            RunError::Cancelled(_) => {
                Self::new(Exit::Interrupted, error.kind(), error_chain(&error))
                    .with_hint("what was finished is kept; the conversation goes on from there")
            }
            RunError::BudgetExceeded(exceeded) => {
                let option = match exceeded.kind {
                    BudgetKind::Tokens => "--budget-tokens",
                    BudgetKind::Cost => "--budget-cost",
                    // What remains of the kinds there are is steps.
                    _ => "--max-steps",
                };
                Self::new(Exit::Refused, "budget", exceeded.to_string()).with_hint(format!(
                    "what was finished is kept; go on with more: {option}"
                ))
            }
            RunError::Busy { .. } => Self::new(Exit::Conflict, error.kind(), error.to_string())
                .with_hint("another program drives it: wait for that, or stop it"),
            RunError::Unfinished { ref calls, run, .. } => {
                let (run, calls) = (run.to_string(), calls.clone());
                Self::new(Exit::Conflict, error.kind(), error.to_string()).with_hint(next_commands(
                    &run,
                    &calls,
                    &[],
                ))
            }
            RunError::AlreadyDecided { .. } | RunError::NotWaiting { .. } => {
                Self::new(Exit::Conflict, error.kind(), error.to_string())
                    .with_hint("`contexture runs` shows what waits and what was decided")
            }
            RunError::ItemMismatch { .. } => {
                Self::new(Exit::NotFound, error.kind(), error_chain(&error))
                    .with_hint("`contexture runs` lists the runs")
            }
            error => Self::new(Exit::Model, error.kind(), error_chain(&error)),
        }
    }
}
