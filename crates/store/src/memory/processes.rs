//! Processes and their exchanges in memory: for tests, since no other process can use this store.

use std::collections::BTreeMap;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, PathHash, ProcessId};

use super::MemoryStore;
use crate::contract::{
    Error, ExchangeChange, ExchangeMark, PendingExchange, ProcessBeat, Processes,
};
use crate::rules;

/// The number of each process, and the conversation of each marked exchange.
#[derive(Debug, Default)]
pub(super) struct ProcessTable {
    beats: BTreeMap<ProcessId, u64>,
    exchanges: BTreeMap<(Owner, ExchangeMark), ConversationId>,
}

impl ProcessTable {
    pub(super) fn change_exchange(
        &mut self,
        owner: &Owner,
        id: &ConversationId,
        change: ExchangeChange,
    ) {
        let key = (owner.clone(), *change.mark());
        match change {
            ExchangeChange::Begin(_) => self.exchanges.insert(key, id.clone()),
            ExchangeChange::End(_) => self.exchanges.remove(&key),
        };
    }

    /// Keeps only the exchanges for whose owner and conversation `keep` is true.
    pub(super) fn retain_exchanges(&mut self, keep: impl Fn(&Owner, &ConversationId) -> bool) {
        self.exchanges
            .retain(|(owner, _), conversation| keep(owner, conversation));
    }

    fn remove_process(&mut self, dead: &ProcessBeat) -> bool {
        let is_same = self.beats.get(&dead.process) == Some(&dead.beat);
        if is_same {
            self.beats.remove(&dead.process);
            self.exchanges
                .retain(|(_, mark), _| mark.process != dead.process);
        }
        is_same
    }
}

/// A process of memory is never known to have ended.
const fn process_beat((process, beat): (&ProcessId, &u64)) -> ProcessBeat {
    ProcessBeat {
        process: *process,
        beat: *beat,
        is_gone: false,
    }
}

#[async_trait]
impl Processes for MemoryStore {
    async fn beat(&self, process: ProcessId) -> Result<u64, Error> {
        let mut tables = self.lock_tables();
        let beat = tables.processes.beats.entry(process).or_default();
        *beat += 1;
        Ok(*beat)
    }

    async fn beats(&self, processes: &[ProcessId]) -> Result<Vec<ProcessBeat>, Error> {
        let tables = self.lock_tables();
        let known = |id| tables.processes.beats.get_key_value(id).map(process_beat);
        Ok(processes.iter().filter_map(known).collect())
    }

    async fn list_processes(&self) -> Result<Vec<ProcessBeat>, Error> {
        let tables = self.lock_tables();
        Ok(tables.processes.beats.iter().map(process_beat).collect())
    }

    async fn remove_processes(&self, dead: &[ProcessBeat]) -> Result<u64, Error> {
        let mut tables = self.lock_tables();
        let removed = dead
            .iter()
            .filter(|one| tables.processes.remove_process(one));
        Ok(removed.count() as u64)
    }

    async fn change_exchange(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: ExchangeChange,
    ) -> Result<(), Error> {
        let mut tables = self.lock_tables();
        tables.conversation_tree(owner, id)?;
        tables.processes.change_exchange(owner, id, change);
        Ok(())
    }

    async fn find_exchanges(
        &self,
        owner: &Owner,
        hashes: Option<&[PathHash]>,
    ) -> Result<Vec<PendingExchange>, Error> {
        rules::check_path_hashes(hashes.map_or(0, <[_]>::len), &self.limits)?;
        let tables = self.lock_tables();
        let is_wanted = |mark: &ExchangeMark| hashes.is_none_or(|all| all.contains(&mark.hash));
        let exchanges = tables.processes.exchanges.iter();
        let found = exchanges.filter(|((of, mark), _)| of == owner && is_wanted(mark));
        let found = found.map(|((_, mark), conversation)| PendingExchange {
            conversation: conversation.clone(),
            mark: *mark,
        });
        Ok(found.collect())
    }
}
