//! The errors of a model call.

use std::time::Duration;

use contexture_wire::{StreamFailure, TooLong};

/// Why a model did not answer. Variants are distinguished by what the caller would do next.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelError {
    /// The provider limits the rate of requests or tokens, or the account is used up: try again later.
    #[error("{model} limits the rate: {reason}")]
    RateLimited {
        /// Name of the model.
        model: String,
        /// What the provider says, without credentials.
        reason: String,
        /// How long the provider asks to wait, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// The provider is overloaded or failed: try again later.
    #[error("{model} is not available: {reason}")]
    Unavailable {
        /// Name of the model.
        model: String,
        /// What happened, without credentials.
        reason: String,
        /// How long the provider asks to wait, in milliseconds.
        retry_after_ms: Option<u64>,
    },
    /// There is no connection, or it broke: try again.
    #[error("{model} cannot be reached: {reason}")]
    Unreachable {
        /// Name of the model.
        model: String,
        /// What happened, without credentials.
        reason: String,
    },
    /// Whoever answers at the address cannot show that it is the provider: another trust or another address is needed.
    #[error("{model} cannot be trusted: {reason}")]
    Untrusted {
        /// Name of the model.
        model: String,
        /// What is wrong with its certificate, and what to do.
        reason: String,
    },
    /// Nothing came for too long: try again, or allow more time.
    #[error("{model} gave no {awaited} within {limit_ms} ms")]
    Timeout {
        /// Name of the model.
        model: String,
        /// What was waited for.
        awaited: &'static str,
        /// How long, in milliseconds.
        limit_ms: u64,
    },
    /// The answer is not what the format's answers are, or longer than allowed.
    #[error("the answer of {model} cannot be read: {reason}")]
    Malformed {
        /// Name of the model.
        model: String,
        /// What was expected, and what came.
        reason: String,
    },
    /// The provider refused the request: another one is needed.
    #[error("{model} refused the request: {reason}")]
    Refused {
        /// Name of the model.
        model: String,
        /// What the provider says, without credentials.
        reason: String,
        /// What it says of the request's length, if it was refused for that.
        too_long: Option<TooLong>,
    },
    /// There is no permission: other credentials are needed.
    #[error("{model} is not permitted: {reason}")]
    Forbidden {
        /// Name of the model.
        model: String,
        /// What the provider says, without credentials.
        reason: String,
    },
    /// A script or a recording has no answer to this request.
    #[error("no answer to call {call} of {model}: {reason}")]
    NoAnswer {
        /// Name of the model.
        model: String,
        /// Which call it was, from 1.
        call: usize,
        /// What was expected.
        reason: String,
    },
}

impl ModelError {
    /// A short stable word for programs.
    #[must_use]
    pub const fn kind(&self) -> &'static str {
        match self {
            Self::RateLimited { .. } => "model_rate_limited",
            Self::Unavailable { .. } => "model_unavailable",
            Self::Unreachable { .. } => "model_unreachable",
            Self::Untrusted { .. } => "model_untrusted",
            Self::Timeout { .. } => "model_timeout",
            Self::Malformed { .. } => "model_malformed",
            Self::Refused { .. } => "model_refused",
            Self::Forbidden { .. } => "model_forbidden",
            Self::NoAnswer { .. } => "no_answer",
        }
    }

    /// Whether the same request may succeed later.
    #[must_use]
    pub const fn is_retryable(&self) -> bool {
        match self {
            // A time-out may have cost money, but repeating it can succeed; what refused the request will
            // refuse it again.
            Self::RateLimited { .. }
            | Self::Unavailable { .. }
            | Self::Unreachable { .. }
            | Self::Timeout { .. } => true,
            Self::Untrusted { .. }
            | Self::Malformed { .. }
            | Self::Refused { .. }
            | Self::Forbidden { .. }
            | Self::NoAnswer { .. } => false,
        }
    }

    /// Returns how long the provider asks to wait before the same request, where it does.
    #[must_use]
    pub fn retry_after(&self) -> Option<Duration> {
        match self {
            Self::RateLimited { retry_after_ms, .. } | Self::Unavailable { retry_after_ms, .. } => {
                retry_after_ms.map(Duration::from_millis)
            }
            _ => None,
        }
    }

    /// What a provider's words for a failure mean: those of an answer with an error status, and those that
    /// come in the middle of a stream. `status` is the HTTP status, if there was one; a failure's code counts
    /// as one where it is a number.
    #[must_use]
    pub fn from_failure(
        model: &str,
        failure: &StreamFailure,
        status: Option<u16>,
        retry_after_ms: Option<u64>,
    ) -> Self {
        let model = model.to_owned();
        let reason = failure.message.clone();
        let code = failure.code.as_deref().unwrap_or_default();
        // Some providers put the HTTP status into the body of a stream's error, where no other status exists.
        let status = status.or_else(|| code.parse().ok()).unwrap_or_default();
        let is = |words: &[&str]| words.contains(&failure.kind.as_str()) || words.contains(&code);
        // Before the rate limit: an empty account also answers 429, and waiting does not fill it.
        if is(&["insufficient_quota", "billing_error"])
            || matches!(status, 401..=403)
            || is(FORBIDDEN)
        {
            Self::Forbidden { model, reason }
        } else if status == 429 || is(LIMITED) {
            Self::RateLimited {
                model,
                reason,
                retry_after_ms,
            }
        // 409 and 425 are asked of the client to repeat by the SDKs of the large providers.
        } else if matches!(status, 408 | 409 | 425 | 500..) || is(UNAVAILABLE) {
            Self::Unavailable {
                model,
                reason,
                retry_after_ms,
            }
        } else {
            let is_too_large = status == 413 || is(TOO_LARGE);
            let too_long = TooLong::from_failure(failure).or(is_too_large.then(TooLong::default));
            Self::Refused {
                model,
                reason,
                too_long,
            }
        }
    }
}

/// Words of providers for a failure: another key, or another account, is needed.
const FORBIDDEN: &[&str] = &[
    "authentication_error",
    "permission_error",
    "invalid_api_key",
    "UNAUTHENTICATED",
    "PERMISSION_DENIED",
];
/// Too many requests or tokens at a time.
const LIMITED: &[&str] = &[
    "rate_limit_error",
    "rate_limit_exceeded",
    "RESOURCE_EXHAUSTED",
];
/// Nobody's fault but the provider's.
const UNAVAILABLE: &[&str] = &[
    "api_error",
    "overloaded_error",
    "server_error",
    "timeout_error",
    "INTERNAL",
    "UNAVAILABLE",
    "DEADLINE_EXCEEDED",
];
/// More than the provider takes, in bytes or characters.
const TOO_LARGE: &[&str] = &["request_too_large", "string_above_max_length"];
