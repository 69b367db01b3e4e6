//! [`Maintenance`] on SQLite: calls sent to the read pool or to the write thread.
//!
//! Not here: the work itself (`crate::maintenance`).

use std::path::Path;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};
use contexture_store::{
    BackedUp, CollectRequest, Collected, Compacted, Error, Maintenance, OwnerSize, Statistics,
    VerifyCursor, VerifyPage,
};
use rusqlite::Connection;

use crate::key_values;
use crate::maintenance::{backup, blob_gc, statistics, vacuum, verify};
use crate::rows::conversation_row::ConversationRow;
use crate::store::SqliteStore;
use crate::worker::call_queue::CallLoad;
use crate::worker::read_pool::ReadKind;

/// Largest number of lines that SQLite's own check reports.
const LINES: u32 = 100;

#[async_trait]
impl Maintenance for SqliteStore {
    async fn verify_page(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: Option<VerifyCursor>,
    ) -> Result<VerifyPage, Error> {
        let verify =
            move |conn: &Connection, conv: &ConversationRow| verify::verify_page(conn, conv, after);
        self.read_conversation_as(ReadKind::Maintenance, owner, id, verify)
            .await
    }

    async fn verify_medium(&self) -> Result<Vec<String>, Error> {
        self.read_transaction(ReadKind::Maintenance, None, |conn| {
            let mut statement = conn.prepare(&format!("PRAGMA integrity_check({LINES})"))?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            let mut lines = lines.collect::<Result<Vec<_>, _>>()?;
            lines.retain(|line| line != "ok");
            lines.extend(key_values::verify_others(conn, LINES)?);
            Ok(lines)
        })
        .await
    }

    async fn read_statistics(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Statistics, Error> {
        self.read_conversation_as(ReadKind::Scan, owner, id, statistics::read_statistics)
            .await
    }

    async fn list_owners(
        &self,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<OwnerSize>, Error> {
        let after = after.cloned();
        let list = move |conn: &Connection| statistics::list_owners(conn, after.as_ref(), limit);
        self.read_transaction(ReadKind::Maintenance, None, list)
            .await
    }

    async fn collect_blobs(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: CollectRequest,
    ) -> Result<Collected, Error> {
        let unnamed = self
            .read_conversation_as(
                ReadKind::Maintenance,
                owner,
                id,
                blob_gc::find_unnamed_blobs,
            )
            .await?;
        let (owner, id) = (owner.clone(), id.clone());
        self.write_transaction(CallLoad::of(&owner), move |conn| {
            let conv = ConversationRow::load(conn, &owner, &id)?;
            blob_gc::remove_unnamed_blobs(conn, &conv, &unnamed, request)
        })
        .await
    }

    async fn compact_storage(&self) -> Result<Compacted, Error> {
        let size = || self.read_transaction(ReadKind::Point, None, vacuum::database_bytes);
        let before = size().await?;
        self.run_outside_transaction(vacuum::enable_incremental_vacuum)
            .await?;
        while self
            .write_transaction(CallLoad::OWN, vacuum::vacuum_step)
            .await?
        {}
        self.empty_log().await?;
        let after = size().await?;
        Ok(Compacted { before, after })
    }

    async fn back_up(&self, to: &Path) -> Result<BackedUp, Error> {
        let to = to.to_owned();
        self.read_transaction(ReadKind::Maintenance, None, move |conn| {
            backup::back_up(conn, &to)
        })
        .await
    }
}
