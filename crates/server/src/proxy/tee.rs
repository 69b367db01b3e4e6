//! An answer's body on its way to the client, and to whoever listens beside it.
//!
//! The client's way is never held up: pieces wait for the listener in memory, and if they are too many it is told that it
//! lost the rest.

use std::pin::Pin;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::task::{Context, Poll};

use bytes::Bytes;
use contexture::client::{PassedBody, Pieces, UpstreamError};
use futures_util::{Stream, StreamExt as _};
use tokio::sync::mpsc;

/// How many bytes may wait for the listener.
const BEHIND: usize = 8 << 20;

/// How a body ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ended {
    /// At its end.
    Whole,
    /// Before: the provider broke off, or the client left.
    Cut,
    /// The listener was too slow.
    Lost,
}

/// The client's side.
pub(crate) struct Tee {
    body: PassedBody,
    listener: Option<Listener>,
}

struct Listener {
    pieces: mpsc::UnboundedSender<Bytes>,
    waiting: Arc<AtomicUsize>,
    ended: Arc<OnceLock<Ended>>,
    /// What is still to come, where the answer's head said so: then nobody asks for more than that.
    left: Option<u64>,
}

/// The listener's side.
pub(crate) struct Heard {
    pieces: mpsc::UnboundedReceiver<Bytes>,
    waiting: Arc<AtomicUsize>,
    ended: Arc<OnceLock<Ended>>,
}

impl Tee {
    /// A body that nobody listens to.
    pub(crate) const fn unheard(body: PassedBody) -> Self {
        Self {
            body,
            listener: None,
        }
    }

    /// A body of so many bytes, if that is known, and what is heard of it.
    pub(crate) fn heard(body: PassedBody, length: Option<u64>) -> (Self, Heard) {
        let (sender, pieces) = mpsc::unbounded_channel();
        let heard = Heard {
            pieces,
            waiting: Arc::default(),
            ended: Arc::default(),
        };
        let listener = Listener {
            pieces: sender,
            waiting: heard.waiting.clone(),
            ended: heard.ended.clone(),
            left: length,
        };
        let tee = Self {
            body,
            listener: Some(listener),
        };
        (tee, heard)
    }

    fn say(&mut self, bytes: &Bytes) {
        let Some(listener) = &mut self.listener else {
            return;
        };
        let before = listener.waiting.fetch_add(bytes.len(), Ordering::Relaxed);
        if before.saturating_add(bytes.len()) > BEHIND {
            return self.end(Ended::Lost);
        }
        // A copy: what the connection's buffer holds beside it is given back at once. A listener that has gone
        // misses nothing.
        let _ = listener.pieces.send(Bytes::copy_from_slice(bytes));
        listener.left = listener
            .left
            .map(|left| left.saturating_sub(bytes.len() as u64));
        if listener.left == Some(0) {
            self.end(Ended::Whole);
        }
    }

    fn end(&mut self, how: Ended) {
        if let Some(listener) = self.listener.take() {
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
            Some(Ok(bytes)) => self.say(bytes),
            Some(Err(_)) => self.end(Ended::Cut),
            None => self.end(Ended::Whole),
        }
        Poll::Ready(piece)
    }
}

impl Drop for Tee {
    fn drop(&mut self) {
        self.end(Ended::Cut);
    }
}

impl Heard {
    /// What comes, and how it ended, which is said before the last piece is followed by nothing.
    pub(crate) fn split(self) -> (Pieces, Arc<OnceLock<Ended>>) {
        let Self {
            pieces,
            waiting,
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
