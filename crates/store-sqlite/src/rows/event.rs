//! Events as rows.

use contexture_ir::{BranchName, CheckpointName, NodeId};
use contexture_store::{Event, EventKind, Fence};
use rusqlite::{Connection, Row, params};

use crate::error::RowError;
use crate::rows::conversation_row::ConversationRow;
use crate::rows::path::{key_range, packed_key};

/// A row's columns after its key and time.
#[derive(Default)]
struct EventColumns<'a> {
    code: u8,
    name: Option<&'a str>,
    node: Option<&'a [u8; 16]>,
    number: Option<i64>,
    other: Option<&'a str>,
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
            node: Some(head.as_bytes()),
            number: number(*count),
            ..named(2, branch.as_str())
        },
        EventKind::BranchCreated { branch, base } => EventColumns {
            node: base.as_ref().map(NodeId::as_bytes),
            ..named(3, branch.as_str())
        },
        EventKind::BranchActivated { branch } => named(4, branch.as_str()),
        EventKind::BranchDeleted { branch } => named(5, branch.as_str()),
        EventKind::BranchClaimed { branch, fence } => EventColumns {
            number: number(fence.0),
            ..named(6, branch.as_str())
        },
        EventKind::CheckpointSet { checkpoint, node } => EventColumns {
            node: Some(node.as_bytes()),
            ..named(7, checkpoint.as_str())
        },
        EventKind::CheckpointDeleted { checkpoint } => named(8, checkpoint.as_str()),
        EventKind::BranchRenamed { from, to } => EventColumns {
            other: Some(to.as_str()),
            ..named(9, from.as_str())
        },
        EventKind::NodeRedacted { node } => EventColumns {
            node: Some(node.as_bytes()),
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

fn decode_kind(row: &Row<'_>) -> rusqlite::Result<Option<EventKind>> {
    let name: Option<String> = row.get(3)?;
    let name = name.unwrap_or_default();
    let node = row.get::<_, Option<[u8; 16]>>(4)?.map(NodeId::from_bytes);
    let number: Option<i64> = row.get(5)?;
    let number = number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let other: Option<String> = row.get(6)?;
    let branch = || BranchName::new(&name).ok();
    let checkpoint = || CheckpointName::new(&name).ok();
    // Codes are never given a new meaning, so files of older versions stay readable.
    let read = || {
        Some(match row.get::<_, u8>(2).ok()? {
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
                to: BranchName::new(other.as_deref()?).ok()?,
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
    conn: &Connection,
    conv: &mut ConversationRow,
    at_ms: i64,
    kind: &EventKind,
) -> Result<(), RowError> {
    let columns = encode_kind(kind);
    conn.prepare_cached("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?, ?)")?
        .execute(params![
            packed_key(conv.no, conv.next_event),
            at_ms,
            columns.code,
            columns.name,
            columns.node,
            columns.number,
            columns.other
        ])?;
    // The conversation changes with every event, so its time is set here and the list of latest
    // conversations cannot lag behind.
    conv.next_event = conv.next_event.saturating_add(1);
    conv.updated_ms = at_ms;
    Ok(())
}

/// The events after number `after`.
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
