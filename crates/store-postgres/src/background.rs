//! Background tasks of a store, which sleep until they are woken.

use std::sync::Arc;

use contexture_store::Error;
use futures_util::future::BoxFuture;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::connection::pool::ConnectionPool;

/// Background task of a store; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct BackgroundTask {
    wake: Arc<Notify>,
    task: JoinHandle<()>,
}

impl BackgroundTask {
    /// Starts the task, which sleeps until it is woken and then does `work`.
    pub(crate) fn start(
        server: Arc<ConnectionPool>,
        work: fn(&ConnectionPool) -> BoxFuture<'_, Result<(), Error>>,
    ) -> Self {
        let wake = Arc::new(Notify::new());
        let woken = Arc::clone(&wake);
        let task = tokio::spawn(async move {
            loop {
                woken.notified().await;
                // What failed is tried again at the next wake.
                let _ = work(&server).await;
            }
        });
        Self { wake, task }
    }

    /// Wakes the task, because there is something to do.
    pub(crate) fn wake(&self) {
        // `Notify` stores a permit, so a wake during the work is not lost.
        self.wake.notify_one();
    }

    /// Returns a guard that wakes the task when it is dropped, unless it is disarmed before.
    pub(crate) fn wake_on_drop(&self) -> WakeTaskOnDrop {
        WakeTaskOnDrop(Some(Arc::clone(&self.wake)))
    }
}

impl Drop for BackgroundTask {
    fn drop(&mut self) {
        // Nothing is lost: what is pending stands in the database, for the next store that opens.
        self.task.abort();
    }
}

/// Guard that wakes the task when it is dropped.
pub(crate) struct WakeTaskOnDrop(Option<Arc<Notify>>);

impl WakeTaskOnDrop {
    /// Drops the guard without waking the task, because nothing is left to do.
    pub(crate) fn disarm(mut self) {
        self.0 = None;
    }
}

impl Drop for WakeTaskOnDrop {
    fn drop(&mut self) {
        if let Some(wake) = &self.0 {
            wake.notify_one();
        }
    }
}
