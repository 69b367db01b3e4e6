//! The hold: on a store that other servers use, the client gets the last of an answer after its request is stored.
//!
//! So whichever server gets the client's next request finds that an answer to this one is about to be recorded. With a model
//! the request is stored long before; only an upstream that answers at once, or a slow store, makes a client wait.
//!
//! A body whose head tells its length is held at its last piece. Any other piece may be the last, so as long as the request is
//! not stored each is held until the next has come.

use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use contexture::models_http::UpstreamError;
use futures_util::stream::{self, Fuse};
use futures_util::{Stream, StreamExt as _};

use crate::proxy::capture::tee::Tee;
use crate::proxy::failure::count_hold_expired;
use crate::state::request_outcomes::OutcomeRecorder;

/// Longest time that a client waits for the rest of an answer that has come.
const MAX_HOLD: Duration = Duration::from_secs(2);

type Piece = Result<Bytes, UpstreamError>;

/// A body of which the last piece is held.
struct HeldBody {
    body: Fuse<Tee>,
    /// Bytes still to come, where the head has the length.
    remaining_bytes: Option<u64>,
    /// Ready when the request is stored or will not be, or when that takes too long.
    release: Pin<Box<dyn Future<Output = ()> + Send>>,
    is_released: bool,
    /// What came behind the piece that the client got last; `Some(None)`: the end.
    next: Option<Option<Piece>>,
}

/// Returns a body of this length, if that is known, whose last piece comes when its request is stored.
pub(crate) fn hold_last_piece(
    body: Tee,
    length: Option<u64>,
    outcome: OutcomeRecorder,
) -> impl Stream<Item = Piece> + Send {
    let held = HeldBody {
        body: body.fuse(),
        remaining_bytes: length,
        release: Box::pin(wait_for_release(outcome)),
        is_released: false,
        next: None,
    };
    stream::unfold(held, async |mut held| {
        Some((held.next_piece().await?, held))
    })
}

async fn wait_for_release(outcome: OutcomeRecorder) {
    let stored = tokio::time::timeout(MAX_HOLD, outcome.wait_until_stored());
    if stored.await.is_err() {
        count_hold_expired(MAX_HOLD);
    }
}

impl HeldBody {
    async fn next_piece(&mut self) -> Option<Piece> {
        let next = match self.next.take() {
            Some(next) => next,
            None => self.body.next().await,
        };
        let piece = match next {
            Some(Ok(piece)) if !self.is_released => piece,
            next => return next,
        };
        if let Some(remaining) = &mut self.remaining_bytes {
            *remaining = remaining.saturating_sub(piece.len() as u64);
            if *remaining == 0 {
                self.wait_until_released().await;
            }
            return Some(Ok(piece));
        }
        tokio::select! {
            biased;
            () = &mut self.release => self.is_released = true,
            next = self.body.next() => {
                if !matches!(next, Some(Ok(_))) {
                    self.wait_until_released().await;
                }
                self.next = Some(next);
            }
        }
        Some(Ok(piece))
    }

    async fn wait_until_released(&mut self) {
        if !self.is_released {
            self.release.as_mut().await;
            self.is_released = true;
        }
    }
}
