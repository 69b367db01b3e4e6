//! Processes and their exchanges as rows.
//!
//! Not here: the calls of the contract (`store`).

use contexture_ir::{ConversationId, Owner, PathHash, ProcessId};
use contexture_store::{ExchangeChange, ExchangeMark, PendingExchange, ProcessBeat};
use tokio_postgres::Row;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{get_bytes, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::ConversationRow;

/// Raises the number of a process.
pub(crate) async fn beat(tx: &mut Tx<'_>, process: ProcessId) -> Result<u64, RowError> {
    tx.execute(
        "INSERT INTO contexture.processes AS p (process, beat) VALUES ($1, 1) \
         ON CONFLICT (process) DO UPDATE SET beat = p.beat + 1",
        params![process],
    )
    .await?;
    let rows = find_processes(tx, Some(vec![process])).await?;
    Ok(rows.first().map_or(0, |row| row.beat))
}

/// Reads the rows of some processes, or of all.
pub(crate) async fn find_processes(
    tx: &Tx<'_>,
    processes: Option<Vec<ProcessId>>,
) -> Result<Vec<ProcessBeat>, RowError> {
    let rows = tx
        .query_rows(
            "SELECT process, beat FROM contexture.processes \
             WHERE $1 IS NULL OR process = ANY ($1) ORDER BY process",
            params![processes],
        )
        .await?;
    rows.iter().map(decode_process).collect()
}

fn decode_process(row: &Row) -> Result<ProcessBeat, RowError> {
    Ok(ProcessBeat {
        process: ProcessId::from_bytes(get_bytes(row, 0)?),
        beat: u64::try_from(get_column::<i64>(row, 1)?).unwrap_or(0),
        // A connection that breaks tells nothing: it may be the network's fault.
        is_gone: false,
    })
}

/// Removes the processes that still have the given number; returns how many.
pub(crate) async fn remove_processes(
    tx: &mut Tx<'_>,
    dead: &[ProcessBeat],
) -> Result<u64, RowError> {
    let beat = |one: &ProcessBeat| i64::try_from(one.beat).unwrap_or(i64::MAX);
    let ids: Vec<ProcessId> = dead.iter().map(|one| one.process).collect();
    let beats: Vec<i64> = dead.iter().map(beat).collect();
    let removed = tx
        .execute(
            "DELETE FROM contexture.processes WHERE (process, beat) IN \
             (SELECT dead.process, dead.beat FROM unnest($1, $2) AS dead (process, beat))",
            params![ids.clone(), beats],
        )
        .await?;
    // A table of the exchanges under way is short, so it needs no index for this.
    tx.execute_on_commit(
        "DELETE FROM contexture.exchanges e WHERE process = ANY ($1) AND NOT EXISTS \
         (SELECT FROM contexture.processes p WHERE p.process = e.process)",
        params![ids],
    );
    Ok(removed)
}

/// Stores or removes the mark of an exchange.
pub(crate) fn change_exchange(
    tx: &mut Tx<'_>,
    conversation: &ConversationRow,
    change: ExchangeChange,
) {
    let mark = change.mark();
    let owner = conversation.owner.as_str();
    let number = i64::try_from(mark.number).unwrap_or(i64::MAX);
    match change {
        ExchangeChange::Begin(_) => tx.execute_on_commit(
            "INSERT INTO contexture.exchanges (owner, path_hash, process, number, conversation) \
             VALUES ($1, $2, $3, $4, $5) ON CONFLICT DO NOTHING",
            params![owner, mark.hash, mark.process, number, conversation.key],
        ),
        ExchangeChange::End(_) => tx.execute_on_commit(
            "DELETE FROM contexture.exchanges \
             WHERE owner = $1 AND path_hash = $2 AND process = $3 AND number = $4",
            params![owner, mark.hash, mark.process, number],
        ),
    }
}

/// Stores or removes the mark of an exchange outside an append.
pub(crate) async fn change_exchange_alone(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    change: ExchangeChange,
) -> Result<(), RowError> {
    // Read and not locked: a mark of a conversation that is deleted meanwhile goes with its process.
    let conversation = ConversationRow::load_for_read(tx, owner, id).await?;
    change_exchange(tx, &conversation, change);
    Ok(())
}

/// Finds an owner's exchanges by what they ask; with `None` all.
pub(crate) async fn find_exchanges(
    tx: &Tx<'_>,
    owner: &Owner,
    hashes: Option<Vec<PathHash>>,
) -> Result<Vec<PendingExchange>, RowError> {
    let rows = tx
        .query_rows(
            "SELECT e.path_hash, e.process, e.number, c.id FROM contexture.exchanges e \
             JOIN contexture.conversations c ON c.conversation = e.conversation \
             WHERE e.owner = $1 AND ($2 IS NULL OR e.path_hash = ANY ($2)) \
             ORDER BY e.path_hash, e.process, e.number",
            params![owner.as_str(), hashes],
        )
        .await?;
    rows.iter().map(decode_exchange).collect()
}

fn decode_exchange(row: &Row) -> Result<PendingExchange, RowError> {
    let conversation = ConversationId::new(get_column::<&str>(row, 3)?);
    Ok(PendingExchange {
        conversation: conversation.map_err(|error| corrupt_error(error.to_string()))?,
        mark: ExchangeMark {
            hash: PathHash::from_bytes(get_bytes(row, 0)?),
            process: ProcessId::from_bytes(get_bytes(row, 1)?),
            number: u64::try_from(get_column::<i64>(row, 2)?).unwrap_or(0),
        },
    })
}
