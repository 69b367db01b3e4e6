//! The conversation store on SQLite: one file, safe against crashes.
//!
//! [`SqliteStore`] keeps the contract of [`contexture_store::Store`]. A position in a tree is
//! (conversation, segment, depth); a segment is a run of nodes at consecutive keys, so a path is a
//! few range scans and no write ever walks one. One thread performs all writes of a process and
//! commits queued calls together; reads run concurrently on their own connections. Processes that
//! write to the same file queue up for it.
//!
//! Beside the file are SQLite's write-ahead log (`-wal`) and its index (`-shm`), which belong to
//! the database while it is open, and an empty lock file (`-turn`) for the queue of the processes.
//!
//! What is not here: the contract's decisions (`contexture_store::rules`). Network file systems are
//! not supported, since SQLite's locks do not work there.

mod append;
mod calls;
mod connection;
mod conversations;
mod deepagents;
mod error;
mod key_values;
mod maintenance;
mod options;
mod path_index;
mod process_locks;
mod processes;
#[cfg(test)]
mod query_plans;
mod refs;
mod rows;
mod schema;
mod search;
mod store;
mod streams;
mod worker;

pub use deepagents::{DeepAgentsFile, is_sqlite};
pub use options::{SqliteOptions, Synchronous};
pub use schema::FORMAT;
pub use store::SqliteStore;
