//! The conversation store on SQLite: one file, safe against crashes.
//!
//! [`SqliteStore`] keeps the contract of [`contexture_store::Store`]. A position in a tree is
//! (conversation, segment, depth); a segment is a run of nodes at consecutive keys, so a path is a
//! few range scans and no write ever walks one. All writes of a process go through one thread that
//! commits whatever is waiting together; reads run on their own connections beside it.
//! Processes that write one file queue up for it.
//!
//! Beside the file lie SQLite's log (`-wal`) and its index (`-shm`), which belong to it while it is
//! open, and an empty file (`-turn`) whose lock is the queue of the processes.
//!
//! What is not here: the contract's decisions (`contexture_store::rules`),
//! network file systems (SQLite's locks do not work there).

mod append;
mod backup;
mod blob;
mod branch;
mod codec;
mod columns;
mod connection;
mod conv;
mod conversation;
mod deepagents;
mod deletion;
mod entry;
mod event;
mod fault;
mod filter;
mod finding;
mod key_value;
mod migrate;

mod node_row;
mod options;
mod path;
mod path_index;
#[cfg(test)]
mod plans;
mod readers;
mod redact;
mod response;
mod search;
mod state;
mod store;
mod stream;
mod streams;
mod turn;
#[cfg(test)]
mod upgrade;
mod upkeep;
mod verify;
mod writer;

pub use deepagents::{DeepAgentsFile, is_sqlite};
pub use migrate::FORMAT;
pub use options::{SqliteOptions, Synchronous};
pub use store::SqliteStore;
