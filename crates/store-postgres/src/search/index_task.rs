//! The index task: indexes in the background what was written before texts could be searched, or with other terms.
//!
//! Each store has one. Several processes may run it at once: a step locks its conversation, and indexes only what is missing.

use contexture_store::Error;

use crate::connection::pool::{Access, ConnectionPool};
use crate::rows::path::NodePosition;
use crate::search::index::{self, UnindexedConversation};

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
