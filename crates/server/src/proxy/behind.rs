//! How much may wait to be stored, beside the requests' way.
//!
//! Requests can come faster than they are stored. What is behind takes memory, so there is room for so much and no more:
//! who finds none waits a while, which slows clients down to what can be stored, and is then passed on without being kept.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a request waits for room.
const PATIENCE: Duration = Duration::from_secs(2);
/// Room is given in pieces of so many bytes.
const PIECE: usize = 1 << 10;
/// A body is held as it came, unpacked, read, and as what is new of it.
const COPIES: usize = 4;
/// What each request takes beside its body.
const BESIDE: usize = 32 << 10;

/// The room there is.
#[derive(Debug)]
pub(crate) struct Behind {
    pieces: usize,
    free: Arc<Semaphore>,
}

/// The room of one request, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct Room {
    held: OwnedSemaphorePermit,
    /// All the room there is.
    most: usize,
}

impl Behind {
    /// Room for so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let pieces = (bytes / PIECE).clamp(1, u32::MAX as usize);
        Self {
            pieces,
            free: Arc::new(Semaphore::new(pieces)),
        }
    }

    /// Room for a request with a body of so many bytes; `None`: too much is behind, and stayed so. One that is larger
    /// than all the room there is gets all of it.
    pub(crate) async fn room(&self, body: usize) -> Option<Room> {
        let pieces = pieces(body, self.pieces);
        let free = Arc::clone(&self.free).acquire_many_owned(pieces);
        let held = tokio::time::timeout(PATIENCE, free).await.ok()?.ok()?;
        Some(Room {
            held,
            most: self.pieces,
        })
    }
}

impl Room {
    /// Makes it that of a body of so many bytes, once it is known to be longer; `false`: there is not so much. It is not
    /// waited for: those who hold some would wait for each other.
    pub(crate) fn grow(&mut self, body: usize) -> bool {
        let all = pieces(body, self.most) as usize;
        let more = all.saturating_sub(self.held.num_permits());
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        match Arc::clone(self.held.semaphore()).try_acquire_many_owned(more) {
            Ok(held) => self.held.merge(held),
            Err(_) => return more == 0,
        }
        true
    }
}

/// What a request with a body of so many bytes takes, of so much at most.
fn pieces(body: usize, most: usize) -> u32 {
    let bytes = body.saturating_mul(COPIES).saturating_add(BESIDE);
    let pieces = bytes.div_ceil(PIECE).min(most);
    u32::try_from(pieces).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_so_much_and_then_again() {
        let behind = Behind::new(100 << 10);
        let first = behind.room(10 << 10).await;
        assert!(first.is_some());
        assert!(behind.room(10 << 10).await.is_none());
        drop(first);
        let (mut small, other) = (behind.room(0).await.unwrap(), behind.room(0).await);
        assert!(small.grow(9 << 10) && !small.grow(10 << 10));
        drop(other);
        assert!(small.grow(1 << 30));
        assert!(behind.room(0).await.is_none());
        drop(small);
        let large = behind.room(1 << 30).await;
        assert!(large.is_some());
        assert!(behind.room(0).await.is_none());
    }
}
