//! Redaction in rows.
//!
//! Nobody reads the old bytes afterwards. They leave the server's files when it vacuums the tables,
//! and its log and backups when these are let go: that is the operator's to arrange.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{ContentHash, ConversationId, NodeId, Owner, tombstone_json};
use contexture_store::{EntityKind, Error, EventKind, RedactRequest, Redacted};
use futures_util::future::try_join4;
use tokio_postgres::Row;

use crate::connection::error::RowError;
use crate::connection::params::{Bytea, get_bytes, get_column, params};
use crate::connection::transaction::Tx;
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
    // An ended stream may still hold, as chunks, the text of a node that is redacted here, and
    // nothing says which.
    streams::remove_ended_streams(tx, conv).await?;
    let count = done.values + done.blobs;
    // Inputs of an answer name nodes by position, but values and blobs by nothing: after one of
    // those is removed, any inputs may repeat it.
    match count {
        0 => response::remove_inputs(tx, conv, &changed).await?,
        _ => response::remove_all_inputs(tx, conv),
    }
    if count > 0 {
        let kind = EventKind::BytesRedacted { count };
        event::record_event(tx, conv, request.at_ms, &kind);
    }
    // Where nothing was changed, the time of the conversation stays too.
    if done != Redacted::default() {
        conv.save(tx);
    }
    Ok(done)
}

/// What a redaction finds, read under the conversation's lock.
struct AffectedRows {
    conv: ConversationRow,
    nodes: Vec<Row>,
    /// How many of the values have bytes.
    values: u64,
    /// How many of the blobs are there.
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
    // The lock is polled first, so it is sent first, and the server reads the rest under it.
    let (conv, nodes, values, blobs) = try_join4(lock, nodes, values, blobs).await?;
    Ok(AffectedRows {
        conv,
        nodes,
        values: values.len() as u64,
        blobs: blobs.len() as u64,
    })
}

/// Removes the values and blobs of a request. The rows of values stay, empty: that tells a value
/// that was removed from one that is missing.
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

/// Replaces items, readable or not; gives how many were not replaced before, and the places of those
/// that said something else.
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
        // Redacting twice is redacting once: no second event, and the first time stays.
        if *redacted || !done.insert(*id) {
            continue;
        }
        let tombstone = tombstone_json(&String::from_utf8_lossy(item)).into_bytes();
        // A node whose text was a tombstone before has nothing that answers could have repeated.
        changed.extend((tombstone != *item).then_some(*position));
        let hash = ContentHash::of(&tombstone);
        tx.execute_on_commit(
            "UPDATE contexture.nodes SET item = $3, content_hash = $4, meaning_hash = NULL, \
             codec = 0, key_id = NULL, redacted_ms = $5 WHERE conversation = $1 AND node_id = $2",
            params![conv.key, *id, Bytea::Own(tombstone), hash, request.at_ms],
        );
        // With the text: terms alone would still tell which words stood there.
        index::remove_terms(tx, conv.key, *position);
        let kind = EventKind::NodeRedacted { node: *id };
        event::record_event(tx, conv, request.at_ms, &kind);
    }
    Ok((done.len() as u64, changed))
}

/// Whether a node was redacted before, its item, and where it is.
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
