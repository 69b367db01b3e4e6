//! The tee: an answer's body on its way to the client, with a copy for its capture.
//!
//! The client is never delayed: pieces wait for the capture in memory, and if they are too many it loses the rest and knows
//! it.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use contexture::engine::AnswerDelivery;
use contexture::models_http::{BodyStream, PassthroughBody, UpstreamError};
use futures_util::{Stream, StreamExt as _};
use tokio::sync::mpsc;

use crate::proxy::forwarded_usage::UsageReader;
use crate::state::call_log::CallRecorder;

/// Bytes that may wait for the capture.
const MAX_PENDING_BYTES: usize = 8 << 20;

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// At its end.
    Whole,
    /// Before its end: the client left.
    Cut,
    /// Before its end: the provider broke off.
    Broken,
    /// The capture was too slow.
    Lost,
}

/// The body as the client reads it.
pub(crate) struct Tee {
    body: PassthroughBody,
    capture: Option<BodyCapture>,
    /// What an answer that is not captured reports, if that is read.
    usage: Option<UsageReader>,
    /// Record of the exchange, until the body has ended.
    call: Option<CallRecorder>,
    /// Bytes still to come, where the head has the length: the client stops reading there, and no end is ever polled.
    remaining_bytes: Option<u64>,
}

struct BodyCapture {
    pieces: mpsc::UnboundedSender<Bytes>,
    pending_bytes: Arc<AtomicUsize>,
    ended: Arc<OnceLock<BodyEnd>>,
    /// Dropped with the capture, before the client gets the last piece.
    _delivery: AnswerDelivery,
}

/// The copy of a body as its capture reads it.
pub(crate) struct CapturedBody {
    pieces: mpsc::UnboundedReceiver<Bytes>,
    pending_bytes: Arc<AtomicUsize>,
    ended: Arc<OnceLock<BodyEnd>>,
}

impl Tee {
    /// Wraps a body of this length, if that is known, that is not captured, but perhaps read for its usage.
    pub(crate) const fn body_without_capture(
        body: PassthroughBody,
        length: Option<u64>,
        call: CallRecorder,
        usage: Option<UsageReader>,
    ) -> Self {
        Self {
            body,
            capture: None,
            usage,
            call: Some(call),
            remaining_bytes: length,
        }
    }

    /// Wraps a body of this length, if that is known, and returns its copy. Its delivery ends with it.
    pub(crate) fn body_with_capture(
        body: PassthroughBody,
        length: Option<u64>,
        delivery: AnswerDelivery,
        call: CallRecorder,
    ) -> (Self, CapturedBody) {
        let (sender, pieces) = mpsc::unbounded_channel();
        let captured = CapturedBody {
            pieces,
            pending_bytes: Arc::default(),
            ended: Arc::default(),
        };
        let capture = BodyCapture {
            pieces: sender,
            pending_bytes: captured.pending_bytes.clone(),
            ended: captured.ended.clone(),
            _delivery: delivery,
        };
        let tee = Self {
            body,
            capture: Some(capture),
            usage: None,
            call: Some(call),
            remaining_bytes: length,
        };
        (tee, captured)
    }

    fn capture_bytes(&mut self, bytes: &Bytes) {
        let Some(capture) = &mut self.capture else {
            return;
        };
        // `Relaxed` is enough: the counter is only a bound, and the channel orders the pieces.
        let before = capture
            .pending_bytes
            .fetch_add(bytes.len(), Ordering::Relaxed);
        if before.saturating_add(bytes.len()) > MAX_PENDING_BYTES {
            return self.end_capture(BodyEnd::Lost);
        }
        // Copied, as a slice would keep the connection's whole buffer alive while it waits. A failed send means that the
        // capture has ended.
        let _ = capture.pieces.send(Bytes::copy_from_slice(bytes));
    }

    fn pass_bytes(&mut self, bytes: &Bytes) {
        if let Some(call) = &self.call {
            call.set_first_byte();
        }
        self.capture_bytes(bytes);
        if let Some(usage) = &mut self.usage {
            usage.push(bytes);
        }
        let remaining = self.remaining_bytes;
        self.remaining_bytes = remaining.map(|left| left.saturating_sub(bytes.len() as u64));
        if self.remaining_bytes == Some(0) {
            self.end_body(BodyEnd::Whole);
        }
    }

    fn end_body(&mut self, end: BodyEnd) {
        // The first end counts: dropping the tee after a complete body must not turn it into a cut.
        let usage = self.usage.take();
        match (self.call.take(), usage) {
            (Some(call), _) if end != BodyEnd::Whole => call.set_cut_off(),
            (Some(call), Some(usage)) => usage.finish(call),
            _ => {}
        }
        self.end_capture(end);
    }

    fn end_capture(&mut self, end: BodyEnd) {
        if let Some(capture) = self.capture.take() {
            let _ = capture.ended.set(end);
        }
    }
}

impl Stream for Tee {
    type Item = Result<Bytes, UpstreamError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = std::task::ready!(Pin::new(&mut self.body).poll_next(context));
        match &piece {
            Some(Ok(bytes)) => self.pass_bytes(bytes),
            Some(Err(_)) => self.end_body(BodyEnd::Broken),
            None => self.end_body(BodyEnd::Whole),
        }
        Poll::Ready(piece)
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.end_body(BodyEnd::Cut);
    }
}

impl CapturedBody {
    /// Returns the pieces, and how they ended: set before the stream of pieces ends.
    pub(crate) fn into_pieces(self) -> (BodyStream, Arc<OnceLock<BodyEnd>>) {
        let Self {
            pieces,
            pending_bytes: waiting,
            ended,
        } = self;
        let pieces = futures_util::stream::unfold(pieces, move |mut pieces| {
            let waiting = waiting.clone();
            async move {
                let piece: Bytes = pieces.recv().await?;
                waiting.fetch_sub(piece.len(), Ordering::Relaxed);
                Some((Ok(piece), pieces))
            }
        });
        (pieces.boxed(), ended)
    }
}
