//! Events as rows.

use contexture_ir::{BranchName, CheckpointName, ConversationId, NodeId, Owner};
use contexture_store::{Event, EventKind, Fence};
use futures_util::future::try_join;
use tokio_postgres::Row;

use crate::connection::error::RowError;
use crate::connection::params::{get_bytes_or_null, get_column, get_count, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::{ConversationKey, ConversationRow};
use crate::rows::node_row::fence_number;

/// A row's columns after its key and time.
#[derive(Default)]
struct EventColumns<'a> {
    code: i16,
    name: Option<&'a str>,
    other: Option<&'a str>,
    node: Option<NodeId>,
    number: Option<i64>,
}

fn encode_kind(kind: &EventKind) -> EventColumns<'_> {
    let number = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
    let plain = |code| EventColumns {
        code,
        ..EventColumns::default()
    };
    let named = |code, name| EventColumns {
        name: Some(name),
        ..plain(code)
    };
    match kind {
        EventKind::Created => plain(0),
        EventKind::Updated => plain(1),
        EventKind::Appended {
            branch,
            head,
            count,
        } => EventColumns {
            node: Some(*head),
            number: number(*count),
            ..named(2, branch.as_str())
        },
        EventKind::BranchCreated { branch, base } => EventColumns {
            node: *base,
            ..named(3, branch.as_str())
        },
        EventKind::BranchActivated { branch } => named(4, branch.as_str()),
        EventKind::BranchDeleted { branch } => named(5, branch.as_str()),
        EventKind::BranchClaimed { branch, fence } => EventColumns {
            number: Some(fence_number(*fence)),
            ..named(6, branch.as_str())
        },
        EventKind::CheckpointSet { checkpoint, node } => EventColumns {
            node: Some(*node),
            ..named(7, checkpoint.as_str())
        },
        EventKind::CheckpointDeleted { checkpoint } => named(8, checkpoint.as_str()),
        EventKind::BranchRenamed { from, to } => EventColumns {
            other: Some(to.as_str()),
            ..named(9, from.as_str())
        },
        EventKind::NodeRedacted { node } => EventColumns {
            node: Some(*node),
            ..plain(10)
        },
        EventKind::BytesRedacted { count } => EventColumns {
            number: number(*count),
            ..plain(11)
        },
        // The enum may grow; a kind this backend does not know is recorded as an update.
        _ => plain(1),
    }
}

fn decode_kind(row: &Row) -> Result<Option<EventKind>, RowError> {
    let code: i16 = get_column(row, 2)?;
    let name: Option<&str> = get_column(row, 3)?;
    let name = name.unwrap_or_default();
    let node = get_bytes_or_null(row, 4)?.map(NodeId::from_bytes);
    let number: Option<i64> = get_column(row, 5)?;
    let other: Option<&str> = get_column(row, 6)?;
    let number = number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let branch = || BranchName::new(name).ok();
    let checkpoint = || CheckpointName::new(name).ok();
    let read = || {
        Some(match code {
            0 => EventKind::Created,
            1 => EventKind::Updated,
            2 => EventKind::Appended {
                branch: branch()?,
                head: node?,
                count: number,
            },
            3 => EventKind::BranchCreated {
                branch: branch()?,
                base: node,
            },
            4 => EventKind::BranchActivated { branch: branch()? },
            5 => EventKind::BranchDeleted { branch: branch()? },
            6 => EventKind::BranchClaimed {
                branch: branch()?,
                fence: Fence(number),
            },
            7 => EventKind::CheckpointSet {
                checkpoint: checkpoint()?,
                node: node?,
            },
            8 => EventKind::CheckpointDeleted {
                checkpoint: checkpoint()?,
            },
            9 => EventKind::BranchRenamed {
                from: branch()?,
                to: BranchName::new(other?).ok()?,
            },
            10 => EventKind::NodeRedacted { node: node? },
            11 => EventKind::BytesRedacted { count: number },
            _ => return None,
        })
    };
    Ok(read())
}

/// Records an event; the conversation's row is to be saved afterwards.
pub(crate) fn record_event(
    tx: &mut Tx<'_>,
    conv: &mut ConversationRow,
    at_ms: i64,
    kind: &EventKind,
) {
    let row = encode_kind(kind);
    tx.execute_on_commit(
        "INSERT INTO contexture.events (conversation, event, at_ms, kind, name, other, node, number) \
         VALUES ($1, $2, $3, $4, $5, $6, $7, $8)",
        params![
            conv.key,
            conv.next_event,
            at_ms,
            row.code,
            row.name,
            row.other,
            row.node,
            row.number
        ],
    );
    conv.next_event = conv.next_event.saturating_add(1);
    conv.updated_ms = at_ms;
}

/// The events after number `after`.
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
