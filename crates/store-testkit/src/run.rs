//! Runs the table of behaviours.

use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use contexture_store::{Limits, Store};
use futures_util::future::join_all;

use crate::behaviour::{Behaviour, Level};
use crate::behaviours::behaviours;

/// Returns limits for a store that shows its behaviours: the defaults, but for what would take thousands of conversations to
/// reach.
#[must_use]
pub fn test_limits() -> Limits {
    Limits {
        list_scan: 64,
        ..Limits::default()
    }
}

/// How many behaviours run side by side. Most of a behaviour's time is spent waiting for a disk or a server.
pub const LANES: usize = 4;

/// Runs every behaviour; see [`run_levels`].
pub async fn run_all<Opened: Future<Output = Arc<dyn Store>>>(
    open: impl Fn(usize) -> Opened,
) -> usize {
    run_levels(&Level::ALL, open).await
}

/// Runs every behaviour of these levels on a fresh store from `open`. Panics at the end if any did
/// not hold, with the names of all that did not; returns the number that did.
///
/// [`LANES`] behaviours run side by side. `open` gets the number of the lane that it opens a store for, from 0, so that a
/// backend with a server can have one database for each lane and empty it: of one lane only one behaviour runs at a time.
///
/// Needs a tokio runtime; a multi-threaded one finds more.
pub async fn run_levels<Opened: Future<Output = Arc<dyn Store>>>(
    levels: &[Level],
    open: impl Fn(usize) -> Opened,
) -> usize {
    let chosen: Vec<&Behaviour> = behaviours()
        .iter()
        .filter(|behaviour| levels.contains(&behaviour.level))
        .collect();
    let ran = chosen.len();
    let next = AtomicUsize::new(0);
    let lanes = (0..LANES).map(async |lane| {
        let mut failed = Vec::new();
        loop {
            // The next that no other lane has begun, so that a slow behaviour holds up one lane only.
            let Some(behaviour) = chosen.get(next.fetch_add(1, Ordering::Relaxed)) else {
                return failed;
            };
            let store = open(lane).await;
            // In a task of its own, so that the panic of one does not end the others.
            if tokio::spawn((behaviour.run)(store)).await.is_err() {
                failed.push(behaviour.name);
            }
        }
    });
    let mut failed = join_all(lanes).await.concat();
    failed.sort_unstable();
    assert!(
        failed.is_empty(),
        "{} of {ran} behaviours do not hold: {failed:#?}",
        failed.len(),
    );
    ran
}
