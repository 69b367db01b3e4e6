//! Statistics of a conversation: rows and the bytes of their content, table by table.
//!
//! Not here: adding up conversations or owners, which the caller does.

use contexture_store::{NodeKind, Statistics, StorageAmount};
use rusqlite::{Connection, Row, ToSql};

use crate::error::RowError;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::path::key_range;

/// Reads a count or a sum; the sum of no rows is `NULL`.
pub(super) fn unsigned_column(row: &Row<'_>, column: usize) -> rusqlite::Result<u64> {
    let number = row.get::<_, Option<i64>>(column)?.unwrap_or(0);
    Ok(u64::try_from(number).unwrap_or(0))
}

/// Counts the rows of a conversation.
pub(crate) fn read_statistics(
    conn: &Connection,
    conv: &ConversationRow,
) -> Result<Statistics, RowError> {
    let (first, last) = key_range(conv.no);
    // Tables whose keys begin with the conversation's number, and those with the number in a column.
    let of_key = |content: &str, table: &str| {
        let sql = format!("SELECT count(*), sum({content}) FROM {table} WHERE id BETWEEN ? AND ?");
        read_amount(conn, &sql, &[&first, &last])
    };
    let of_column = |content: &str, table: &str| {
        let sql = format!("SELECT count(*), sum({content}) FROM {table} WHERE conversation_no = ?");
        read_amount(conn, &sql, &[&conv.no])
    };
    let mut statistics = Statistics::default();
    count_nodes(conn, conv, &mut statistics)?;
    statistics.roots = of_key("length(body)", "roots")?;
    statistics.values = of_column("length(value)", "state_values")?;
    statistics.blobs = of_column("length(bytes)", "blobs")?;
    statistics.entries = read_amount(
        conn,
        "SELECT count(*), sum(length(value)) FROM key_values \
         WHERE owner = ? AND scope_kind = 2 AND scope = ? AND value IS NOT NULL",
        &[&conv.owner.as_str(), &conv.id.as_str()],
    )?;
    statistics.names = of_key("0", "branches")?.count + of_column("0", "checkpoints")?.count;
    statistics.events = of_key("0", "events")?.count;
    statistics.segments = of_key("0", "segments")?.count;
    Ok(statistics)
}

fn count_nodes(
    conn: &Connection,
    conv: &ConversationRow,
    statistics: &mut Statistics,
) -> Result<(), RowError> {
    let (first, last) = key_range(conv.no);
    let mut statement = conn.prepare_cached(
        "SELECT kind, count(*), sum(length(item)) FROM nodes WHERE id BETWEEN ? AND ? GROUP BY kind",
    )?;
    let mut rows = statement.query([first, last])?;
    while let Some(row) = rows.next()? {
        let kind = row.get::<_, u8>(0)?;
        let kind = NodeKind::from_code(kind)
            .ok_or_else(|| conv.damaged_error("node", format!("kind {kind}"), "unknown kind"))?;
        statistics.nodes.insert(kind, decode_amount(row, 1)?);
    }
    Ok(())
}

/// Runs a statement whose only row is a count and a sum of bytes.
fn read_amount(
    conn: &Connection,
    sql: &str,
    bound: &[&dyn ToSql],
) -> Result<StorageAmount, RowError> {
    let mut statement = conn.prepare_cached(sql)?;
    Ok(statement.query_row(bound, |row| decode_amount(row, 0))?)
}

fn decode_amount(row: &Row<'_>, column: usize) -> rusqlite::Result<StorageAmount> {
    Ok(StorageAmount {
        count: unsigned_column(row, column)?,
        bytes: unsigned_column(row, column + 1)?,
    })
}
