//! Statistics of a conversation: rows and the bytes of their content.

use contexture_ir::{ConversationId, Owner};
use contexture_store::{NodeKind, OwnerSize, Statistics, StorageAmount};
use futures_util::future::{try_join, try_join4};
use tokio_postgres::Row;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{Bytea, Param, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::ConversationRow;

const NODES: &str = "SELECT count(*), sum(pg_column_size(item)), kind FROM contexture.nodes \
     WHERE conversation = $1 GROUP BY kind";

const ROOTS: &str =
    "SELECT count(*), sum(pg_column_size(body)) FROM contexture.roots WHERE conversation = $1";

const VALUES: &str = "SELECT count(*), sum(pg_column_size(value)) FROM contexture.state_values \
     WHERE conversation = $1";

const BLOBS: &str =
    "SELECT count(*), sum(pg_column_size(bytes)) FROM contexture.blobs WHERE conversation = $1";

const ENTRIES: &str = "SELECT count(*), sum(pg_column_size(value)) FROM contexture.key_values \
     WHERE owner = $1 AND scope_kind = 2 AND scope = $2 AND value IS NOT NULL";

const ROWS: &str = "SELECT (SELECT count(*) FROM contexture.branches WHERE conversation = $1) \
     + (SELECT count(*) FROM contexture.checkpoints WHERE conversation = $1), \
     (SELECT count(*) FROM contexture.events WHERE conversation = $1), \
     (SELECT count(*) FROM contexture.segments WHERE conversation = $1)";

/// Counts a conversation's rows and the bytes of their content as the server stores them: after its
/// compression, without other columns, row headers and indexes.
pub(crate) async fn read_statistics(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Statistics, RowError> {
    let conv = ConversationRow::load_for_read(tx, owner, id).await?;
    let entries = params![owner.as_str(), Bytea::Text(id.as_str().into())];
    let amounts = try_join4(
        query_amount(tx, ROOTS, params![conv.key]),
        query_amount(tx, VALUES, params![conv.key]),
        query_amount(tx, BLOBS, params![conv.key]),
        query_amount(tx, ENTRIES, entries),
    );
    let others = try_join(
        tx.query_rows(NODES, params![conv.key]),
        tx.query_rows(ROWS, params![conv.key]),
    );
    let ((roots, values, blobs, entries), (nodes, rows)) = try_join(amounts, others).await?;
    let mut statistics = Statistics {
        roots,
        values,
        blobs,
        entries,
        ..Statistics::default()
    };
    for row in &nodes {
        let code: i16 = get_column(row, 2)?;
        let kind = u8::try_from(code).ok().and_then(NodeKind::from_code);
        let unknown = || conv.damaged_error("node", format!("kind {code}"), "unknown kind");
        statistics
            .nodes
            .insert(kind.ok_or_else(unknown)?, decode_amount(row)?);
    }
    if let Some(row) = rows.first() {
        statistics.names = sum_column(row, 0)?;
        statistics.events = sum_column(row, 1)?;
        statistics.segments = sum_column(row, 2)?;
    }
    Ok(statistics)
}

const NEXT_OWNER: &str = "SELECT min(owner) FROM contexture.conversations WHERE owner > $1";

const OWNER: &str = "SELECT count(*), sum(nodes)::bigint, (SELECT sum(pg_column_size(item)) \
     FROM contexture.nodes WHERE conversation IN \
     (SELECT conversation FROM contexture.conversations WHERE owner = $1)) \
     FROM contexture.conversations WHERE owner = $1";

/// Lists owners in order of their names, with what each has stored.
pub(crate) async fn list_owners(
    tx: &Tx<'_>,
    after: Option<&Owner>,
    limit: usize,
) -> Result<Vec<OwnerSize>, RowError> {
    // No owner has an empty name.
    let mut last = after.map_or("", Owner::as_str).to_owned();
    let mut owners = Vec::new();
    while owners.len() < limit {
        let next = tx.query_row(NEXT_OWNER, params![last.as_str()]).await?;
        let next: Option<String> = next.map_or(Ok(None), |row| get_column(&row, 0))?;
        let Some(next) = next else { break };
        let row = tx.query_row(OWNER, params![next.as_str()]).await?;
        let amount = |index| row.as_ref().map_or(Ok(0), |row| sum_column(row, index));
        owners.push(OwnerSize {
            owner: Owner::new(next.as_str()).map_err(|error| corrupt_error(error.to_string()))?,
            conversations: amount(0)?,
            nodes: amount(1)?,
            bytes: amount(2)?,
        });
        last = next;
    }
    Ok(owners)
}

async fn query_amount(
    tx: &Tx<'_>,
    sql: &str,
    params: Vec<Param>,
) -> Result<StorageAmount, RowError> {
    let row = tx.query_row(sql, params).await?;
    row.map_or(Ok(StorageAmount::default()), |row| decode_amount(&row))
}

fn decode_amount(row: &Row) -> Result<StorageAmount, RowError> {
    Ok(StorageAmount {
        count: sum_column(row, 0)?,
        bytes: sum_column(row, 1)?,
    })
}

/// Reads a count or a sum; the sum of no rows is null.
fn sum_column(row: &Row, index: usize) -> Result<u64, RowError> {
    let number: Option<i64> = get_column(row, index)?;
    Ok(number.map_or(0, |number| u64::try_from(number).unwrap_or(0)))
}
