//! Sending: which requests go to the provider for one answer, and in which order.
//!
//! At most three: the rewritten one, or the client's own; a shorter one if that was refused as too long; and the client's own
//! last, if it has not been sent. All of it is over before the client has seen a byte.
//!
//! Not here: how a request is rewritten or shortened (`rewrite`), and how the answer goes on (`respond`).

use axum::body::Body;
use axum::http::StatusCode;
use axum::http::header::CONTENT_ENCODING;
use axum::response::Response;
use bytes::Bytes;
use contexture::models_http::{PassthroughRequest, PassthroughResponse, Upstream, UpstreamError};

use crate::proxy::capture::tee::Tee;
use crate::proxy::failure::{ProxyFailure, count_failed_open};
use crate::proxy::forwarded_usage::UsageReader;
use crate::proxy::headers;
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::respond::{CaptureHandle, build_response};
use crate::proxy::rewrite::{RefusedRequest, RewrittenRequest};
use crate::state::call_log::{CallRecorder, SentBody};

/// Statuses with which a provider rejects a request that it cannot read or that is too long. If it was a rewritten
/// request, the client's own is sent instead.
const RETRY_ORIGINAL_ON: [StatusCode; 3] = [
    StatusCode::BAD_REQUEST,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNPROCESSABLE_ENTITY,
];

/// Sends a request and passes the answer back; the answer is captured if the request is.
pub(super) async fn send_and_respond(
    host: &Upstream,
    request: PassthroughRequest,
    capture: Option<CaptureHandle>,
    call: CallRecorder,
) -> Result<Response, ProxyRefusal> {
    let Some(mut capture) = capture else {
        call.count_attempt();
        let answer = host.send(request).await?;
        call.set_answer_head(answer.status, SentBody::Own);
        let length = headers::content_length(&answer.headers);
        let usage = UsageReader::for_answer(&answer.headers, &call);
        let tee = Tee::body_without_capture(answer.body, length, call, usage);
        return Ok(build_response(
            answer.status,
            &answer.headers,
            Body::from_stream(tee),
        ));
    };
    // The capture has clones of its own: the last of them stores the row.
    drop(call);
    let rewritten = match capture.wait_for_rewrite().await {
        Ok(rewritten) => rewritten,
        Err(refusal) => {
            capture.end_without_answer().await;
            return Err(refusal);
        }
    };
    if rewritten.is_none() && capture.shortening.is_none() {
        capture.call.count_attempt();
        // Moved, not copied: its memory is free again as soon as it is sent.
        return match host.send(request).await {
            Ok(answer) => Ok(capture.respond_with_capture(answer, None).await),
            Err(error) => {
                capture.end_without_answer().await;
                Err(error.into())
            }
        };
    }
    let (answer, sent) = match send_within_window(host, &request, rewritten, &mut capture).await {
        Ok(sent) => sent,
        Err(error) => {
            capture.end_without_answer().await;
            return Err(error.into());
        }
    };
    // No shorter request is asked for any more: the capture task goes on.
    capture.shortening = None;
    match sent {
        // The request offers server tools, whose calls the client must not see: the capture task answers the client.
        Some(sent) if sent.offers_server_tools() && answer.status.is_success() => {
            // Each round of the loop sets a body of its own, so the client's need not stay in memory until it ends.
            let request = replace_body(&request, Bytes::new());
            let host = host.clone();
            capture
                .respond_with_tool_loop(answer, sent, host, request)
                .await
        }
        Some(mut sent) => {
            sent.plan = None;
            Ok(capture.respond_with_capture(answer, Some(sent)).await)
        }
        None => Ok(capture.respond_with_capture(answer, None).await),
    }
}

/// Sends the rewritten request, or the client's own without one. If the provider refuses it as too long, a shorter one is sent
/// once. If it rejects what was sent in the client's place, the client's own is sent last.
async fn send_within_window(
    host: &Upstream,
    request: &PassthroughRequest,
    rewritten: Option<Box<RewrittenRequest>>,
    capture: &mut CaptureHandle,
) -> Result<(PassthroughResponse, Option<Box<RewrittenRequest>>), UpstreamError> {
    let is_own = rewritten.is_none();
    let mut answer = send_one(host, request, rewritten.as_deref(), capture).await?;
    // Also of an answer with status 200: a provider may begin a stream before it refuses.
    let refused = capture.read_refusal(&mut answer).await;
    // Other errors, such as an overload or a wrong key, would hit any request just the same.
    if refused.is_none() && !RETRY_ORIGINAL_ON.contains(&answer.status) {
        return Ok(note_sent(answer, rewritten, capture));
    }
    if let Some(refused) = refused {
        let refused = RefusedRequest {
            refused,
            sent: rewritten,
        };
        if let Some(shorter) = capture.request_shorter(refused).await {
            let mut second = send_one(host, request, Some(&shorter), capture).await?;
            let is_taken = !RETRY_ORIGINAL_ON.contains(&second.status)
                && capture.read_refusal(&mut second).await.is_none();
            let then = if is_taken { "answered" } else { "refused" };
            metrics::counter!("contexture_proxy_shortened_total", "then" => then).increment(1);
            if is_taken {
                return Ok(note_sent(second, Some(shorter), capture));
            }
        }
    }
    if is_own {
        // Its refusal is what the client is told: nothing else is left to send.
        return Ok((answer, None));
    }
    // Never worse than without the proxy: a request that the provider would have accepted is sent after all.
    let why = match answer.status.is_success() {
        true => "the provider refused it as too long".to_owned(),
        false => format!("the provider answered {}", answer.status),
    };
    count_failed_open(&capture.outcome, &ProxyFailure::new("refused", why));
    Ok((send_one(host, request, None, capture).await?, None))
}

/// Sends one request for an answer: a rewritten one, or the client's own.
async fn send_one(
    host: &Upstream,
    request: &PassthroughRequest,
    rewritten: Option<&RewrittenRequest>,
    capture: &CaptureHandle,
) -> Result<PassthroughResponse, UpstreamError> {
    // Before it is sent: a request that gets no answer was made of the same.
    capture
        .call
        .set_band(rewritten.map(RewrittenRequest::band).as_ref());
    capture.call.count_attempt();
    let request = match rewritten {
        Some(rewritten) => replace_body(request, rewritten.body.clone()),
        None => request.clone(),
    };
    host.send(request).await
}

/// Notes which request got the answer.
fn note_sent(
    answer: PassthroughResponse,
    sent: Option<Box<RewrittenRequest>>,
    capture: &CaptureHandle,
) -> (PassthroughResponse, Option<Box<RewrittenRequest>>) {
    if let Some(rewritten) = &sent {
        capture.outcome.update_outcome(|document| {
            document.tokens_saved = Some(rewritten.saved);
            document.predicted = Some(rewritten.predicted.into());
        });
    }
    (answer, sent)
}

/// Returns the same request with another body, which is not compressed.
fn replace_body(request: &PassthroughRequest, body: Bytes) -> PassthroughRequest {
    let mut headers = request.headers.clone();
    headers.remove(CONTENT_ENCODING);
    PassthroughRequest {
        method: request.method.clone(),
        path: request.path.clone(),
        headers,
        body,
    }
}
