//! Process presence: which of the processes that share a store are alive, and what they have under way.
//!
//! A process has a random id and raises its number every few seconds, whatever it has claimed. Who claims something in the
//! store names its process, so a claim needs no expiry time: it is void once its process is dead. Nothing here reads a
//! clock, and no time of one machine is compared with that of another.
//!
//! Not here: how long a number may stand still until its process counts as dead, which the reader measures by its own
//! clock; what a claim means to the one who reads it.

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner, PathHash, ProcessId};

use crate::contract::Error;

/// Number of a process, as stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ProcessBeat {
    /// Id of the process.
    pub process: ProcessId,
    /// Its number, which grows for as long as it lives.
    pub beat: u64,
    /// Whether the store knows that the process has ended, without waiting for its number to stand still.
    pub is_gone: bool,
}

/// Mark of an exchange with a provider whose answer is not recorded yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ExchangeMark {
    /// Key of the history that its answer follows.
    pub hash: PathHash,
    /// Process that will record the answer.
    pub process: ProcessId,
    /// Number of the mark in that process: several exchanges may ask the same.
    pub number: u64,
}

/// Change of the mark of an exchange.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExchangeChange {
    /// Stores the mark. Storing it again changes nothing.
    Begin(ExchangeMark),
    /// Removes the mark. Removing it again changes nothing.
    End(ExchangeMark),
}

impl ExchangeChange {
    /// Returns the mark that is changed.
    #[must_use]
    pub const fn mark(&self) -> &ExchangeMark {
        match self {
            Self::Begin(mark) | Self::End(mark) => mark,
        }
    }
}

/// A marked exchange, with the conversation that its answer will be stored in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PendingExchange {
    /// Conversation of the exchange.
    pub conversation: ConversationId,
    /// Mark of the exchange.
    pub mark: ExchangeMark,
}

/// Presence of processes, and the marks that name them, of a store that keeps them.
#[async_trait]
pub trait Processes: Send + Sync {
    /// Raises the number of a process and returns it. An unknown process is registered with the number 1.
    async fn beat(&self, process: ProcessId) -> Result<u64, Error>;

    /// Reads the numbers of some processes. One that was never registered, or was removed, is missing.
    async fn beats(&self, processes: &[ProcessId]) -> Result<Vec<ProcessBeat>, Error>;

    /// Lists all processes, by id.
    async fn list_processes(&self) -> Result<Vec<ProcessBeat>, Error>;

    /// Removes processes that the caller knows to be dead; returns how many.
    ///
    /// A process whose number is no longer the given one lives and stays. The marks of their exchanges go first, because
    /// nobody will record those answers; a process that any other claim names would stay.
    async fn remove_processes(&self, dead: &[ProcessBeat]) -> Result<u64, Error>;

    /// Stores or removes the mark of an exchange outside an append; see
    /// [`AppendRequest::exchange`](crate::AppendRequest::exchange).
    ///
    /// # Errors
    /// [`Error::NotFound`] for an unknown conversation.
    async fn change_exchange(
        &self,
        owner: &Owner,
        id: &ConversationId,
        change: ExchangeChange,
    ) -> Result<(), Error>;

    /// Finds an owner's marked exchanges by what they ask; with `None` all of them. They come by hash, process and number.
    ///
    /// Marks are deleted with their conversation. They are no data of the owner: no list and no export has them.
    ///
    /// # Errors
    /// [`Error::Limit`] `path_hashes` for too many hashes.
    async fn find_exchanges(
        &self,
        owner: &Owner,
        hashes: Option<&[PathHash]>,
    ) -> Result<Vec<PendingExchange>, Error>;
}
