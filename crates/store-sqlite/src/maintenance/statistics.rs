//! Statistics of a conversation: rows and the bytes of their content, table by table; and what each owner has.

use contexture_ir::Owner;
use contexture_store::{NodeKind, OwnerSize, Statistics, StorageAmount};
use rusqlite::{Connection, Row, ToSql};

use crate::error::{RowError, corrupt_error};
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

/// Lists owners in order of their names, with what each has stored.
pub(crate) fn list_owners(
    conn: &Connection,
    after: Option<&Owner>,
    limit: usize,
) -> Result<Vec<OwnerSize>, RowError> {
    let mut find_next =
        conn.prepare_cached("SELECT min(owner) FROM conversations WHERE owner > ?")?;
    let mut count =
        conn.prepare_cached("SELECT count(*), sum(nodes) FROM conversations WHERE owner = ?")?;
    let mut measure = conn.prepare_cached(
        "SELECT sum(length(item)) FROM conversations \
         JOIN nodes ON nodes.id BETWEEN no << 32 AND (no << 32) + 4294967295 WHERE owner = ?",
    )?;
    // No owner has an empty name.
    let mut last = after.map_or("", Owner::as_str).to_owned();
    let mut owners = Vec::new();
    while owners.len() < limit {
        let next: Option<String> = find_next.query_row([&last], |row| row.get(0))?;
        let Some(next) = next else { break };
        let (conversations, nodes) = count.query_row([&next], |row| {
            Ok((unsigned_column(row, 0)?, unsigned_column(row, 1)?))
        })?;
        owners.push(OwnerSize {
            owner: Owner::new(next.as_str()).map_err(|error| corrupt_error(error.to_string()))?,
            conversations,
            nodes,
            bytes: measure.query_row([&next], |row| unsigned_column(row, 0))?,
        });
        last = next;
    }
    Ok(owners)
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
