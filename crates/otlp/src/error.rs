//! Why nothing can be sent.

/// What is wrong with the configuration, or with the collector when it is waited for.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OtlpError {
    /// An exporter that cannot be set up.
    #[error("no exporter: {why}; give an endpoint like http://localhost:4318")]
    BadConfiguration {
        /// What is wrong.
        why: String,
    },
    /// What was told could not be sent.
    #[error("what was told could not be sent: {why}")]
    NotSent {
        /// Why.
        why: String,
    },
}
