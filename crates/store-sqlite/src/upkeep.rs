//! [`Maintenance`] on SQLite: counting, collecting, compacting.
//!
//! Not here: checking (`verify`) and copying (`backup`).

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};
use contexture_store::{
    BackedUp, BlobId, CollectRequest, Collected, Compacted, Error, Maintenance, NodeKind,
    Statistics, StorageAmount, VerifyCursor, VerifyPage,
};
use rusqlite::{Connection, Row, ToSql, params};

use crate::backup;
use crate::blob;
use crate::codec;
use crate::conv::ConversationRow;
use crate::fault::RowError;
use crate::key_value;
use crate::path::key_range;
use crate::store::SqliteStore;
use crate::verify;

/// Pages that one step of compacting gives back.
const STEP_PAGES: u32 = 256;
/// Lines that SQLite's own check gives at most.
const LINES: u32 = 100;

#[async_trait]
impl Maintenance for SqliteStore {
    async fn verify_page(
        &self,
        owner: &Owner,
        id: &ConversationId,
        after: Option<VerifyCursor>,
    ) -> Result<VerifyPage, Error> {
        self.read_conversation(owner, id, move |conn, conv| {
            verify::verify_page(conn, conv, after)
        })
        .await
    }

    async fn verify_medium(&self) -> Result<Vec<String>, Error> {
        self.read_transaction(|conn| {
            let mut statement = conn.prepare(&format!("PRAGMA integrity_check({LINES})"))?;
            let lines = statement.query_map([], |row| row.get::<_, String>(0))?;
            let mut lines = lines.collect::<Result<Vec<_>, _>>()?;
            lines.retain(|line| line != "ok");
            lines.extend(key_value::verify_others(conn, LINES)?);
            Ok(lines)
        })
        .await
    }

    async fn read_statistics(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Result<Statistics, Error> {
        self.read_conversation(owner, id, read_statistics).await
    }

    async fn collect_blobs(
        &self,
        owner: &Owner,
        id: &ConversationId,
        request: CollectRequest,
    ) -> Result<Collected, Error> {
        let unnamed = self
            .read_conversation(owner, id, find_unnamed_blobs)
            .await?;
        let (owner, id) = (owner.clone(), id.clone());
        self.write_transaction(0, move |conn| {
            let conv = ConversationRow::load(conn, &owner, &id)?;
            remove_unnamed_blobs(conn, &conv, &unnamed, request)
        })
        .await
    }

    async fn compact_storage(&self) -> Result<Compacted, Error> {
        let size = |conn: &Connection| -> Result<u64, RowError> {
            let sql = "SELECT page_count * page_size FROM pragma_page_count, pragma_page_size";
            Ok(conn.query_row(sql, [], |row| unsigned_column(row, 0))?)
        };
        let before = self.read_transaction(size).await?;
        self.run_outside_transaction(|conn| {
            // A database of before this was asked for is written anew, once.
            let mode: u32 = conn.query_row("PRAGMA auto_vacuum", [], |row| row.get(0))?;
            if mode != 2 {
                // The copy made meanwhile is as large as the database: not in memory.
                conn.execute_batch("PRAGMA temp_store = file; PRAGMA auto_vacuum = incremental")?;
                let written = conn.execute_batch("VACUUM");
                conn.pragma_update(None, "temp_store", "memory")?;
                written?;
            }
            Ok(())
        })
        .await?;
        while self.write_transaction(0, vacuum_step).await? {}
        self.empty_log().await?;
        let after = self.read_transaction(size).await?;
        Ok(Compacted { before, after })
    }

    async fn back_up(&self, to: &Path) -> Result<BackedUp, Error> {
        let to = to.to_owned();
        self.read_transaction(move |conn| backup::back_up(conn, &to))
            .await
    }
}

/// A count or a sum; the sum of nothing is `NULL`.
fn unsigned_column(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number = row.get::<_, Option<i64>>(column)?.unwrap_or(0);
    Ok(u64::try_from(number).unwrap_or(0))
}

/// Gives some unused pages back; says whether there are more.
fn vacuum_step(conn: &Connection) -> Result<bool, RowError> {
    let mut statement = conn.prepare(&format!("PRAGMA incremental_vacuum({STEP_PAGES})"))?;
    let mut rows = statement.query([])?;
    while rows.next()?.is_some() {}
    let left: u32 = conn.query_row("PRAGMA freelist_count", [], |row| row.get(0))?;
    Ok(left > 0)
}

fn read_statistics(conn: &Connection, conv: &ConversationRow) -> Result<Statistics, RowError> {
    let (first, last) = key_range(conv.no);
    let mut statistics = Statistics::default();
    let mut statement = conn.prepare_cached(
        "SELECT kind, count(*), sum(length(item)) FROM nodes WHERE id BETWEEN ? AND ? GROUP BY kind",
    )?;
    let mut rows = statement.query([first, last])?;
    while let Some(row) = rows.next()? {
        let kind = row.get::<_, u8>(0)?;
        let kind = NodeKind::from_code(kind)
            .ok_or_else(|| conv.damaged_error("node", format!("kind {kind}"), "unknown kind"))?;
        let amount = StorageAmount {
            count: unsigned_column(row, 1)?,
            bytes: unsigned_column(row, 2)?,
        };
        statistics.nodes.insert(kind, amount);
    }
    let amount = |sql: &str, bound: &[&dyn ToSql]| -> Result<StorageAmount, RowError> {
        let read = |row: &Row<'_>| {
            Ok(StorageAmount {
                count: unsigned_column(row, 0)?,
                bytes: unsigned_column(row, 1)?,
            })
        };
        Ok(conn.prepare_cached(sql)?.query_row(bound, read)?)
    };
    let of_key = |content: &str, table: &str| {
        let sql = format!("SELECT count(*), sum({content}) FROM {table} WHERE id BETWEEN ? AND ?");
        amount(&sql, &[&first, &last])
    };
    let of_number = |content: &str, table: &str| {
        let sql = format!("SELECT count(*), sum({content}) FROM {table} WHERE conversation_no = ?");
        amount(&sql, &[&conv.no])
    };
    statistics.roots = of_key("length(body)", "roots")?;
    statistics.values = of_number("length(value)", "state_values")?;
    statistics.blobs = of_number("length(bytes)", "blobs")?;
    statistics.entries = amount(
        "SELECT count(*), sum(length(value)) FROM key_values \
         WHERE owner = ? AND scope_kind = 2 AND scope = ? AND value IS NOT NULL",
        &[&conv.owner.as_str(), &conv.id.as_str()],
    )?;
    statistics.names = of_key("0", "branches")?.count + of_number("0", "checkpoints")?.count;
    statistics.events = of_key("0", "events")?.count;
    statistics.segments = of_key("0", "segments")?.count;
    Ok(statistics)
}

