//! Running the table.

use std::future::Future;
use std::sync::Arc;

use contexture_store::Store;

use crate::behaviours::behaviours;

/// Runs every behaviour on a fresh store from `open`. Panics at the end if any did not hold, with
/// the names of all that did not; gives the number that did.
///
/// Needs a tokio runtime; a multi-threaded one finds more.
pub async fn run_all<Opened: Future<Output = Arc<dyn Store>>>(open: impl Fn() -> Opened) -> usize {
    let mut failed = Vec::new();
    for behaviour in behaviours() {
        let store = open().await;
        // A task of its own keeps the panic of one from ending all.
        if tokio::spawn((behaviour.run)(store)).await.is_err() {
            failed.push(behaviour.name);
        }
    }
    assert!(
        failed.is_empty(),
        "{} of {} behaviours do not hold: {failed:#?}",
        failed.len(),
        behaviours().len()
    );
    behaviours().len()
}
