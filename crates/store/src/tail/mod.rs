//! Tails: reading what is written while it is written, and writing so that it can be followed.
//!
//! A *tail* reads pages from the store and waits for more: [`EventTail`] for the events of a
//! conversation, [`StreamTail`] for the chunks of a running answer. [`ChunkWriter`] is the other
//! end: it batches small chunks, repeats writes that failed, and learns of a cancellation.
//!
//! What always holds:
//!
//! * Nothing is buffered for readers. A slow one costs nobody else anything, and goes on at its
//!   cursor.
//! * A reader is woken by writers of its own process ([`StreamSignal`]) and polls for those of
//!   others; the interval bounds how late it learns of them.
//! * A call that is dropped loses nothing: the same call again goes on where it was.
//!
//! What is not here: who is woken ([`wake`](crate::wake)), and what a stream is
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

/// The store's streams.
pub(super) fn require_streams(store: &dyn Store) -> Result<&dyn Streams, Error> {
    let none = || Error::invalid_argument("store", "it keeps no streams");
    store.streams().ok_or_else(none)
}

/// Waits for a change, or until it is time to look again.
pub(super) async fn wait_or_poll(signal: &mut StreamSignal, poll: Option<Duration>) {
    match poll {
        None => signal.wait_for_change().await,
        // Both outcomes mean: look.
        Some(poll) => drop(tokio::time::timeout(poll, signal.wait_for_change()).await),
    }
}
