//! Tails: following data while it is written, and writing it so that it can be followed.
//!
//! A *tail* reads pages from the store and waits for more: [`EventTail`] for the events of a
//! conversation, [`StreamTail`] for the chunks of a running response. [`ChunkWriter`] is the other
//! end: it batches small chunks, retries failed writes, and notices a cancellation.
//!
//! What always holds:
//!
//! * Nothing is buffered for readers. A slow one blocks nobody, and continues at its cursor.
//! * A reader is woken by writers that use the same store object ([`StreamSignal`]) and polls for
//!   others; the interval bounds the delay.
//! * A dropped call loses nothing: calling again continues where it was.
//!
//! What is not here: waking ([`wake`](crate::wake)), and what a stream is
//! ([`Streams`](crate::contract::Streams)).

use std::time::Duration;

use crate::contract::{Error, Store, Streams};
use crate::wake::StreamSignal;

mod chunk_writer;
mod event_tail;
mod stream_tail;

pub use chunk_writer::{ChunkBatching, ChunkWriter};
pub use event_tail::{EventTail, FollowOptions};
pub use stream_tail::{StreamTail, TailEvent, TailOptions};

/// Returns the store's streams; [`Error::Invalid`] if it keeps none.
pub(super) fn require_streams(store: &dyn Store) -> Result<&dyn Streams, Error> {
    let none = || Error::invalid_argument("store", "it keeps no streams");
    store.streams().ok_or_else(none)
}

/// Waits for a change, or until the next poll.
pub(super) async fn wait_or_poll(signal: &mut StreamSignal, poll: Option<Duration>) {
    match poll {
        None => signal.wait_for_change().await,
        // A change and a timeout both mean: read again.
        Some(poll) => drop(tokio::time::timeout(poll, signal.wait_for_change()).await),
    }
}
