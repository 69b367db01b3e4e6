//! Limits of a client: time, bytes, retries; and the authorities it trusts.

use std::time::Duration;

use crate::root_certificates::RootCertificate;

/// The limits of a client's calls, and whom it trusts.
#[derive(Clone, Debug, PartialEq)]
pub struct ClientOptions {
    /// How long to wait at each stage.
    pub time: TimeLimits,
    /// When to retry.
    pub retries: RetryLimits,
    /// The longest answer in bytes, unpacked; 64 MiB by default.
    pub max_body: usize,
    /// Authorities that are trusted beside the system's; none by default. The system's are those of its store, or of
    /// the files named by `SSL_CERT_FILE` or `SSL_CERT_DIR`.
    pub roots: Vec<RootCertificate>,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self {
            time: TimeLimits::default(),
            retries: RetryLimits::default(),
            max_body: 64 << 20,
            roots: Vec::new(),
        }
    }
}

/// Time limits of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TimeLimits {
    /// For a connection; 10 s by default.
    pub connect: Duration,
    /// For the beginning of an answer; 5 minutes by default, for a model may think long.
    pub first_byte: Duration,
    /// Between two pieces of an answer; 2 minutes by default.
    pub idle: Duration,
    /// For all of a call, its retries and waits included; 30 minutes by default.
    pub whole: Duration,
}

impl Default for TimeLimits {
    fn default() -> Self {
        Self {
            connect: Duration::from_secs(10),
            first_byte: Duration::from_secs(300),
            idle: Duration::from_secs(120),
            whole: Duration::from_secs(1800),
        }
    }
}

/// Retries of a call that failed before any of its answer came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RetryLimits {
    /// How many times; 2 by default, 0 is never.
    pub limit: u32,
    /// The wait before the first one, doubled for each further one and spread by a quarter either way; 500 ms
    /// by default. A wait that the provider asks for replaces it.
    pub wait: Duration,
    /// The longest wait; 30 s by default. If the provider asks for more, the error is given instead.
    pub longest: Duration,
}

impl Default for RetryLimits {
    fn default() -> Self {
        Self {
            limit: 2,
            wait: Duration::from_millis(500),
            longest: Duration::from_secs(30),
        }
    }
}
