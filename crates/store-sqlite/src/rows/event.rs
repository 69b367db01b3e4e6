//! Events as rows.

use contexture_ir::NodeId;
use contexture_store::rules::EventColumns;
use contexture_store::{Event, EventKind};
use rusqlite::{Connection, Row, params};

use crate::error::RowError;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::path::{key_range, packed_key};

fn decode_kind(row: &Row<'_>) -> rusqlite::Result<Option<EventKind>> {
    let (name, other): (Option<String>, Option<String>) = (row.get(3)?, row.get(6)?);
    let columns = EventColumns {
        // A code that does not fit one byte is unknown.
        code: row.get(2).unwrap_or(u8::MAX),
        name: name.as_deref(),
        other: other.as_deref(),
        node: row.get::<_, Option<[u8; 16]>>(4)?.map(NodeId::from_bytes),
        number: row.get(5)?,
    };
    Ok(columns.to_kind())
}

/// Records an event; the caller must save the conversation's row afterwards.
pub(crate) fn record_event(
    conn: &Connection,
    conv: &mut ConversationRow,
    at_ms: i64,
    kind: &EventKind,
) -> Result<(), RowError> {
    let columns = EventColumns::from_kind(kind);
    conn.prepare_cached("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)")?
        .execute(params![
            packed_key(conv.no, conv.next_event),
            at_ms,
            columns.code,
            columns.name,
            columns.node.as_ref().map(NodeId::as_bytes),
            columns.number,
            columns.other
        ])?;
    // The update time is set here, so that no change that records an event can forget it.
    conv.next_event = conv.next_event.saturating_add(1);
    conv.updated_ms = at_ms;
    Ok(())
}

/// Lists the events after number `after`.
pub(crate) fn list_events(
    conn: &Connection,
    conv: &ConversationRow,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, RowError> {
    let after = u32::try_from(after).unwrap_or(u32::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(
        "SELECT id, at_ms, kind, name, node, number, other FROM events \
         WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
    )?;
    let mut rows = statement.query(params![
        packed_key(conv.no, after),
        key_range(conv.no).1,
        limit
    ])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = u64::from(row.get::<_, i64>(0)? as u32);
        let Some(kind) = decode_kind(row)? else {
            return Err(conv
                .damaged_error("event", seq, "unknown kind or bad name")
                .into());
        };
        events.push(Event {
            seq,
            at_ms: row.get(1)?,
            kind,
        });
    }
    Ok(events)
}
