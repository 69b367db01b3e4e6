//! The two things an engine takes from outside: the time and new ids.
//!
//! Everything below the engine gets them as values, so tests and simulations replace them here and nowhere else.

use std::fmt;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};
use std::time::{SystemTime, UNIX_EPOCH};

use contexture_ir::NodeId;

/// The source of the time. An engine has [`SystemClock`] unless it is given another.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Milliseconds since the Unix epoch. Information only: nothing is ordered by it.
    fn now_ms(&self) -> i64;
}

/// The machine's clock.
#[derive(Clone, Copy, Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now_ms(&self) -> i64 {
        let since = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        i64::try_from(since.as_millis()).unwrap_or(i64::MAX)
    }
}

/// A clock for tests: starts at a time and moves a millisecond each time it is asked.
#[derive(Debug, Default)]
pub struct TestClock(AtomicI64);

impl TestClock {
    /// A clock that starts at `start_ms`.
    #[must_use]
    pub fn new(start_ms: i64) -> Self {
        Self(AtomicI64::new(start_ms))
    }
}

impl Clock for TestClock {
    fn now_ms(&self) -> i64 {
        self.0.fetch_add(1, Ordering::Relaxed)
    }
}

/// The source of new ids. An engine has [`RandomIds`] unless it is given another.
pub trait IdSource: Send + Sync + fmt::Debug {
    /// Sixteen bytes that were never given before.
    fn new_id_bytes(&self) -> [u8; 16];
}

/// Source of random ids.
#[derive(Clone, Copy, Debug, Default)]
pub struct RandomIds;

impl IdSource for RandomIds {
    fn new_id_bytes(&self) -> [u8; 16] {
        uuid::Uuid::new_v4().into_bytes()
    }
}

/// Ids for tests: the same sequence in every run.
#[derive(Debug, Default)]
pub struct TestIds(AtomicU64);

impl IdSource for TestIds {
    fn new_id_bytes(&self) -> [u8; 16] {
        let number = self.0.fetch_add(1, Ordering::Relaxed);
        *NodeId::derive("test ids", &[&number.to_le_bytes()]).as_bytes()
    }
}
