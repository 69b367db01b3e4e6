//! [`Maintenance`] on PostgreSQL: the calls of the contract.
//!
//! Backups are not offered: the server has its own programs for them.

use std::path::Path;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};
use contexture_store::{
    BackedUp, CollectRequest, Collected, Compacted, Error, Maintenance, OwnerSize, Statistics,
    StorageFault, VerifyCursor, VerifyPage,
};

use crate::connection::pool::Access;
use crate::maintenance::{blob_gc, statistics, vacuum, verify};
use crate::store::PostgresStore;

#[async_trait]
impl Maintenance for PostgresStore {
    async fn verify_page(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: Option<VerifyCursor>,
    ) -> Result<VerifyPage, Error> {
        let page = self
            .server
            .run_transaction(Access::Maintenance, owner, |tx| {
                Box::pin(verify::verify_page(tx, owner, id, after))
            })
            .await;
        // A row that cannot even be decoded ends the statement. The check must report it, so it
        // becomes a finding.
        match page {
            Err(
                error @ Error::Storage {
                    fault: StorageFault::Corrupt,
                    ..
                },
            ) => Ok(verify::unreadable_page(id, after, &error)),
            page => page,
        }
    }

    async fn verify_medium(&self) -> Result<Vec<String>, Error> {
        vacuum::verify_medium(&self.server).await
    }

    async fn read_statistics(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Statistics, Error> {
        self.server
            .run_transaction(Access::Scan, owner, |tx| {
                Box::pin(statistics::read_statistics(tx, owner, id))
            })
            .await
    }

    async fn list_owners(
        &self,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<OwnerSize>, Error> {
        self.server
            .run_transaction(Access::Maintenance, None, |tx| {
                Box::pin(statistics::list_owners(tx, after, limit))
            })
            .await
    }

    async fn collect_blobs(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: CollectRequest,
    ) -> Result<Collected, Error> {
        let unnamed = self
            .server
            .run_transaction(Access::Maintenance, owner, |tx| {
                Box::pin(blob_gc::find_unnamed_blobs(tx, owner, id))
            })
            .await?;
        self.server
            // A second transaction, since looking for names reads the whole conversation and must
            // not hold its lock.
            .run_transaction(Access::Write, owner, |tx| {
                Box::pin(blob_gc::remove_unnamed_blobs(
                    tx, owner, id, &unnamed, request,
                ))
            })
            .await
    }

    async fn compact_storage(&self) -> Result<Compacted, Error> {
        vacuum::compact_storage(&self.server).await
    }

    async fn back_up(&self, _: &Path) -> Result<BackedUp, Error> {
        Err(Error::NotOffered {
            what: "a copy in a file",
            instead: "run pg_dump --format=custom --schema=contexture, or pg_basebackup for the \
                      whole server; pg_restore brings a dump back",
        })
    }
}
