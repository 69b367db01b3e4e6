//! What goes on by itself: deletions that were interrupted.
//!
//! A task of each store; it ends with it. Several processes may do this at once: a step finds what
//! another has left.

use std::sync::Arc;

use contexture_store::Error;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::deletion::{self, Pending};
use crate::pool::{Access, Server};

/// The task.
#[derive(Debug)]
pub(crate) struct Tidy {
    wake: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Tidy {
    /// Starts the task, asleep.
    pub(crate) fn start(server: Arc<Server>) -> Self {
        let wake = Arc::new(Notify::new());
        let woken = Arc::clone(&wake);
        let task = tokio::spawn(async move {
            loop {
                woken.notified().await;
                // What fails now is there at the next time.
                let _ = finish(&server).await;
            }
        });
        Self { wake, task }
    }

    /// Something was left over.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Something may be left over, unless this is told that it is done.
    pub(crate) fn unless_done(&self) -> Unfinished {
        Unfinished(Some(Arc::clone(&self.wake)))
    }
}

impl Drop for Tidy {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Wakes the task when it is dropped.
pub(crate) struct Unfinished(Option<Arc<Notify>>);

impl Unfinished {
    /// Nothing is left over.
    pub(crate) fn done(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished {
    fn drop(&mut self) {
        if let Some(wake) = &self.0 {
            wake.notify_one();
        }
    }
}

/// Removes the rows of all conversations that are out of sight.
pub(crate) async fn finish(server: &Server) -> Result<(), Error> {
    while let Some(gone) = pending(server).await? {
        remove(server, &gone).await?;
    }
    Ok(())
}

/// Some deletion that is not finished.
pub(crate) async fn pending(server: &Server) -> Result<Option<Pending>, Error> {
    server
        .run(Access::Read, |tx| Box::pin(deletion::pending(tx, None)))
        .await
}

/// Removes the rows of a conversation that is out of sight.
pub(crate) async fn remove(server: &Server, gone: &Pending) -> Result<(), Error> {
    let step = || server.run(Access::WriteAgain, |tx| Box::pin(deletion::step(tx, gone)));
    while step().await?.more {}
    Ok(())
}
