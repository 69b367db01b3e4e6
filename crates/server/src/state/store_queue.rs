//! How much may wait to be stored, beside the requests' way.
//!
//! Requests can come faster than they are stored. What is behind takes memory, so there is room for so much and no more:
//! who finds none waits a while, which slows clients down to what can be stored, and is then passed on without being kept.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// How long a request waits for room.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Room is given in pieces of so many bytes.
const UNIT_BYTES: usize = 1 << 10;
/// A body is held as it came, unpacked, read, and as what is new of it.
const COPIES_PER_BODY: usize = 4;
/// What each request takes beside its body.
const REQUEST_OVERHEAD: usize = 32 << 10;

/// The room there is.
#[derive(Debug)]
pub(crate) struct StoreQueue {
    total_units: usize,
    free_units: Arc<Semaphore>,
}

/// The room of one request, given back when it is dropped.
#[derive(Debug)]
pub(crate) struct QueuePermit {
    permits: OwnedSemaphorePermit,
    /// All the room there is.
    total_units: usize,
}

impl StoreQueue {
    /// Room for so many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        let pieces = (bytes / UNIT_BYTES).clamp(1, u32::MAX as usize);
        Self {
            total_units: pieces,
            free_units: Arc::new(Semaphore::new(pieces)),
        }
    }

    /// Room for a request with a body of so many bytes; `None`: too much is behind, and stayed so. One that is larger
    /// than all the room there is gets all of it.
    pub(crate) async fn acquire_permit(&self, body: usize) -> Option<QueuePermit> {
        let pieces = units_for(body, self.total_units);
        let free = Arc::clone(&self.free_units).acquire_many_owned(pieces);
        let held = tokio::time::timeout(MAX_WAIT, free).await.ok()?.ok()?;
        Some(QueuePermit {
            permits: held,
            total_units: self.total_units,
        })
    }
}

impl QueuePermit {
    /// Makes it that of a body of so many bytes, once it is known to be longer; `false`: there is not so much. It is not
    /// waited for: those who hold some would wait for each other.
    pub(crate) fn resize(&mut self, body: usize) -> bool {
        let all = units_for(body, self.total_units) as usize;
        let more = all.saturating_sub(self.permits.num_permits());
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        match Arc::clone(self.permits.semaphore()).try_acquire_many_owned(more) {
            Ok(held) => self.permits.merge(held),
            Err(_) => return more == 0,
        }
        true
    }
}

/// What a request with a body of so many bytes takes, of so much at most.
fn units_for(body: usize, most: usize) -> u32 {
    let bytes = body
        .saturating_mul(COPIES_PER_BODY)
        .saturating_add(REQUEST_OVERHEAD);
    let pieces = bytes.div_ceil(UNIT_BYTES).min(most);
    u32::try_from(pieces).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn there_is_room_for_so_much_and_then_again() {
        let behind = StoreQueue::new(100 << 10);
        let first = behind.acquire_permit(10 << 10).await;
        assert!(first.is_some());
        assert!(behind.acquire_permit(10 << 10).await.is_none());
        drop(first);
        let (mut small, other) = (
            behind.acquire_permit(0).await.unwrap(),
            behind.acquire_permit(0).await,
        );
        assert!(small.resize(9 << 10) && !small.resize(10 << 10));
        drop(other);
        assert!(small.resize(1 << 30));
        assert!(behind.acquire_permit(0).await.is_none());
        drop(small);
        let large = behind.acquire_permit(1 << 30).await;
        assert!(large.is_some());
        assert!(behind.acquire_permit(0).await.is_none());
    }
}
