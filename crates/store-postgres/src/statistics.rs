//! What a conversation takes.

use contexture_ir::{ConversationId, Owner};
use contexture_store::{Amount, NodeKind, Statistics};
use futures_util::future::{try_join, try_join4};
use tokio_postgres::Row;

use crate::conv::Conv;
use crate::fault::Fault;
use crate::param::{Bytea, Param, params};
use crate::row::get;
use crate::tx::Tx;

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

/// Counts a conversation's rows and their bytes, as the server keeps them: compressed where it
/// compresses, without the columns beside them, rows' heads and indexes.
pub(crate) async fn statistics(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Statistics, Fault> {
    let conv = Conv::see(tx, owner, id).await?;
    let entries = params![owner.as_str(), Bytea::Text(id.as_str().into())];
    let amounts = try_join4(
        one(tx, ROOTS, params![conv.key]),
        one(tx, VALUES, params![conv.key]),
        one(tx, BLOBS, params![conv.key]),
        one(tx, ENTRIES, entries),
    );
    let others = try_join(
        tx.rows(NODES, params![conv.key]),
        tx.rows(ROWS, params![conv.key]),
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
        let code: i16 = get(row, 2)?;
        let kind = u8::try_from(code).ok().and_then(NodeKind::from_code);
        let unknown = || conv.damaged("node", format!("kind {code}"), "unknown kind");
        statistics
            .nodes
            .insert(kind.ok_or_else(unknown)?, amount(row)?);
    }
    if let Some(row) = rows.first() {
        statistics.names = sum(row, 0)?;
        statistics.events = sum(row, 1)?;
        statistics.segments = sum(row, 2)?;
    }
    Ok(statistics)
}

async fn one(tx: &Tx<'_>, sql: &str, params: Vec<Param>) -> Result<Amount, Fault> {
    let row = tx.row(sql, params).await?;
    row.map_or(Ok(Amount::default()), |row| amount(&row))
}

fn amount(row: &Row) -> Result<Amount, Fault> {
    Ok(Amount {
        count: sum(row, 0)?,
        bytes: sum(row, 1)?,
    })
}

/// A count or a sum; the sum of nothing is null.
fn sum(row: &Row, index: usize) -> Result<u64, Fault> {
    let number: Option<i64> = get(row, index)?;
    Ok(number.map_or(0, |number| u64::try_from(number).unwrap_or(0)))
}
