//! An answer's body on its way to the client, and to whoever listens beside it.
//!
//! The client's way is never held up: pieces wait for the listener in memory, and if they are too many it is told that it
//! lost the rest.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use contexture::models_http::{BodyStream, PassthroughBody, UpstreamError};
use futures_util::{Stream, StreamExt as _};
use tokio::sync::mpsc;

/// How many bytes may wait for the listener.
const MAX_PENDING_BYTES: usize = 8 << 20;

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BodyEnd {
    /// At its end.
    Whole,
    /// Before: the provider broke off, or the client left.
    Cut,
    /// The listener was too slow.
    Lost,
}

/// The client's side.
pub(crate) struct Tee {
    body: PassthroughBody,
    capture: Option<BodyCapture>,
}

struct BodyCapture {
    pieces: mpsc::UnboundedSender<Bytes>,
    pending_bytes: Arc<AtomicUsize>,
    ended: Arc<OnceLock<BodyEnd>>,
    /// What is still to come, where the answer's head said so: then nobody asks for more than that.
    remaining_bytes: Option<u64>,
}

/// The listener's side.
pub(crate) struct CapturedBody {
    pieces: mpsc::UnboundedReceiver<Bytes>,
    pending_bytes: Arc<AtomicUsize>,
    ended: Arc<OnceLock<BodyEnd>>,
}

impl Tee {
    /// A body that nobody listens to.
    pub(crate) const fn body_without_capture(body: PassthroughBody) -> Self {
        Self {
            body,
            capture: None,
        }
    }

    /// A body of so many bytes, if that is known, and what is heard of it.
    pub(crate) fn body_with_capture(
        body: PassthroughBody,
        length: Option<u64>,
    ) -> (Self, CapturedBody) {
        let (sender, pieces) = mpsc::unbounded_channel();
        let heard = CapturedBody {
            pieces,
            pending_bytes: Arc::default(),
            ended: Arc::default(),
        };
        let listener = BodyCapture {
            pieces: sender,
            pending_bytes: heard.pending_bytes.clone(),
            ended: heard.ended.clone(),
            remaining_bytes: length,
        };
        let tee = Self {
            body,
            capture: Some(listener),
        };
        (tee, heard)
    }

    fn capture_bytes(&mut self, bytes: &Bytes) {
        let Some(listener) = &mut self.capture else {
            return;
        };
        let before = listener
            .pending_bytes
            .fetch_add(bytes.len(), Ordering::Relaxed);
        if before.saturating_add(bytes.len()) > MAX_PENDING_BYTES {
            return self.end_capture(BodyEnd::Lost);
        }
        // A copy: what the connection's buffer holds beside it is given back at once. A listener that has gone
        // misses nothing.
        let _ = listener.pieces.send(Bytes::copy_from_slice(bytes));
        listener.remaining_bytes = listener
            .remaining_bytes
            .map(|left| left.saturating_sub(bytes.len() as u64));
        if listener.remaining_bytes == Some(0) {
            self.end_capture(BodyEnd::Whole);
        }
    }

    fn end_capture(&mut self, how: BodyEnd) {
        if let Some(listener) = self.capture.take() {
            // The first word counts.
            let _ = listener.ended.set(how);
        }
    }
}

impl Stream for Tee {
    type Item = Result<Bytes, UpstreamError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let piece = std::task::ready!(Pin::new(&mut self.body).poll_next(context));
        match &piece {
            Some(Ok(bytes)) => self.capture_bytes(bytes),
            Some(Err(_)) => self.end_capture(BodyEnd::Cut),
            None => self.end_capture(BodyEnd::Whole),
        }
        Poll::Ready(piece)
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.end_capture(BodyEnd::Cut);
    }
}

impl CapturedBody {
    /// What comes, and how it ended, which is said before the last piece is followed by nothing.
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
