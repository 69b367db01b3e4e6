//! Why a model did not answer.

/// Why a model did not answer. Variants are what the caller would do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The provider is overloaded, limits the rate, or cannot be reached: try again later.
    #[error("{model} is not available: {why}")]
    Unavailable {
        /// The model.
        model: String,
        /// What happened, without credentials.
        why: String,
        /// How long the provider asks to wait, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// The provider refused the request: another one is needed.
    #[error("{model} refused the request: {why}")]
    Refused {
        /// The model.
        model: String,
        /// What the provider says, without credentials.
        why: String,
        /// Whether it says that the request is too long.
        too_long: bool,
    },
    /// There is no permission: other credentials are needed.
    #[error("{model} is not permitted: {why}")]
    Forbidden {
        /// The model.
        model: String,
        /// What the provider says, without credentials.
        why: String,
    },
    /// A script or a recording has no answer to this request.
    #[error("no answer to call {call} of {model}: {why}")]
    NoAnswer {
        /// The model.
        model: String,
        /// Which call it was, from 1.
        call: usize,
        /// What was expected.
        why: String,
    },
}

impl ModelError {
    /// A short stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::Unavailable { .. } => "model_unavailable",
            Self::Refused { .. } => "model_refused",
            Self::Forbidden { .. } => "model_forbidden",
            Self::NoAnswer { .. } => "no_answer",
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            Self::Unavailable { .. } => true,
            Self::Refused { .. } | Self::Forbidden { .. } | Self::NoAnswer { .. } => false,
        }
    }
}
