//! Refusals: errors of the proxy itself, in the shape of the provider's errors, which its clients can parse.

use std::time::Duration;

use axum::http::header::{ALLOW, CONNECTION, CONTENT_TYPE, RETRY_AFTER, UPGRADE};
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use contexture::Format;
use contexture::models_http::UpstreamError;
use contexture::wire::ProxyError;
use contexture::wire::proxy::ToolFilterError;

use crate::config::UpstreamFormat;
use crate::problem::Problem;
use crate::state::spending::SpendRefusal;

/// The header that tells our errors from a provider's: what failed, or why it was refused.
pub(crate) const FAILED_HEADER: &str = "x-contexture-failed";

/// The header that tells clients of OpenAI and Anthropic whether to repeat a request; without it they repeat each with 429.
const RETRY_HEADER: &str = "x-should-retry";

/// The word for a limit in dollars that is reached.
const SPEND_LIMIT: &str = "spend_limit";

/// Why a request is not answered by its provider.
#[derive(Clone, Debug)]
pub(crate) struct ProxyRefusal {
    status: StatusCode,
    /// For programs; the word of `x-contexture-failed`.
    code: &'static str,
    message: String,
    /// When to retry.
    retry_after: Option<Duration>,
}

impl ProxyRefusal {
    pub(crate) fn new(status: StatusCode, code: &'static str, message: impl Into<String>) -> Self {
        Self {
            status,
            code,
            message: message.into(),
            retry_after: None,
        }
    }

    /// Returns the status that the caller gets.
    pub(crate) const fn status(&self) -> StatusCode {
        self.status
    }

    /// Returns the word that says why, as in `x-contexture-failed`.
    pub(crate) const fn code(&self) -> &'static str {
        self.code
    }

    pub(crate) fn bad_header(name: &str, why: &str) -> Self {
        let message = format!("the header {name}: {why}");
        Self::new(StatusCode::BAD_REQUEST, "bad_header", message)
    }

    pub(crate) fn no_websocket() -> Self {
        let message = "there are no WebSockets here; the same path answers over HTTP";
        Self::new(StatusCode::UPGRADE_REQUIRED, "websocket", message)
    }

    /// Encodes the refusal as an error of this provider.
    pub(crate) fn encode_for(self, format: UpstreamFormat) -> Response {
        let Self {
            status,
            code,
            message,
            retry_after: wait,
        } = self;
        // An upstream's formats have the same errors.
        let format = format.formats().next().unwrap_or(Format::COMPATIBLE);
        let error = ProxyError {
            status: status.as_u16(),
            code,
            message: &message,
        };
        let body = format.spec().error_body(&error);
        let mut response = (status, body).into_response();
        let headers = response.headers_mut();
        headers.insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
        headers.insert(FAILED_HEADER, HeaderValue::from_static(code));
        if let Some((name, value)) = format.spec().error_header(&error) {
            headers.insert(name, HeaderValue::from_static(value));
        }
        if status == StatusCode::METHOD_NOT_ALLOWED {
            // RFC 9110, 15.5.6: the answer names what is allowed.
            let allowed = HeaderValue::from_static("GET,HEAD,POST,PUT,PATCH,DELETE,OPTIONS");
            headers.insert(ALLOW, allowed);
        }
        if status == StatusCode::UPGRADE_REQUIRED {
            // RFC 9110, 15.5.22: the answer names what to speak instead.
            headers.insert(UPGRADE, HeaderValue::from_static("HTTP/1.1"));
            headers.insert(CONNECTION, HeaderValue::from_static("upgrade"));
        }
        if code == SPEND_LIMIT {
            headers.insert(RETRY_HEADER, HeaderValue::from_static("false"));
        }
        if let Some(wait) = wait {
            headers.insert(
                RETRY_AFTER,
                HeaderValue::from(wait.as_secs_f64().ceil() as u64),
            );
        }
        response
    }
}

impl From<ToolFilterError> for ProxyRefusal {
    fn from(error: ToolFilterError) -> Self {
        match error {
            ToolFilterError::Denied { .. } => {
                Self::new(StatusCode::FORBIDDEN, "tool_denied", error.to_string())
            }
            // Which tools it has is unknown, so it fails closed.
            _ => {
                let message =
                    "the request cannot be read, and which tools may be offered is restricted here";
                Self::new(StatusCode::BAD_REQUEST, "unreadable", message)
            }
        }
    }
}

impl From<Problem> for ProxyRefusal {
    fn from(problem: Problem) -> Self {
        let code = problem.code();
        Self {
            retry_after: problem.retry_after(),
            ..Self::new(problem.status(), code.as_str(), problem.detail())
        }
    }
}

impl From<SpendRefusal> for ProxyRefusal {
    fn from(refusal: SpendRefusal) -> Self {
        match refusal {
            SpendRefusal::LimitReached { message, wait } => Self {
                retry_after: Some(wait),
                ..Self::new(StatusCode::TOO_MANY_REQUESTS, SPEND_LIMIT, message)
            },
            SpendRefusal::Unknown(error) => Problem::from(error).into(),
        }
    }
}

impl From<UpstreamError> for ProxyRefusal {
    fn from(error: UpstreamError) -> Self {
        let (status, code) = match error {
            UpstreamError::BadPath { .. } => (StatusCode::BAD_REQUEST, "bad_path"),
            UpstreamError::Silent { .. } => (StatusCode::GATEWAY_TIMEOUT, "upstream_silent"),
            _ => (StatusCode::BAD_GATEWAY, "upstream_unreachable"),
        };
        Self::new(status, code, error.to_string())
    }
}
