//! Responses: an answer on its way to the client, with a copy for the capture task.
//!
//! An answer is passed on as it comes. Only an error waits, until the request that got it is taken back, and the last piece
//! where other servers use the store.

use std::time::Duration;

use axum::body::Body;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use contexture::Format;
use contexture::engine::AnswerDelivery;
use contexture::models_http::{
    PassthroughRequest, PassthroughResponse, Upstream, decompress_to_end,
};
use contexture::wire::TooLong;
use tokio::sync::oneshot;

use crate::proxy::capture::hold::hold_last_piece;
use crate::proxy::capture::task::{
    AnswerSender, AnswerStart, RewriteReceiver, RewriteReply, ShorterRequest, ShorterSender,
};
use crate::proxy::capture::tee::Tee;
use crate::proxy::failure::ProxyFailure;
use crate::proxy::failure::{count_failed_open, count_released_early};
use crate::proxy::headers::{self, forwarded_response_headers};
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::rewrite::{RefusedRequest, RewrittenRequest};
use crate::proxy::server_tools::{ClientReply, ToolLoopStart, client_channel};
use crate::proxy::stream_refusal::read_stream_refusal;
use crate::state::call_log::{CallRecorder, RequestId, SentBody};
use crate::state::request_outcomes::OutcomeRecorder;
use contexture_api::RequestDocument;

/// Longest time that an error waits until its request is taken back.
const MAX_ERROR_DELAY: Duration = Duration::from_secs(2);

/// Longest error that is read for what it says of a request's length, in bytes.
const MAX_REFUSAL_BYTES: usize = 64 << 10;

/// What the request handler holds of the capture task.
pub(super) struct CaptureHandle {
    /// Record of the exchange.
    pub(super) call: CallRecorder,
    pub(super) outcome: OutcomeRecorder,
    pub(super) answer_sender: AnswerSender,
    /// Of the answer, to be dropped before the client has all of it.
    pub(super) delivery: AnswerDelivery,
    /// Where the rewritten request comes from, and how long to wait for it; `None` without a policy.
    pub(super) rewriting: Option<(RewriteReceiver, Duration)>,
    /// Where a shorter request is asked for, and how long to wait for it; `None` without a policy.
    pub(super) shortening: Option<(ShorterSender, Duration)>,
    /// Format of the call.
    pub(super) format: Format,
    /// Whether the answer's head waits until the request is stored.
    pub(super) should_wait_for_store: bool,
    /// Whether the answer's last piece does, because other servers use the store.
    pub(super) holds_last_piece: bool,
}

impl CaptureHandle {
    /// Waits for the rewritten request; `None`: the request is sent as it came.
    ///
    /// # Errors
    /// It may not be sent at all.
    pub(super) async fn wait_for_rewrite(&mut self) -> RewriteReply {
        let Some((rewrite, timeout)) = self.rewriting.take() else {
            return Ok(None);
        };
        match tokio::time::timeout(timeout, rewrite).await {
            // A dropped sender means that the task failed; it has recorded why.
            Ok(reply) => reply.unwrap_or(Ok(None)),
            Err(_) => {
                let why = format!("it took longer than {} ms", timeout.as_millis());
                count_failed_open(&self.outcome, &ProxyFailure::new("timeout", why));
                Ok(None)
            }
        }
    }

    /// Returns a shorter request in the place of one that was refused as too long; `None` if there is none. The first time
    /// only: a request is not shortened twice.
    pub(super) async fn request_shorter(
        &mut self,
        refused: RefusedRequest,
    ) -> Option<Box<RewrittenRequest>> {
        let (sender, timeout) = self.shortening.take()?;
        let (reply, shorter) = oneshot::channel();
        sender.send(ShorterRequest { refused, reply }).ok()?;
        match tokio::time::timeout(timeout, shorter).await {
            // A dropped sender means that the request was not stored; why is recorded.
            Ok(shorter) => shorter.ok()?,
            Err(_) => {
                let why = format!("it took longer than {} ms", timeout.as_millis());
                count_failed_open(&self.outcome, &ProxyFailure::new("timeout", why));
                None
            }
        }
    }

    /// Reads what the provider says of the length of a request that it rejected; `None` if it was not rejected, or for another
    /// reason. The answer stays as it came.
    pub(super) async fn read_refusal(&self, answer: &mut PassthroughResponse) -> Option<TooLong> {
        if answer.status.is_success() {
            return read_stream_refusal(self.format, answer).await;
        }
        let bytes = answer.body.peek(MAX_REFUSAL_BYTES).await;
        let text = decompress_to_end(&answer.headers, bytes, MAX_REFUSAL_BYTES).await;
        let text = text.ok()?;
        let text = String::from_utf8_lossy(&text);
        self.format.spec().too_long(answer.status.as_u16(), &text)
    }

