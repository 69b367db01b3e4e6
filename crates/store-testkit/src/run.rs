//! Running the table.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use contexture_store::Store;

use crate::behaviours::behaviours;

/// What a behaviour is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// What every store does.
    Base,
    /// What no owner learns of another.
    Ownership,
}

/// A behaviour in progress.
pub type Running = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One behaviour.
pub struct Behaviour {
    /// A sentence's worth of name, `area::what_holds`.
    pub name: &'static str,
    /// What it is about.
    pub level: Level,
    /// Runs it on an empty store; panics if it does not hold.
    pub run: fn(Arc<dyn Store>) -> Running,
}

impl std::fmt::Debug for Behaviour {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name)
    }
}

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
