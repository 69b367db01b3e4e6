//! Redaction: replaces nodes by tombstones, and removes state values and blobs.
//!
//! Nothing reads the old bytes afterwards. They stay in the table files until a vacuum, and in the
//! write-ahead log and backups until the operator discards these.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{ContentHash, ConversationId, NodeId, Owner, tombstone_json};
use contexture_store::{EntityKind, Error, EventKind, RedactRequest, Redacted};
use futures_util::future::try_join4;
use tokio_postgres::Row;

use crate::calls;
use crate::connection::error::RowError;
use crate::connection::params::{Bytea, get_bytes, get_column, params};
use crate::connection::transaction::Tx;
use crate::key_values;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};
use crate::rows::path::NodePosition;
use crate::rows::{event, response};
use crate::search::index;
use crate::streams;

/// Replaces nodes by tombstones, removes state values and blobs; `request` is within the limits.
pub(crate) async fn redact_content(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    request: &RedactRequest,
) -> Result<Redacted, RowError> {
    let mut affected = load_affected(tx, owner, id, request).await?;
    let conv = &mut affected.conv;
    let (nodes, changed) = write_tombstones(tx, conv, &affected.nodes, request)?;
    let done = Redacted {
        nodes,
        values: affected.values,
        blobs: affected.blobs,
    };
    remove_bytes(tx, conv, request);
    // The chunks of an ended stream may hold the text of a redacted node; nothing records which.
    streams::remove_ended_streams(tx, conv).await?;
    let count = done.values + done.blobs;
    // Nodes can be traced to the responses that read them, values and blobs cannot: after one of
    // those is removed, any inputs may repeat it.
    match count {
        0 => response::remove_inputs(tx, conv, &changed).await?,
        _ => response::remove_all_inputs(tx, conv),
    }
    if count > 0 {
        let kind = EventKind::BytesRedacted { count };
        event::record_event(tx, conv, request.at_ms, &kind);
    }
    // If nothing changed, the update time stays too.
    if done != Redacted::default() {
        // Nothing tells which of them have the text.
        calls::remove_bodies(tx, ConversationKey::of(owner, id).into_bytes());
        key_values::remove_derived(tx, conv, request.at_ms);
        conv.save(tx);
    }
    Ok(done)
}

/// Rows that a redaction affects, read under the conversation's lock.
struct AffectedRows {
    conv: ConversationRow,
    nodes: Vec<Row>,
    /// Number of the values that have bytes.
    values: u64,
    /// Number of the blobs that exist.
    blobs: u64,
}

async fn load_affected(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    request: &RedactRequest,
) -> Result<AffectedRows, RowError> {
    let key = ConversationKey::of(owner, id).into_bytes();
    let nodes = tx.query_rows(
        "SELECT node_id, redacted_ms IS NOT NULL, item, segment, depth FROM contexture.nodes \
         WHERE conversation = $1 AND node_id = ANY ($2)",
        params![key, request.nodes.clone()],
    );
    let values = tx.query_rows(
        "SELECT hash FROM contexture.state_values \
         WHERE conversation = $1 AND hash = ANY ($2) AND value IS NOT NULL",
        params![key, request.values.clone()],
    );
    let blobs = tx.query_rows(
        "SELECT blob_id FROM contexture.blobs WHERE conversation = $1 AND blob_id = ANY ($2)",
        params![key, request.blobs.clone()],
    );
    let lock = ConversationRow::load_for_update(tx, owner, id);
    // The lock is polled and sent first, so the server reads the rest under it.
    let (conv, nodes, values, blobs) = try_join4(lock, nodes, values, blobs).await?;
    Ok(AffectedRows {
        conv,
        nodes,
        values: values.len() as u64,
        blobs: blobs.len() as u64,
    })
}

/// Removes the values and blobs of a request. The rows of values stay, empty, to tell a redacted
/// value from a missing one.
fn remove_bytes(tx: &mut Tx<'_>, conv: &ConversationRow, request: &RedactRequest) {
    tx.execute_on_commit(
        "UPDATE contexture.state_values SET value = NULL \
         WHERE conversation = $1 AND hash = ANY ($2)",
        params![conv.key, request.values.clone()],
    );
    tx.execute_on_commit(
        "DELETE FROM contexture.blobs WHERE conversation = $1 AND blob_id = ANY ($2)",
        params![conv.key, request.blobs.clone()],
    );
}

/// Replaces items, readable or not. Returns how many were not replaced before, and the positions of
/// those whose content changed.
fn write_tombstones(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    rows: &[Row],
    request: &RedactRequest,
) -> Result<(u64, Vec<NodePosition>), RowError> {
    let mut changed = Vec::new();
    let found = decode_items(rows)?;
    let mut done = BTreeSet::new();
    for id in &request.nodes {
        let (redacted, item, position) = found
            .get(id)
            .ok_or_else(|| Error::not_found(EntityKind::Node, id))?;
        // A repeated redaction records no second event and keeps the first time.
        if *redacted || !done.insert(*id) {
            continue;
        }
        let tombstone = tombstone_json(&String::from_utf8_lossy(item)).into_bytes();
        // If the item already was a tombstone, no response can have repeated its content.
        changed.extend((tombstone != *item).then_some(*position));
        let hash = ContentHash::of(&tombstone);
        tx.execute_on_commit(
            "UPDATE contexture.nodes SET item = $3, content_hash = $4, meaning_hash = NULL, \
             codec = 0, key_id = NULL, redacted_ms = $5 WHERE conversation = $1 AND node_id = $2",
            params![conv.key, *id, Bytea::Own(tombstone), hash, request.at_ms],
        );
        // The terms must go too: they would still tell which words the text had.
        index::remove_terms(tx, conv.key, *position);
        let kind = EventKind::NodeRedacted { node: *id };
        event::record_event(tx, conv, request.at_ms, &kind);
    }
    Ok((done.len() as u64, changed))
}

/// Whether a node was redacted before, its item, and its position.
type StoredItem<'a> = (bool, &'a [u8], NodePosition);

fn decode_items(rows: &[Row]) -> Result<BTreeMap<NodeId, StoredItem<'_>>, RowError> {
    let items = rows.iter().map(|row| {
        let position = NodePosition {
            segment: get_column(row, 3)?,
            depth: get_column(row, 4)?,
        };
        let item = (get_column(row, 1)?, get_column(row, 2)?, position);
        Ok((NodeId::from_bytes(get_bytes(row, 0)?), item))
    });
    items.collect()
}
