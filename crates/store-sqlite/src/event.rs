//! Events as rows.

use contexture_ir::{BranchName, CheckpointName, NodeId};
use contexture_store::{Event, EventKind, Fence};
use rusqlite::{Connection, Row, params};

use crate::conv::Conv;
use crate::fault::Fault;
use crate::path::{key, keys};

/// A row's columns after its key and time.
type Columns<'a> = (u8, Option<&'a str>, Option<&'a [u8; 16]>, Option<i64>);

fn columns(kind: &EventKind) -> Columns<'_> {
    let number = |n: u64| Some(i64::try_from(n).unwrap_or(i64::MAX));
    match kind {
        EventKind::Created => (0, None, None, None),
        EventKind::Updated => (1, None, None, None),
        EventKind::Appended {
            branch,
            head,
            count,
        } => (
            2,
            Some(branch.as_str()),
            Some(head.as_bytes()),
            number(*count),
        ),
        EventKind::BranchCreated { branch, base } => (
            3,
            Some(branch.as_str()),
            base.as_ref().map(NodeId::as_bytes),
            None,
        ),
        EventKind::BranchActivated { branch } => (4, Some(branch.as_str()), None, None),
        EventKind::BranchDeleted { branch } => (5, Some(branch.as_str()), None, None),
        EventKind::BranchClaimed { branch, fence } => {
            (6, Some(branch.as_str()), None, number(fence.0))
        }
        EventKind::CheckpointSet { checkpoint, node } => {
            (7, Some(checkpoint.as_str()), Some(node.as_bytes()), None)
        }
        EventKind::CheckpointDeleted { checkpoint } => (8, Some(checkpoint.as_str()), None, None),
        // The enum may grow; a kind this backend does not know is recorded as an update.
        _ => (1, None, None, None),
    }
}

fn kind(row: &Row<'_>) -> rusqlite::Result<Option<EventKind>> {
    let name: Option<String> = row.get(3)?;
    let name = name.unwrap_or_default();
    let node = row.get::<_, Option<[u8; 16]>>(4)?.map(NodeId::from_bytes);
    let number: Option<i64> = row.get(5)?;
    let number = number.and_then(|n| u64::try_from(n).ok()).unwrap_or(0);
    let branch = || BranchName::new(&name).ok();
    let checkpoint = || CheckpointName::new(&name).ok();
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
            _ => return None,
        })
    };
    Ok(read())
}

/// Records an event; the conversation's row is to be saved afterwards.
pub(crate) fn record(
    conn: &Connection,
    conv: &mut Conv,
    at_ms: i64,
    kind: &EventKind,
) -> Result<(), Fault> {
    let (code, name, node, number) = columns(kind);
    conn.prepare_cached("INSERT INTO events VALUES (?, ?, ?, ?, ?, ?)")?
        .execute(params![
            key(conv.no, conv.next_event),
            at_ms,
            code,
            name,
            node,
            number
        ])?;
    conv.next_event = conv.next_event.saturating_add(1);
    conv.updated_ms = at_ms;
    Ok(())
}

/// The events after number `after`.
pub(crate) fn since(
    conn: &Connection,
    conv: &Conv,
    after: u64,
    limit: usize,
) -> Result<Vec<Event>, Fault> {
    let after = u32::try_from(after).unwrap_or(u32::MAX);
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let mut statement = conn.prepare_cached(
        "SELECT id, at_ms, kind, name, node, number FROM events \
         WHERE id > ? AND id <= ? ORDER BY id LIMIT ?",
    )?;
    let mut rows = statement.query(params![key(conv.no, after), keys(conv.no).1, limit])?;
    let mut events = Vec::new();
    while let Some(row) = rows.next()? {
        let seq = u64::from(row.get::<_, i64>(0)? as u32);
        let Some(kind) = kind(row)? else {
            return Err(conv
                .damaged("event", seq, "unknown kind or bad name")
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
