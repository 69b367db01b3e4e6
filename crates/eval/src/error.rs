//! What keeps an evaluation from being made. A task that fails is a result and no error.

use std::path::PathBuf;

/// Why nothing was played.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EvalError {
    /// The file of the policy cannot be read, or is no policy.
    #[error("the policy {} cannot be used: {why}", file.display())]
    Policy {
        /// File that was named.
        file: PathBuf,
        /// Description of the fault, with what is expected.
        why: String,
    },
    /// A task of that name does not exist.
    #[error("no task is called {name:?}: expected some of {known}, with commas between")]
    UnknownTask {
        /// Name that was given.
        name: String,
        /// All names, with commas between.
        known: String,
    },
    /// The server between agent and provider does not start.
    #[error("the server in front of the provider does not start: {why}")]
    Server {
        /// Description of the fault.
        why: String,
    },
    /// The record of calls cannot be read.
    #[error("the record of calls cannot be read: {why}")]
    Record {
        /// The store's words.
        why: String,
    },
    /// tau-bench cannot be played from the checkout that was named.
    #[error("tau-bench cannot be played from {}: {why}", checkout.display())]
    TauBench {
        /// Folder that was named.
        checkout: PathBuf,
        /// Description of the fault, with what to do.
        why: String,
    },
}
