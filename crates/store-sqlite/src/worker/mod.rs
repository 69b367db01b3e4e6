//! The worker: on which thread SQL runs, and in which order with other processes.
//!
//! SQLite is synchronous and lets one connection write at a time. So a process has
//!
//! * one *write thread* ([`write_thread`]), which commits queued calls together: the cost of a
//!   commit is its `fsync`, so many small appends share one. Owners wait in turn ([`call_queue`]);
//! * a *read pool* ([`read_pool`]) of a few connections on blocking threads. In WAL mode a reader
//!   sees a snapshot and neither waits for the writer nor delays it;
//! * a place in the *write lock queue* ([`write_lock_queue`]), a lock file that makes processes
//!   take turns. SQLite's own lock is not fair: a busy process would win it again and again.
//!
//! What always holds: a call is answered only after its commit, a call that fails leaves no row,
//! and the calls of one owner are committed in the order in which they were queued.
//!
//! Threads: except for opening a store, no SQL runs on a worker thread of the async runtime. CPU
//! work (terms of large items) is done before a call is queued, so that the write thread only
//! writes.
//!
//! Limits: the queue is bounded in bytes ([`SqliteOptions`](crate::SqliteOptions)), a batch in
//! calls, bytes and rows, reads in number. A call that finds the queue full is refused as busy, not
//! delayed.
//!
//! What is not here: statements ([`rows`](crate::rows) and its siblings), opening and configuring
//! connections ([`connection`](crate::connection)).

pub(crate) mod call_queue;
pub(crate) mod read_pool;
mod write_lock_queue;
pub(crate) mod write_thread;
