//! The deletion task: finishes interrupted deletions in the background.
//!
//! Each store has one; it ends with the store. Several processes may run it at once, since each
//! step continues where the last one stopped.

use std::sync::Arc;

use contexture_store::Error;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::connection::pool::{Access, ConnectionPool};
use crate::maintenance::deletion::{self, PendingDeletion};

/// Background task that finishes interrupted deletions; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct DeletionTask {
    wake: Arc<Notify>,
    task: JoinHandle<()>,
}

impl DeletionTask {
    /// Starts the task, which sleeps until it is woken.
    pub(crate) fn start(server: Arc<ConnectionPool>) -> Self {
        let wake = Arc::new(Notify::new());
        let woken = Arc::clone(&wake);
        let task = tokio::spawn(async move {
            loop {
                woken.notified().await;
                // A failed deletion is tried again at the next wake.
                let _ = finish_deletions(&server).await;
            }
        });
        Self { wake, task }
    }

    /// Wakes the task, because a deletion is unfinished.
    pub(crate) fn wake(&self) {
        // `Notify` stores a permit, so a wake during the work is not lost.
        self.wake.notify_one();
    }

    /// Returns a guard that wakes the task when it is dropped, unless it is disarmed before.
    pub(crate) fn wake_on_drop(&self) -> WakeTaskOnDrop {
        WakeTaskOnDrop(Some(Arc::clone(&self.wake)))
    }
}

impl Drop for DeletionTask {
    fn drop(&mut self) {
        // Nothing is lost: pending work is in the table `deletions`, for the next store that opens.
        self.task.abort();
    }
}

/// Guard that wakes the task when it is dropped.
pub(crate) struct WakeTaskOnDrop(Option<Arc<Notify>>);

impl WakeTaskOnDrop {
    /// Drops the guard without waking the task, because nothing is left to delete.
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

/// Removes the rows of all hidden conversations.
async fn finish_deletions(server: &ConnectionPool) -> Result<(), Error> {
    while let Some(gone) = find_pending(server).await? {
        delete_rows(server, &gone).await?;
    }
    Ok(())
}

/// Finds an unfinished deletion of any owner.
pub(crate) async fn find_pending(
    server: &ConnectionPool,
) -> Result<Option<PendingDeletion>, Error> {
    server
        .run_transaction(Access::Read, None, |tx| {
            Box::pin(deletion::find_pending(tx, None))
        })
        .await
}

/// Removes the rows of a hidden conversation.
pub(crate) async fn delete_rows(
    server: &ConnectionPool,
    gone: &PendingDeletion,
) -> Result<(), Error> {
    let step = || {
        server.run_transaction(Access::WriteIdempotent, None, |tx| {
            Box::pin(deletion::delete_step(tx, gone))
        })
    };
    // Each step is a transaction, so that other writers and vacuum run in between.
    while step().await?.more {}
    Ok(())
}
