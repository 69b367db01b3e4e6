//! Refusals: errors of the proxy itself, in the shape of the provider's errors, which its clients can parse.

use std::time::Duration;

use axum::Json;
use axum::http::header::RETRY_AFTER;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use contexture::models_http::UpstreamError;
use serde_json::{Value, json};

use crate::config::UpstreamFormat;
use crate::problem::Problem;

/// The header that tells our errors from a provider's: what failed, or why it was refused.
pub(crate) const FAILED_HEADER: &str = "x-contexture-failed";

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

    pub(crate) fn bad_header(name: &str, why: &str) -> Self {
        let message = format!("the header {name}: {why}");
        Self::new(StatusCode::BAD_REQUEST, "bad_header", message)
    }

    pub(crate) fn too_large(most: usize) -> Self {
        let message = format!("the body is larger than {most} bytes, the most this server takes");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "body_too_large", message)
    }

    /// Encodes the refusal as an error of this provider.
    pub(crate) fn encode_for(self, format: UpstreamFormat) -> Response {
        let Self {
            status,
            code,
            message,
            retry_after: wait,
        } = self;
        let body = match format {
            UpstreamFormat::OpenAi => openai_error(status, code, &message),
            UpstreamFormat::Anthropic => anthropic_error(status, &message),
            UpstreamFormat::Gemini => gemini_error(status, &message),
        };
        let mut response = (status, Json(body)).into_response();
        let headers = response.headers_mut();
        headers.insert(FAILED_HEADER, HeaderValue::from_static(code));
        if let Some(wait) = wait {
            headers.insert(
                RETRY_AFTER,
                HeaderValue::from(wait.as_secs_f64().ceil() as u64),
            );
        }
        response
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

fn openai_error(status: StatusCode, code: &str, message: &str) -> Value {
    // Types that OpenAI's own API uses: client libraries decide by them whether to retry.
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        _ => "server_error",
    };
    json!({"error": {"message": message, "type": kind, "param": null, "code": code}})
}

fn anthropic_error(status: StatusCode, message: &str) -> Value {
    let kind = match status.as_u16() {
        401 => "authentication_error",
        403 => "permission_error",
        404 => "not_found_error",
        413 => "request_too_large",
        429 => "rate_limit_error",
        400..=499 => "invalid_request_error",
        504 => "timeout_error",
        _ => "api_error",
    };
    json!({"type": "error", "error": {"type": kind, "message": message}})
}

fn gemini_error(status: StatusCode, message: &str) -> Value {
    let word = match status.as_u16() {
        401 => "UNAUTHENTICATED",
        403 => "PERMISSION_DENIED",
        404 => "NOT_FOUND",
        429 => "RESOURCE_EXHAUSTED",
        400..=499 => "INVALID_ARGUMENT",
        504 => "DEADLINE_EXCEEDED",
        502 | 503 => "UNAVAILABLE",
        _ => "INTERNAL",
    };
    json!({"error": {"code": status.as_u16(), "message": message, "status": word}})
}
