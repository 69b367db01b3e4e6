//! Maintenance: checking, cleaning up and compacting a database.
//!
//! * `verify` checks the rows of a conversation against each other and against their checksums.
//! * `statistics` counts what a conversation holds.
//! * `deletion` removes the rows of deleted conversations and erased owners, step by step;
//!   `deletion_task` finishes interrupted deletions in the background.
//! * `redaction` replaces content by tombstones.
//! * `blob_gc` removes blobs that nothing names.
//! * `vacuum` checks the server's files and returns unused space.
//!
//! What always holds: long work is done in steps, each a transaction of its own, so that no lock is
//! held for long and an interruption is harmless. Pending work is read from the tables, so several
//! processes may do it at once.
//!
//! What is not here: copying a database (`pg_dump`, `pg_basebackup`), migrations
//! ([`schema`](crate::schema)), the calls of the contract ([`store`](crate::store)).
//!
//! Dependencies: this module is above all modules with statements and below `store`.

pub(crate) mod blob_gc;
pub(crate) mod deletion;
pub(crate) mod deletion_task;
pub(crate) mod redaction;
pub(crate) mod statistics;
pub(crate) mod vacuum;
pub(crate) mod verify;
