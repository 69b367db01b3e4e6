//! Memory for bodies: bounds the bytes of all requests that the server reads, works on and stores.
//!
//! A lease grows with what a request takes: its body as it comes, unpacked, and parsed. A body holds its lease itself
//! ([`MemoryLease::attach_to_bytes`]), so the bytes count for as long as anybody has them. One owner can take three quarters;
//! the rest is there for others.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use contexture::Owner;
use thiserror::Error;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

/// Longest wait for memory. Longer than most requests take; then a client does better to come again.
pub(crate) const MAX_WAIT: Duration = Duration::from_secs(2);
/// Bytes per semaphore permit: a semaphore counts in `u32`, too few for single bytes.
const UNIT_BYTES: usize = 1 << 10;

/// The memory that requests share. Clones are the same.
#[derive(Clone, Debug)]
pub(crate) struct BodyMemory {
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    bytes: usize,
    free: Arc<Semaphore>,
    /// Units of each owner's share.
    share: usize,
    /// What each owner may still take. As many as there are owners with keys.
    owners: Mutex<BTreeMap<Owner, Arc<Semaphore>>>,
}

/// Why a request gets no memory.
#[derive(Clone, Copy, Debug, Error, PartialEq, Eq)]
pub(crate) enum MemoryError {
    /// It would never fit.
    #[error(
        "it takes {needed} bytes of memory, more than the {most} of `server.limits.memory_bytes` that an owner may have"
    )]
    NeverFits {
        /// Bytes that the request takes.
        needed: usize,
        /// Bytes that an owner may take.
        most: usize,
    },
    /// The owner has all of its share.
    #[error(
        "requests of this owner hold the {most} bytes of memory that one may have (three quarters of `server.limits.memory_bytes`)"
    )]
    OwnerFull {
        /// Bytes that an owner may take.
        most: usize,
    },
    /// All of it is taken.
    #[error("requests hold the {most} bytes of memory of `server.limits.memory_bytes`")]
    Full {
        /// Bytes that there are.
        most: usize,
    },
}

impl BodyMemory {
    pub(crate) fn new(bytes: usize) -> Self {
        let units = (bytes / UNIT_BYTES).clamp(1, u32::MAX as usize);
        Self {
            inner: Arc::new(Inner {
                bytes,
                free: Arc::new(Semaphore::new(units)),
                share: (units - units / 4).max(1),
                owners: Mutex::default(),
            }),
        }
    }

    /// Returns a lease that holds nothing yet.
    pub(crate) fn lease(&self, owner: &Owner) -> MemoryLease {
        let mut owners = self
            .inner
            .owners
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        let share = owners
            .entry(owner.clone())
            .or_insert_with(|| Arc::new(Semaphore::new(self.inner.share)));
        MemoryLease {
            memory: self.clone(),
            share: Arc::clone(share),
            held: None,
        }
    }

    /// Returns how many bytes are taken.
    fn taken_bytes(&self) -> usize {
        let free = self.inner.free.available_permits() * UNIT_BYTES;
        self.inner.bytes.saturating_sub(free)
    }

    /// Returns how many bytes an owner may take.
    pub(crate) fn share_bytes(&self) -> usize {
        self.inner.share * UNIT_BYTES
    }

    /// Sets the metric of how much is taken.
    fn update_gauge(&self) {
        metrics::gauge!("contexture_body_memory_bytes").set(self.taken_bytes() as f64);
    }
}

/// The memory of one request, free again once it is dropped.
#[derive(Debug)]
pub(crate) struct MemoryLease {
    memory: BodyMemory,
    /// What the owner may still take.
    share: Arc<Semaphore>,
    /// Of the share, and of all.
    held: Option<[OwnedSemaphorePermit; 2]>,
}

impl MemoryLease {
    /// Grows the lease to so many bytes, if there are as many now.
    ///
    /// # Errors
    /// There are not.
    pub(crate) fn try_grow_to(&mut self, bytes: usize) -> Result<(), MemoryError> {
        let Some(missing) = self.missing_units(bytes)? else {
            return Ok(());
        };
        let share = Arc::clone(&self.share).try_acquire_many_owned(missing);
        let share = share.map_err(|_| self.owner_full())?;
        let free = Arc::clone(&self.memory.inner.free).try_acquire_many_owned(missing);
        let free = free.map_err(|_| self.full())?;
        self.add_permits([share, free]);
        Ok(())
    }

    /// Grows the lease to so many bytes; waits up to two seconds for them.
    ///
    /// # Errors
    /// There are not as many by then, or there never will be.
    pub(crate) async fn grow_to(&mut self, bytes: usize) -> Result<(), MemoryError> {
        self.grow_to_by(bytes, Instant::now() + MAX_WAIT).await
    }

    /// Grows the lease to so many bytes; waits for them until a deadline.
    ///
    /// # Errors
    /// There are not as many by then, or there never will be.
    pub(crate) async fn grow_to_by(
        &mut self,
        bytes: usize,
        deadline: Instant,
    ) -> Result<(), MemoryError> {
        let Some(missing) = self.missing_units(bytes)? else {
            return Ok(());
        };
        // Both semaphores serve in order of arrival, so small requests cannot overtake a large one for ever.
        let share = Arc::clone(&self.share).acquire_many_owned(missing);
        let share = tokio::time::timeout_at(deadline, share).await;
        let share = share
            .ok()
            .and_then(Result::ok)
            .ok_or_else(|| self.owner_full())?;
        let free = Arc::clone(&self.memory.inner.free).acquire_many_owned(missing);
        let free = tokio::time::timeout_at(deadline, free).await;
        let free = free.ok().and_then(Result::ok).ok_or_else(|| self.full())?;
        self.add_permits([share, free]);
        Ok(())
    }

