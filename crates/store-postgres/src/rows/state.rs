//! State roots and their values as rows.

use std::collections::BTreeMap;
use std::sync::Arc;

use contexture_ir::ContentHash;
use contexture_store::rules::{Merged, decode_root, encode_root};
use contexture_store::{NodeState, StateRequest, StateRoot, StateValues};
use tokio_postgres::Row;

use crate::connection::error::RowError;
use crate::connection::params::{get_bytes, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::blob::row_checksum;
use crate::rows::conversation_row::{ConversationRow, next_number};

/// A root, and what is needed to store the next one.
#[derive(Default)]
pub(crate) struct LoadedRoot {
    pub(crate) root: StateRoot,
    number: i32,
    /// Number of the last full root, and the bytes of differences since; `None` for the empty root.
    whole: Option<(i32, usize)>,
}

/// Reads a root: its last full record and the differences after it.
pub(crate) async fn load_root(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    root_no: i32,
) -> Result<LoadedRoot, RowError> {
    if root_no == 0 {
        return Ok(LoadedRoot::default());
    }
    let rows = tx.query_rows(CHAIN, params![conv.key, root_no]).await?;
    decode_chain(conv, root_no, &rows)
}

/// Reads the records from a root back to the last full one. A few of them may belong to other roots
/// with the same full record.
const CHAIN: &str = "SELECT r.root_no, r.base, r.whole_no, r.since_whole, r.body_check, r.body \
     FROM contexture.roots wanted JOIN contexture.roots r \
     ON r.conversation = wanted.conversation AND r.whole_no = wanted.whole_no \
     AND r.root_no BETWEEN wanted.whole_no AND wanted.root_no \
     WHERE wanted.conversation = $1 AND wanted.root_no = $2 ORDER BY r.root_no DESC";

/// Builds a root from the rows of [`CHAIN`].
fn decode_chain(
    conv: &ConversationRow,
    root_no: i32,
    rows: &[Row],
) -> Result<LoadedRoot, RowError> {
    let mut records: Vec<&[u8]> = Vec::with_capacity(rows.len());
    let mut whole = None;
    let mut next = Some(root_no);
    for row in rows {
        let number: i32 = get_column(row, 0)?;
        if next != Some(number) {
            // Belongs to another root.
            continue;
        }
        let body: &[u8] = get_column(row, 5)?;
        if row_checksum(body) != get_bytes(row, 4)? {
            let why = "its bytes do not match their hash";
            return Err(conv
                .damaged_error("state", format!("root {number}"), why)
                .into());
        }
        if whole.is_none() {
            let since: i32 = get_column(row, 3)?;
            whole = Some((
                get_column(row, 2)?,
                usize::try_from(since).unwrap_or(usize::MAX),
            ));
        }
        records.push(body);
        next = get_column(row, 1)?;
    }
    let damaged = |why| conv.damaged_error("state", format!("root {root_no}"), why);
    if next.is_some() {
        return Err(damaged("a part of it is missing").into());
    }
    Ok(LoadedRoot {
        root: decode_root(&records).ok_or_else(|| damaged("it does not decode"))?,
        number: root_no,
        whole,
    })
}

/// Stores the root that a patch made of another one; returns its number.
pub(crate) fn store_root(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    before: &LoadedRoot,
    merged: Merged,
) -> Result<i32, RowError> {
    let record = encode_root(
        &merged.root,
        &merged.changed,
        before.whole.map(|(_, since)| since),
    );
    let number = next_number(&mut conv.next_root, 1, "state roots")?;
    // Each value once, though several entries may have it.
    let values: BTreeMap<ContentHash, Arc<[u8]>> = merged.values.into_iter().collect();
    let (hashes, values): (Vec<_>, Vec<_>) = values.into_iter().unzip();
    // A redacted value that is written again is stored again.
    tx.execute_on_commit(
        "INSERT INTO contexture.state_values AS old (conversation, hash, codec, value) \
         SELECT $1, added.hash, 0, added.value FROM unnest($2, $3) AS added (hash, value) \
         ON CONFLICT (conversation, hash) DO UPDATE SET value = EXCLUDED.value \
         WHERE old.value IS NULL",
        params![conv.key, hashes, values],
    );
    let whole_no = match before.whole {
        Some((whole_no, _)) if !record.whole => whole_no,
        _ => number,
    };
    tx.execute_on_commit(
        "INSERT INTO contexture.roots \
         (conversation, root_no, whole_no, base, since_whole, body_check, body) \
         VALUES ($1, $2, $3, $4, $5, $6, $7)",
        params![
            conv.key,
            number,
            whole_no,
            (!record.whole).then_some(before.number),
            i32::try_from(record.since_whole).unwrap_or(i32::MAX),
            row_checksum(&record.body),
            crate::connection::params::Bytea::Own(record.body),
        ],
    );
    Ok(number)
}

/// Reads the state of a root.
pub(crate) async fn read_state(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    root_no: i32,
    request: &StateRequest,
) -> Result<NodeState, RowError> {
    let mut root = load_root(tx, conv, root_no).await?.root;
    root.retain(|key, _| key.as_str().starts_with(&request.prefix));
    let mut values = BTreeMap::new();
    if request.values == StateValues::Load && !root.is_empty() {
        let wanted: Vec<ContentHash> = root.values().map(|entry| entry.hash).collect();
        let stored = load_values(tx, conv, wanted).await?;
        for (key, entry) in &root {
            let damaged = || conv.damaged_error("state", key, "its value is missing or damaged");
            // Redacted values are left out.
            if let Some(value) = stored.get(&entry.hash).ok_or_else(damaged)? {
                values.insert(entry.hash, Arc::clone(value));
            }
        }
    }
    Ok(NodeState { root, values })
}

/// Reads values by hash, `None` for redacted ones; damaged ones are left out.
pub(crate) async fn load_values(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    wanted: Vec<ContentHash>,
) -> Result<BTreeMap<ContentHash, Option<Arc<[u8]>>>, RowError> {
    let rows = tx
        .query_rows(
            "SELECT hash, value FROM contexture.state_values \
             WHERE conversation = $1 AND hash = ANY ($2)",
            params![conv.key, wanted],
        )
        .await?;
    let mut values = BTreeMap::new();
    for row in &rows {
        let hash = ContentHash::from_bytes(get_bytes(row, 0)?);
        let value: Option<&[u8]> = get_column(row, 1)?;
        if value.is_none_or(|value| ContentHash::of(value) == hash) {
            values.insert(hash, value.map(Arc::from));
        }
    }
    Ok(values)
}
