//! The index task: indexes behind the requests what was written before texts could be searched, or with other terms.
//!
//! Each store has one; it ends with the store. Several processes may run it at once: a step locks its conversation, and
//! indexes only what is missing.

use std::sync::Arc;

use contexture_store::Error;
use tokio::sync::Notify;
use tokio::task::JoinHandle;

use crate::connection::pool::{Access, ConnectionPool};
use crate::rows::path::NodePosition;
use crate::search::index::{self, UnindexedConversation};

/// Background task that indexes texts; it ends when this is dropped.
#[derive(Debug)]
pub(crate) struct IndexTask {
    wake: Arc<Notify>,
    task: JoinHandle<()>,
}

impl IndexTask {
    /// Starts the task, which sleeps until it is woken.
    pub(crate) fn start(server: Arc<ConnectionPool>) -> Self {
        let wake = Arc::new(Notify::new());
        let woken = Arc::clone(&wake);
        let task = tokio::spawn(async move {
            loop {
                woken.notified().await;
                // What failed is tried again after the next search that lacks something.
                let _ = index_texts(&server).await;
            }
        });
        Self { wake, task }
    }

    /// Wakes the task, because a search found conversations that are not indexed.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }
}

impl Drop for IndexTask {
    fn drop(&mut self) {
        // Nothing is lost: what is missing stands in the listings, for the next search.
        self.task.abort();
    }
}

/// Indexes all that is not indexed.
pub(crate) async fn index_texts(server: &ConnectionPool) -> Result<(), Error> {
    loop {
        let unindexed =
            server.run_transaction(Access::Read, None, |tx| Box::pin(index::find_unindexed(tx)));
        let unindexed = unindexed.await?;
        // Asked again until nothing is found: an older program may have written meanwhile.
        if unindexed.is_empty() {
            return Ok(());
        }
        // One conversation after another: a step locks its row, so appends to it wait for one step
        // at most.
        for conversation in &unindexed {
            index_conversation(server, conversation).await?;
        }
    }
}

async fn index_conversation(
    server: &ConnectionPool,
    conversation: &UnindexedConversation,
) -> Result<(), Error> {
    let mut next = Some(NodePosition::default());
    while let Some(after) = next {
        // Indexing a node again writes the same row, so a step with an unknown outcome may
        // run again.
        let step = server.run_transaction(Access::WriteIdempotent, None, |tx| {
            Box::pin(index::index_step(tx, conversation, after))
        });
        next = match step.await {
            // The conversation was deleted meanwhile.
            Err(Error::NotFound { .. }) => None,
            next => next?,
        };
    }
    Ok(())
}
