//! The store queue: bounds the bytes of requests that wait to be stored.
//!
//! Requests can come faster than they are stored, and each takes memory until it is. A request that finds no room waits
//! for up to two seconds, which slows clients down to the speed of the store (backpressure); then it is forwarded without
//! being stored.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};

/// Longest wait of a request for room.
const MAX_WAIT: Duration = Duration::from_secs(2);
/// Bytes per semaphore permit: a semaphore counts in `u32`, too few for single bytes.
const UNIT_BYTES: usize = 1 << 10;
/// Copies of a body in memory: as sent, decompressed, parsed, and as new nodes.
const COPIES_PER_BODY: usize = 4;
/// Bytes that a request takes beside its body.
const REQUEST_OVERHEAD: usize = 32 << 10;

/// The bounded room for requests that wait to be stored.
#[derive(Debug)]
pub(crate) struct StoreQueue {
    total_units: usize,
    free_units: Arc<Semaphore>,
}

/// The room of one request, returned when it is dropped.
#[derive(Debug)]
pub(crate) struct QueuePermit {
    permits: OwnedSemaphorePermit,
    /// Permits of the whole queue.
    total_units: usize,
}

impl StoreQueue {
    /// Creates a queue for this many bytes.
    pub(crate) fn new(bytes: usize) -> Self {
        // At least one: a request takes no more than the whole queue, and of an empty one that is
        // nothing, so nothing would be bounded.
        let units = (bytes / UNIT_BYTES).clamp(1, u32::MAX as usize);
        Self {
            total_units: units,
            free_units: Arc::new(Semaphore::new(units)),
        }
    }

    /// Waits for room for a request whose body has this many bytes; `None` if the queue stayed full. A request larger than
    /// the queue takes all of it.
    pub(crate) async fn acquire_permit(&self, body: usize) -> Option<QueuePermit> {
        let units = units_for(body, self.total_units);
        // The semaphore serves in order of arrival, so small requests cannot overtake a large one
        // forever.
        let free = Arc::clone(&self.free_units).acquire_many_owned(units);
        let permits = tokio::time::timeout(MAX_WAIT, free).await.ok()?.ok()?;
        Some(QueuePermit {
            permits,
            total_units: self.total_units,
        })
    }
}

impl QueuePermit {
    /// Grows the permit to a body of this many bytes, once it is known to be longer. Returns `false` if there is no room.
    pub(crate) fn resize(&mut self, body: usize) -> bool {
        let all = units_for(body, self.total_units) as usize;
        let more = all.saturating_sub(self.permits.num_permits());
        let more = u32::try_from(more).unwrap_or(u32::MAX);
        // Never waits: requests that hold some room each would wait for one another forever.
        match Arc::clone(self.permits.semaphore()).try_acquire_many_owned(more) {
            Ok(permits) => self.permits.merge(permits),
            Err(_) => return more == 0,
        }
        true
    }
}

/// Returns the permits of a request whose body has this many bytes, at most `most`.
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