    /// Passes the answer on as it comes, with a copy of its bytes for the capture task.
    pub(super) async fn respond_with_capture(
        self,
        answer: PassthroughResponse,
        sent: Option<Box<RewrittenRequest>>,
    ) -> Response {
        let length = headers::content_length(&answer.headers);
        let id = self.call.id();
        let what = match &sent {
            Some(_) => SentBody::Rewritten,
            None => SentBody::Own,
        };
        self.call.set_answer_head(answer.status, what);
        let (tee, captured) = Tee::body_with_capture(answer.body, length, self.delivery, self.call);
        let start = AnswerStart::Passthrough {
            status: answer.status,
            headers: answer.headers.clone(),
            captured,
            sent,
        };
        // If the capture task has failed, it has recorded why; the client gets its answer all the same.
        let _ = self.answer_sender.send(start);
        if !answer.status.is_success() {
            wait_for_withdrawal(&self.outcome).await;
        }
        // The body is not read here: the client's reading drives the provider's stream.
        let body = match self.holds_last_piece && answer.status.is_success() {
            true => Body::from_stream(hold_last_piece(tee, length, self.outcome.clone())),
            false => Body::from_stream(tee),
        };
        let mut response = build_response(answer.status, &answer.headers, body);
        let known = outcome_for_headers(&self.outcome, self.should_wait_for_store).await;
        add_response_headers(response.headers_mut(), id, &known);
        response
    }

    /// Ends the capture of a request that the provider could not be asked.
    pub(super) async fn end_without_answer(self) {
        drop(self.answer_sender);
        wait_for_withdrawal(&self.outcome).await;
    }

    /// Lets the capture task answer the client, because calls of server tools must be kept from the client.
    pub(super) async fn respond_with_tool_loop(
        self,
        answer: PassthroughResponse,
        sent: Box<RewrittenRequest>,
        host: Upstream,
        request: PassthroughRequest,
    ) -> Result<Response, ProxyRefusal> {
        let id = self.call.id();
        self.call
            .set_answer_head(answer.status, SentBody::Rewritten);
        // Only the capture task knows when the answer ends.
        drop(self.call);
        let (client, reply) = client_channel(self.delivery);
        let exchange = ToolLoopStart {
            response: answer,
            upstream: host,
            request,
            client,
        };
        let start = AnswerStart::ToolLoop {
            exchange: Box::new(exchange),
            sent,
        };
        // If the task is gone, the reply's sender is dropped with it, and the wait below ends.
        let _ = self.answer_sender.send(start);
        let ClientReply {
            status,
            headers,
            body,
        } = reply.await.map_err(|_| lost_answer())??;
        let mut response = Response::new(body);
        *response.status_mut() = status;
        *response.headers_mut() = headers;
        let known = outcome_for_headers(&self.outcome, self.should_wait_for_store).await;
        add_response_headers(response.headers_mut(), id, &known);
        Ok(response)
    }
}

/// Waits until a request without an answer is taken back: the client's next one must find its branch as it was before.
async fn wait_for_withdrawal(outcome: &OutcomeRecorder) {
    let withdrawn = tokio::time::timeout(MAX_ERROR_DELAY, outcome.wait_until_done());
    if withdrawn.await.is_err() {
        count_released_early(MAX_ERROR_DELAY);
    }
}

/// Returns what is known of a request when its response headers are sent. Waits until it is stored if the client asked
/// for that.
async fn outcome_for_headers(outcome: &OutcomeRecorder, wait: bool) -> RequestDocument {
    match wait {
        true => outcome.wait_until_stored().await,
        false => outcome.current_outcome(),
    }
}

fn lost_answer() -> ProxyRefusal {
    let message = "the answer was lost on its way: what the server's log says of it is why";
    ProxyRefusal::new(StatusCode::BAD_GATEWAY, "fault", message)
}

pub(super) fn build_response(status: StatusCode, headers: &HeaderMap, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = status;
    *response.headers_mut() = forwarded_response_headers(headers);
    response
}

/// Adds the `x-contexture-` headers of what is known by now.
fn add_response_headers(headers: &mut HeaderMap, id: RequestId, known: &RequestDocument) {
    let members = [
        ("x-contexture-request", Some(id.to_string())),
        ("x-contexture-conversation", known.conversation.clone()),
        ("x-contexture-node", known.node.clone()),
        ("x-contexture-match", known.matched.clone()),
        ("x-contexture-policy", known.policy.clone()),
        (
            "x-contexture-tokens-saved",
            known.tokens_saved.map(|saved| saved.to_string()),
        ),
        ("x-contexture-cache", known.cache_prediction()),
        ("x-contexture-failed", known.failed.clone()),
    ];
    for (name, value) in members {
        // A value that is not a legal header value is left out; the answer does not fail because of it.
        let value = value.and_then(|value| HeaderValue::from_str(&value).ok());
        if let Some(value) = value {
            headers.insert(HeaderName::from_static(name), value);
        }
    }
}
