//! Runs the table of behaviours.

use std::future::Future;
use std::sync::Arc;

use contexture_store::Store;

use crate::behaviour::Level;
use crate::behaviours::behaviours;

/// Runs every behaviour; see [`run_levels`].
pub async fn run_all<Opened: Future<Output = Arc<dyn Store>>>(open: impl Fn() -> Opened) -> usize {
    run_levels(&Level::ALL, open).await
}

/// Runs every behaviour of these levels on a fresh store from `open`. Panics at the end if any did
/// not hold, with the names of all that did not; returns the number that did.
///
/// Needs a tokio runtime; a multi-threaded one finds more.
pub async fn run_levels<Opened: Future<Output = Arc<dyn Store>>>(
    levels: &[Level],
    open: impl Fn() -> Opened,
) -> usize {
    let mut ran = 0;
    let mut failed = Vec::new();
    for behaviour in behaviours() {
        if !levels.contains(&behaviour.level) {
            continue;
        }
        ran += 1;
        let store = open().await;
        // In a task of its own, so that the panic of one does not end the others.
        if tokio::spawn((behaviour.run)(store)).await.is_err() {
            failed.push(behaviour.name);
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {ran} behaviours do not hold: {failed:#?}",
        failed.len(),
    );
    ran
}