    /// Returns the bytes, which hold the lease as long as anybody has them or a part of them.
    pub(crate) fn attach_to_bytes(self, bytes: Bytes) -> Bytes {
        Bytes::from_owner(LeasedBytes {
            bytes,
            _lease: self,
        })
    }

    /// Returns the units that are missing; `None`: none.
    fn missing_units(&self, bytes: usize) -> Result<Option<u32>, MemoryError> {
        let needed = bytes.div_ceil(UNIT_BYTES);
        if needed > self.memory.inner.share {
            let most = self.memory.share_bytes();
            return Err(MemoryError::NeverFits {
                needed: bytes,
                most,
            });
        }
        let held = self
            .held
            .as_ref()
            .map_or(0, |[share, _]| share.num_permits());
        let missing = needed.saturating_sub(held);
        Ok((missing > 0).then(|| u32::try_from(missing).unwrap_or(u32::MAX)))
    }

    fn add_permits(&mut self, more: [OwnedSemaphorePermit; 2]) {
        self.memory.update_gauge();
        match &mut self.held {
            None => self.held = Some(more),
            Some([share, free]) => {
                let [more_of_share, more_of_free] = more;
                share.merge(more_of_share);
                free.merge(more_of_free);
            }
        }
    }

    fn owner_full(&self) -> MemoryError {
        MemoryError::OwnerFull {
            most: self.memory.share_bytes(),
        }
    }

    fn full(&self) -> MemoryError {
        MemoryError::Full {
            most: self.memory.inner.bytes,
        }
    }
}

impl Drop for MemoryLease {
    fn drop(&mut self) {
        if self.held.take().is_some() {
            self.memory.update_gauge();
        }
    }
}

/// Copies of a body while it is worked on: as text, as items, as what is written of them, as rows of the store.
const COPIES: usize = 4;
/// Bytes that an object of a body takes once it is read, beside its text: an item, its hashes, its place in a report.
const OBJECT_BYTES: usize = 1 << 10;
/// Bytes that a request takes beside its body: measured, most of them are held by small requests that wait to be stored.
const REQUEST_BYTES: usize = 96 << 10;

/// Estimates the memory that work on a JSON body takes, without the body itself.
pub(crate) fn estimate_work_bytes(body: &[u8]) -> usize {
    let objects = memchr::memchr_iter(b'{', body).count();
    estimate_work_bytes_of_length(body.len()).saturating_add(objects.saturating_mul(OBJECT_BYTES))
}

/// Estimates the memory that work on a body of so many bytes takes, as long as only its length is known.
pub(crate) const fn estimate_work_bytes_of_length(length: usize) -> usize {
    length.saturating_mul(COPIES).saturating_add(REQUEST_BYTES)
}

/// Estimates the memory that a stored conversation of so many items takes while all of it is worked on. Measured with short
/// messages; how long they are is not known before they are read.
pub(crate) fn estimate_stored_bytes(items: u64) -> usize {
    let items = usize::try_from(items).unwrap_or(usize::MAX);
    items.saturating_mul(OBJECT_BYTES + OBJECT_BYTES / 4)
}

/// Bytes with their lease.
struct LeasedBytes {
    bytes: Bytes,
    _lease: MemoryLease,
}

impl AsRef<[u8]> for LeasedBytes {
    fn as_ref(&self) -> &[u8] {
        &self.bytes
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner(name: &str) -> Owner {
        Owner::new(name).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn an_owner_leaves_a_quarter_to_others() {
        let memory = BodyMemory::new(400 << 10);
        let (mut own, mut more) = (memory.lease(&owner("ada")), memory.lease(&owner("ada")));
        own.try_grow_to(200 << 10).unwrap();
        // What it has counts.
        own.try_grow_to(300 << 10).unwrap();
        assert_eq!(memory.taken_bytes(), 300 << 10);
        let most = 300 << 10;
        assert_eq!(more.try_grow_to(1), Err(MemoryError::OwnerFull { most }));
        assert_eq!(more.grow_to(1).await, Err(MemoryError::OwnerFull { most }));
        let mut other = memory.lease(&owner("bob"));
        other.grow_to(100 << 10).await.unwrap();
        assert_eq!(
            other.grow_to(101 << 10).await,
            Err(MemoryError::Full { most: 400 << 10 })
        );
        let needed = most + 1;
        assert_eq!(
            other.grow_to(needed).await,
            Err(MemoryError::NeverFits { needed, most })
        );
        drop(own);
        more.grow_to(1).await.unwrap();
        drop((more, other));
        assert_eq!(memory.taken_bytes(), 0);
    }

    #[tokio::test]
    async fn bytes_hold_their_lease_to_the_last_copy() {
        let memory = BodyMemory::new(1 << 20);
        let mut lease = memory.lease(&owner("ada"));
        lease.try_grow_to(1 << 10).unwrap();
        let bytes = lease.attach_to_bytes(Bytes::from_static(b"a body"));
        let part = bytes.slice(2..);
        drop(bytes);
        assert_eq!((&part[..], memory.taken_bytes()), (&b"body"[..], 1 << 10));
        drop(part);
        assert_eq!(memory.taken_bytes(), 0);
    }
}
