//! The deletion task: finishes interrupted deletions in the background.
//!
//! Each store has one. Several processes may run it at once, since each step continues where the last one stopped.

use contexture_store::Error;

use crate::connection::pool::{Access, ConnectionPool};
use crate::maintenance::deletion::{self, PendingDeletion};

/// Removes the rows of all hidden conversations.
pub(crate) async fn finish_deletions(server: &ConnectionPool) -> Result<(), Error> {
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
