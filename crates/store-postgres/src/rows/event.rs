//! Events as rows.

use contexture_ir::{ConversationId, NodeId, Owner};
use contexture_store::rules::EventColumns;
use contexture_store::{Event, EventKind};
use futures_util::future::try_join;
use tokio_postgres::Row;

use crate::connection::error::RowError;
use crate::connection::params::{get_bytes_or_null, get_column, get_count, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};

fn decode_kind(row: &Row) -> Result<Option<EventKind>, RowError> {
    let columns = EventColumns {
        // A code that does not fit one byte is unknown.
        code: u8::try_from(get_column::<i16>(row, 2)?).unwrap_or(u8::MAX),
        name: get_column(row, 3)?,
        other: get_column(row, 6)?,
        node: get_bytes_or_null(row, 4)?.map(NodeId::from_bytes),
        number: get_column(row, 5)?,
    };
    Ok(columns.to_kind())
}

/// Records an event; the caller must save the conversation's row afterwards.
pub(crate) fn record_event(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    at_ms: i64,
    kind: &EventKind,
) {
    let columns = EventColumns::from_kind(kind);
    tx.execute_on_commit(
        "INSERT INTO contexture.events (conversation, event, at_ms, kind, name, other, node, number) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        params![
            conv.key,
            conv.next_event,
            at_ms,
            i16::from(columns.code),
            columns.name,
            columns.other,
            columns.node,
            columns.number
        ],
    );
    // The update time is set here, so that no change that records an event can forget it.
    conv.next_event = conv.next_event.saturating_add(1);
    conv.updated_ms = at_ms;
}

/// Lists the events after number `after`.
pub(crate) async fn list_events(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, RowError> {
    let key = ConversationKey::of(owner, id).into_bytes();
    let after = i32::try_from(after).unwrap_or(i32::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let rows = tx.query_rows(
        "SELECT event, at_ms, kind, name, node, number, other FROM contexture.events \
         WHERE conversation = $1 AND event > $2 ORDER BY event LIMIT $3",
        params![key, after, limit],
    );
    let (conv, rows) = try_join(ConversationRow::load_for_read(tx, owner, id), rows).await?;
    let mut events = Vec::with_capacity(rows.len());
    for row in &rows {
        let seq = get_count(row, 0)?;
        let Some(kind) = decode_kind(row)? else {
            let why = "unknown kind or bad name";
            return Err(conv.damaged_error("event", seq, why).into());
        };
        events.push(Event {
            seq,
            at_ms: get_column(row, 1)?,
            kind,
        });
    }
    Ok(events)
}
