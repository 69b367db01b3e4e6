//! [`Processes`] on SQLite: a process that has ended is known by the lock of its file.

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, PathHash, ProcessId};
use contexture_store::{Error, ExchangeChange, PendingExchange, ProcessBeat, Processes, rules};

use crate::processes::{self, ProcessRow};
use crate::rows::conversation_row::ConversationRow;
use crate::store::SqliteStore;
use crate::worker::call_queue::CallLoad;
use crate::worker::read_pool::ReadKind;

#[async_trait]
impl Processes for SqliteStore {
    async fn beat(&self, process: ProcessId) -> Result<u64, Error> {
        let locks = self.process_locks.clone();
        // The lock is taken before the row can be seen: else a reader would take the process for one that has ended.
        self.write_transaction(CallLoad::OWN, move |conn| {
            processes::beat(conn, process, locks.hold_lock(process))
        })
        .await
    }

    async fn beats(&self, processes: &[ProcessId]) -> Result<Vec<ProcessBeat>, Error> {
        let ids = processes.to_vec();
        let locks = self.process_locks.clone();
        self.read_transaction(ReadKind::Point, None, move |conn| {
            let rows = processes::find_processes(conn, &ids)?;
            Ok(rows.into_iter().map(|row| read_beat(&locks, row)).collect())
        })
        .await
    }

    async fn list_processes(&self) -> Result<Vec<ProcessBeat>, Error> {
        let locks = self.process_locks.clone();
        self.read_transaction(ReadKind::Point, None, move |conn| {
            let rows = processes::list_processes(conn)?;
            Ok(rows.into_iter().map(|row| read_beat(&locks, row)).collect())
        })
        .await
    }

    async fn remove_processes(&self, dead: &[ProcessBeat]) -> Result<u64, Error> {
        let dead = dead.to_vec();
        let removed = self.write_transaction(CallLoad::OWN, move |conn| {
            processes::remove_processes(conn, &dead)
        });
        let removed = removed.await?;
        for process in &removed {
            self.process_locks.remove_lock(*process);
        }
        Ok(removed.len() as u64)
    }

    async fn change_exchange(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: ExchangeChange,
    ) -> Result<(), Error> {
        let (owner, id) = (owner.clone(), id.clone());
        self.write_transaction(CallLoad::OWN, move |conn| {
            let conversation = ConversationRow::load(conn, &owner, &id)?;
            processes::change_exchange(conn, &conversation, change)
        })
        .await
    }

    async fn find_exchanges(
        &self,
        owner: &Owner,
        hashes: Option<&[PathHash]>,
    ) -> Result<Vec<PendingExchange>, Error> {
        rules::check_path_hashes(hashes.map_or(0, <[_]>::len), &self.limits)?;
        let (of, hashes) = (owner.clone(), hashes.map(<[_]>::to_vec));
        self.read_transaction(ReadKind::Point, Some(owner), move |conn| {
            processes::find_exchanges(conn, &of, hashes.as_deref())
        })
        .await
    }
}

fn read_beat(locks: &crate::process_locks::ProcessLocks, row: ProcessRow) -> ProcessBeat {
    ProcessBeat {
        process: row.process,
        beat: row.beat,
        is_gone: row.is_locked && locks.is_free(row.process),
    }
}