/// The blobs that nothing names, as a reader saw them.
struct UnnamedBlobs {
    /// The conversation's next event then: as long as it is the same, nobody appended.
    next_event: u32,
    /// By row.
    blobs: BTreeMap<i64, UnnamedBlob>,
}

struct UnnamedBlob {
    bytes: u64,
    /// Since when, as far as is known.
    since_ms: Option<i64>,
}

fn find_unnamed_blobs(conn: &Connection, conv: &ConversationRow) -> Result<UnnamedBlobs, RowError> {
    let mut blobs = BTreeMap::new();
    let mut statement = conn.prepare_cached(
        "SELECT blob_id, no, length(bytes), unnamed_ms FROM blobs WHERE conversation_no = ?",
    )?;
    let mut rows = statement.query([conv.no])?;
    while let Some(row) = rows.next()? {
        let unneeded = UnnamedBlob {
            bytes: unsigned_column(row, 2)?,
            since_ms: row.get(3)?,
        };
        let no: i64 = row.get(1)?;
        blobs.insert(BlobId::from_bytes(row.get(0)?), (no, unneeded));
    }
    if !blobs.is_empty() {
        for name in collect_blob_names(conn, conv)? {
            blobs.remove(&name);
        }
    }
    Ok(UnnamedBlobs {
        next_event: conv.next_event,
        blobs: blobs.into_values().collect(),
    })
}

/// Every blob that an item or a state value names or is. What cannot be read may name any.
fn collect_blob_names(
    conn: &Connection,
    conv: &ConversationRow,
) -> Result<BTreeSet<BlobId>, RowError> {
    let mut names = BTreeSet::new();
    let (first, last) = key_range(conv.no);
    let items = "SELECT codec, item, id FROM nodes WHERE id BETWEEN ?1 AND ?2";
    let values = "SELECT codec, coalesce(value, x''), 0, blob_id FROM state_values \
                  WHERE conversation_no = ?1 AND ?2 = ?2";
    let of_items: (&str, [i64; 2]) = (items, [first, last]);
    for (sql, bound) in [of_items, (values, [conv.no.into(), 0])] {
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query(bound)?;
        while let Some(row) = rows.next()? {
            let damaged = |why: &str| {
                let number = row.get::<_, i64>(2).unwrap_or_default() as u32;
                conv.damaged_error("node", format!("row {number}"), why)
            };
            let stored = row.get_ref(1)?.as_blob()?;
            let plain = codec::decode_bytes(row.get(0)?, stored).map_err(damaged)?;
            names.extend(BlobId::find_in_text(&String::from_utf8_lossy(&plain)));
            if sql == values {
                // A larger value is a blob, and may name others.
                if let Some(id) = row.get::<_, Option<[u8; 16]>>(3)?.map(BlobId::from_bytes) {
                    let value = blob::read_blob(conn, conv, id)?;
                    names.extend(BlobId::find_in_text(&String::from_utf8_lossy(&value)));
                    names.insert(id);
                }
            }
        }
    }
    Ok(names)
}

/// Removes what has been unnamed for long enough, and takes down since when the others are.
fn remove_unnamed_blobs(
    conn: &Connection,
    conv: &ConversationRow,
    unnamed: &UnnamedBlobs,
    request: CollectRequest,
) -> Result<Collected, RowError> {
    if conv.next_event != unnamed.next_event {
        return Err(Error::Busy {
            why: "the conversation was written to meanwhile".to_owned(),
        }
        .into());
    }
    // A clock was set back: their time begins anew.
    conn.prepare_cached(
        "UPDATE blobs SET unnamed_ms = NULL WHERE conversation_no = ? AND unnamed_ms IS NOT NULL \
         AND unnamed_ms > ?",
    )?
    .execute(params![conv.no, request.now_ms])?;
    let mut collected = Collected::default();
    for (no, blob) in &unnamed.blobs {
        let due = blob
            .since_ms
            .is_some_and(|since| since.saturating_add(request.grace_ms) <= request.now_ms);
        if !due {
            conn.prepare_cached(
                "UPDATE blobs SET unnamed_ms = ? WHERE no = ? AND unnamed_ms IS NULL",
            )?
            .execute(params![request.now_ms, no])?;
            collected.waiting += 1;
        } else if collected.blobs.count >= request.limit as u64 {
            collected.more = true;
        } else {
            // Unless it was stored again since.
            let removed = conn
                .prepare_cached("DELETE FROM blobs WHERE no = ? AND unnamed_ms = ?")?
                .execute(params![no, blob.since_ms])?;
            if removed > 0 {
                collected.blobs.count += 1;
                collected.blobs.bytes += blob.bytes;
            }
        }
    }
    Ok(collected)
}
