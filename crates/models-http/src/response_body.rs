//! One response as it comes in: its bytes under limits, as a body or as events, and the meaning of an error
//! status.

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use contexture_models::ModelError;
use contexture_wire::{StreamFailure, StreamFraming};
use futures_util::{Stream, StreamExt, stream};
use reqwest::Response;
use reqwest::header::CONTENT_TYPE;
use tokio::time::{Instant, timeout_at};

use crate::frames::{FrameStreamError, LossyFrames, read_frames};
use crate::provider::Provider;
use crate::retry;
use crate::root_certificates;

/// The longest body of an error that is read, in bytes.
const ERROR_BODY: usize = 64 << 10;

/// Where an answer comes from, and its limits.
#[derive(Clone, Debug)]
pub(crate) struct HttpCall {
    pub(crate) model: String,
    pub(crate) provider: Provider,
    pub(crate) idle_limit: Duration,
    pub(crate) total_limit: Duration,
    pub(crate) deadline: Instant,
    pub(crate) max_body: usize,
}

/// What an answer's header says it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ResponseContentType {
    Json,
    Events,
    Other(String),
}

/// Returns what an answer's header says it is, for a provider that frames its streams so.
pub(crate) fn response_content_type(
    response: &Response,
    framing: StreamFraming,
) -> ResponseContentType {
    let kind = response.headers().get(CONTENT_TYPE);
    let kind = kind.and_then(|kind| kind.to_str().ok()).unwrap_or_default();
    if framing.is_content_type(kind) {
        return ResponseContentType::Events;
    }
    let word = kind.split(';').next().unwrap_or_default().trim();
    match word.to_ascii_lowercase().as_str() {
        word if word == "application/json" || word.ends_with("+json") => ResponseContentType::Json,
        _ => ResponseContentType::Other(word.to_owned()),
    }
}

impl HttpCall {
    /// Returns how the provider frames streamed answers.
    pub(crate) const fn framing(&self) -> StreamFraming {
        self.provider.framing()
    }

    /// What is waited for, until a moment.
    pub(crate) async fn with_deadline<T>(
        &self,
        limit: Duration,
        what: &'static str,
        future: impl Future<Output = T>,
    ) -> Result<T, ModelError> {
        let until = Instant::now() + limit;
        // The earlier of two limits decides, and the error names that one.
        let late = self.deadline < until;
        let done = timeout_at(until.min(self.deadline), future).await;
        done.map_err(|_| ModelError::Timeout {
            model: self.model.clone(),
            awaited: if late { "whole answer" } else { what },
            limit_ms: saturating_millis(if late { self.total_limit } else { limit }),
        })
    }

    /// The whole body.
    pub(crate) async fn read_body(&self, response: Response) -> Result<String, ModelError> {
        let mut body = Vec::new();
        let mut bytes = Box::pin(self.clone().into_limited_bytes(response));
        while let Some(chunk) = bytes.next().await {
            body.extend_from_slice(&chunk?);
        }
        // Checked at the end: a character may be cut by a chunk.
        String::from_utf8(body).map_err(|_| self.malformed_error("it is not UTF-8"))
    }

    /// The data of a stream's events.
    pub(crate) fn into_event_stream(
        self,
        response: Response,
    ) -> impl Stream<Item = Result<String, ModelError>> {
        let call = self.clone();
        let reader = self.provider.format().spec().frame_reader();
        let bytes = self.into_limited_bytes(response).boxed();
        read_frames(reader, LossyFrames::Refused, bytes).map(move |frame| match frame {
            Ok(frame) => Ok(frame.data.unwrap_or_default()),
            // Our own errors come out as they went in.
            Err(FrameStreamError::Body(error)) => Err(error),
            Err(FrameStreamError::Frame(error)) => Err(call.malformed_error(&error.to_string())),
        })
    }

    /// What an answer with an error status means.
    pub(crate) async fn read_error_response(&self, response: Response) -> ModelError {
        let status = response.status();
        // Read before the body, which consumes the response.
        let asked = retry::retry_after_ms(response.headers(), SystemTime::now());
        if status.is_redirection() {
            return ModelError::Refused {
                model: self.model.clone(),
                reason: format!(
                    "HTTP {status}: redirects are not followed; name the right address"
                ),
                too_long: None,
            };
        }
        // Errors are read in part: an HTML page of a gateway can be long.
        let few = Self {
            max_body: ERROR_BODY,
            ..self.clone()
        };
        let mut body = Vec::new();
        let mut bytes = Box::pin(few.into_limited_bytes(response));
        // What broke off is still worth reading, so an error here only ends the loop.
        while let Some(Ok(chunk)) = bytes.next().await {
            body.extend_from_slice(&chunk);
        }
        let mut failure = StreamFailure::from_body(&String::from_utf8_lossy(&body));
        // Some providers quote the key that they refuse.
        let said = self.provider.redact_secrets(&failure.message);
        failure.message = match said.as_str() {
            "" => format!("HTTP {status}"),
            said => format!("HTTP {}: {said}", status.as_u16()),
        };
        ModelError::from_failure(&self.model, &failure, Some(status.as_u16()), asked)
    }

    pub(crate) fn malformed_error(&self, why: &str) -> ModelError {
        ModelError::Malformed {
            model: self.model.clone(),
            reason: self.provider.redact_secrets(why),
        }
    }

    /// What went wrong on the way.
    pub(crate) fn transport_error(&self, error: reqwest::Error) -> ModelError {
        let error = error.without_url();
        let model = self.model.clone();
        match root_certificates::certificate_error(&error) {
            Some(why) => ModelError::Untrusted { model, reason: why },
            None => ModelError::Unreachable {
                model,
                reason: self.provider.redact_secrets(&error_chain_text(&error)),
            },
        }
    }

    /// The bytes as they come, each wait and their sum limited. Nothing comes behind an error.
    fn into_limited_bytes(
        self,
        response: Response,
    ) -> impl Stream<Item = Result<Bytes, ModelError>> {
        // State is moved through the stream; `None` after an error makes sure that nothing follows it.
        stream::unfold(Some((self, response, 0_usize)), |state| async move {
            let (call, mut response, so_far) = state?;
            let idle = call.idle_limit;
            let chunk = call
                .with_deadline(idle, "more of the answer", response.chunk())
                .await;
            match chunk.and_then(|chunk| chunk.map_err(|error| call.transport_error(error))) {
                Err(error) => Some((Err(error), None)),
                Ok(None) => None,
                Ok(Some(chunk)) => {
                    let sum = so_far.saturating_add(chunk.len());
                    if sum > call.max_body {
                        let why = format!("it is longer than {} bytes", call.max_body);
                        return Some((Err(call.malformed_error(&why)), None));
                    }
                    Some((Ok(chunk), Some((call, response, sum))))
                }
            }
        })
    }
}

/// An error and its causes; the innermost says most.
pub(crate) fn error_chain_text(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(cause) = source {
        let more = cause.to_string();
        // Wrappers repeat their cause's text; every cause is shown once.
        if !text.contains(&more) {
            text.push_str(": ");
            text.push_str(&more);
        }
        source = cause.source();
    }
    text
}

fn saturating_millis(time: Duration) -> u64 {
    time.as_millis().try_into().unwrap_or(u64::MAX)
}
