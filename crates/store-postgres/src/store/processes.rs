//! [`Processes`] on PostgreSQL: a process is known by its number alone.

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, PathHash, ProcessId};
use contexture_store::{Error, ExchangeChange, PendingExchange, ProcessBeat, Processes, rules};

use crate::connection::pool::Access;
use crate::processes;
use crate::store::PostgresStore;

#[async_trait]
impl Processes for PostgresStore {
    async fn beat(&self, process: ProcessId) -> Result<u64, Error> {
        self.server
            .run_transaction(Access::WriteIdempotent, None, |tx| {
                Box::pin(async move {
                    let beat = processes::beat(tx, process).await?;
                    Ok(beat)
                })
            })
            .await
    }

    async fn beats(&self, ids: &[ProcessId]) -> Result<Vec<ProcessBeat>, Error> {
        self.server
            .run_transaction(Access::Read, None, |tx| {
                Box::pin(processes::find_processes(tx, Some(ids.to_vec())))
            })
            .await
    }

    async fn list_processes(&self) -> Result<Vec<ProcessBeat>, Error> {
        self.server
            .run_transaction(Access::Read, None, |tx| {
                Box::pin(processes::find_processes(tx, None))
            })
            .await
    }

    async fn remove_processes(&self, dead: &[ProcessBeat]) -> Result<u64, Error> {
        self.server
            .run_transaction(Access::WriteIdempotent, None, |tx| {
                Box::pin(processes::remove_processes(tx, dead))
            })
            .await
    }

    async fn change_exchange(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: ExchangeChange,
    ) -> Result<(), Error> {
        self.server
            .run_transaction(Access::WriteIdempotent, owner, |tx| {
                Box::pin(processes::change_exchange_alone(tx, owner, id, change))
            })
            .await
    }

    async fn find_exchanges(
        &self,
        owner: &Owner,
        hashes: Option<&[PathHash]>,
    ) -> Result<Vec<PendingExchange>, Error> {
        rules::check_path_hashes(hashes.map_or(0, <[_]>::len), &self.limits)?;
        self.server
            .run_transaction(Access::Read, owner, |tx| {
                Box::pin(processes::find_exchanges(
                    tx,
                    owner,
                    hashes.map(<[_]>::to_vec),
                ))
            })
            .await
    }
}
