//! Processes and their exchanges as rows.
//!
//! Not here: how the file system tells that a process has ended (`process_locks`), the calls of the contract (`store`).

use contexture_ir::{ConversationId, Owner, PathHash, ProcessId};
use contexture_store::{ExchangeChange, ExchangeMark, PendingExchange, ProcessBeat};
use rusqlite::{Connection, OptionalExtension as _, Row, params};

use crate::error::{RowError, corrupt_error};
use crate::rows::conversation_row::ConversationRow;

/// A process as stored.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ProcessRow {
    pub(crate) process: ProcessId,
    pub(crate) beat: u64,
    /// Whether it held the lock of its file when it was registered.
    pub(crate) is_locked: bool,
}

impl ProcessRow {
    fn decode(row: &Row<'_>) -> rusqlite::Result<Self> {
        Ok(Self {
            process: ProcessId::from_bytes(row.get(0)?),
            beat: u64::try_from(row.get::<_, i64>(1)?).unwrap_or(0),
            is_locked: row.get(2)?,
        })
    }
}

/// Raises the number of a process.
pub(crate) fn beat(
    conn: &Connection,
    process: ProcessId,
    is_locked: bool,
) -> Result<u64, RowError> {
    let beat: i64 = conn
        .prepare_cached(
            "INSERT INTO processes VALUES (?1, 1, ?2) \
             ON CONFLICT DO UPDATE SET beat = beat + 1, locked = ?2 RETURNING beat",
        )?
        .query_row(params![process.as_bytes(), is_locked], |row| row.get(0))?;
    Ok(u64::try_from(beat).unwrap_or(0))
}

/// Reads the rows of some processes.
pub(crate) fn find_processes(
    conn: &Connection,
    processes: &[ProcessId],
) -> Result<Vec<ProcessRow>, RowError> {
    let mut statement =
        conn.prepare_cached("SELECT id, beat, locked FROM processes WHERE id = ?")?;
    let mut found = Vec::new();
    for process in processes {
        let row = statement.query_row([process.as_bytes()], ProcessRow::decode);
        found.extend(row.optional()?);
    }
    Ok(found)
}

/// Reads the rows of all processes.
pub(crate) fn list_processes(conn: &Connection) -> Result<Vec<ProcessRow>, RowError> {
    let mut statement =
        conn.prepare_cached("SELECT id, beat, locked FROM processes ORDER BY id")?;
    let rows = statement.query_map([], ProcessRow::decode)?;
    Ok(rows.collect::<Result<_, _>>()?)
}

/// Removes the processes that still have the given number; returns those that were removed.
pub(crate) fn remove_processes(
    conn: &Connection,
    dead: &[ProcessBeat],
) -> Result<Vec<ProcessId>, RowError> {
    let mut removed = Vec::new();
    for one in dead {
        let id = one.process.as_bytes();
        let beat = i64::try_from(one.beat).unwrap_or(i64::MAX);
        let gone = conn
            .prepare_cached("DELETE FROM processes WHERE id = ? AND beat = ?")?
            .execute(params![id, beat])?;
        if gone > 0 {
            // A table of the exchanges under way is short, so it needs no index for this.
            conn.prepare_cached("DELETE FROM exchanges WHERE process = ?")?
                .execute([id])?;
            removed.push(one.process);
        }
    }
    Ok(removed)
}

/// Stores or removes the mark of an exchange.
pub(crate) fn change_exchange(
    conn: &Connection,
    conversation: &ConversationRow,
    change: ExchangeChange,
) -> Result<(), RowError> {
    let mark = change.mark();
    let owner = conversation.owner.as_str();
    let (hash, process) = (mark.hash.as_bytes(), mark.process.as_bytes());
    let number = i64::try_from(mark.number).unwrap_or(i64::MAX);
    match change {
        ExchangeChange::Begin(_) => conn
            .prepare_cached("INSERT OR IGNORE INTO exchanges VALUES (?, ?, ?, ?, ?)")?
            .execute(params![owner, hash, process, number, conversation.no])?,
        ExchangeChange::End(_) => conn
            .prepare_cached(
                "DELETE FROM exchanges \
                 WHERE owner = ? AND path_hash = ? AND process = ? AND number = ?",
            )?
            .execute(params![owner, hash, process, number])?,
    };
    Ok(())
}

/// Reads marks of one hash, or of all, without those of conversations that are being deleted.
const FIND_EXCHANGES: &str = "SELECT e.path_hash, e.process, e.number, c.id \
     FROM exchanges e JOIN conversations c ON c.no = e.conversation_no \
     WHERE e.owner = ?1 AND e.path_hash = ?2 ORDER BY e.process, e.number";
const LIST_EXCHANGES: &str = "SELECT e.path_hash, e.process, e.number, c.id \
     FROM exchanges e JOIN conversations c ON c.no = e.conversation_no \
     WHERE e.owner = ?1 ORDER BY e.path_hash, e.process, e.number";

/// Finds an owner's exchanges by what they ask; with `None` all.
pub(crate) fn find_exchanges(
    conn: &Connection,
    owner: &Owner,
    hashes: Option<&[PathHash]>,
) -> Result<Vec<PendingExchange>, RowError> {
    let mut found = Vec::new();
    let Some(hashes) = hashes else {
        let mut statement = conn.prepare_cached(LIST_EXCHANGES)?;
        let mut rows = statement.query([owner.as_str()])?;
        while let Some(row) = rows.next()? {
            found.push(decode_exchange(row)?);
        }
        return Ok(found);
    };
    let mut statement = conn.prepare_cached(FIND_EXCHANGES)?;
    let mut hashes = hashes.to_vec();
    hashes.sort_unstable();
    for hash in hashes {
        let mut rows = statement.query(params![owner.as_str(), hash.as_bytes()])?;
        while let Some(row) = rows.next()? {
            found.push(decode_exchange(row)?);
        }
    }
    Ok(found)
}

fn decode_exchange(row: &Row<'_>) -> Result<PendingExchange, RowError> {
    let conversation = ConversationId::new(row.get::<_, String>(3)?);
    Ok(PendingExchange {
        conversation: conversation.map_err(|error| corrupt_error(error.to_string()))?,
        mark: ExchangeMark {
            hash: PathHash::from_bytes(row.get(0)?),
            process: ProcessId::from_bytes(row.get(1)?),
            number: u64::try_from(row.get::<_, i64>(2)?).unwrap_or(0),
        },
    })
}
