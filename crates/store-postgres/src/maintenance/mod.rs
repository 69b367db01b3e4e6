//! Maintenance: work on a database beside the calls of its users.
//!
//! * `verify` checks the rows of a conversation against each other and against their checksums.
//! * `statistics` counts what a conversation holds.
//! * `deletion` removes the rows of deleted conversations and erased owners, step by step;
//!   `deletion_task` is the task of a store that goes on with what was interrupted.
//! * `redaction` replaces content by tombstones.
//! * `blob_gc` removes blobs that nothing names.
//! * `vacuum` checks the server's files and gives unused space back.
//!
//! What always holds: what may take long goes in steps, each a transaction of its own, so that no
//! lock is held for long and an interrupted one goes on where it was. What is left to do is read
//! from the tables, so several processes may do it at once.
//!
//! What is not here: copying a database (`pg_dump`, `pg_basebackup`), migrations
//! ([`schema`](crate::schema)), the calls themselves ([`store`](crate::store)).
//!
//! Dependencies: this module is above all modules with statements and below `store`.

pub(crate) mod blob_gc;
pub(crate) mod deletion;
pub(crate) mod deletion_task;
pub(crate) mod redaction;
pub(crate) mod statistics;
pub(crate) mod vacuum;
pub(crate) mod verify;
