//! Maintenance: checking, cleaning up and copying a database.
//!
//! * `verify` checks the rows of a conversation against each other and against their checksums.
//! * `backup` copies the database into a file while it is in use.
//! * `statistics` counts what a conversation holds.
//! * `deletion` removes the rows of deleted conversations and erased owners.
//! * `redaction` replaces content by tombstones.
//! * `blob_gc` removes blobs that nothing names, `vacuum` returns unused pages to the file system.
//!
//! What always holds: long work is done in steps of bounded length, so that writers wait for one
//! step at most, and continues after an interruption. Pending work is read from the tables, never
//! kept in memory, where a crash would lose it.
//!
//! Removed content is removed from the file, not merely unlinked: connections are opened with
//! `secure_delete`, terms are merged out of the index, and the log is truncated before a redaction
//! or a complete erasure is acknowledged.
//!
//! What is not here: the calls of the contract ([`store`](crate::store)), migrations
//! ([`schema`](crate::schema)).
//!
//! Dependencies: this module is above all modules with statements and below `store`. Content is
//! read through [`rows`](crate::rows), so that damage is detected in one place.

pub(crate) mod backup;
pub(crate) mod blob_gc;
pub(crate) mod deletion;
pub(crate) mod redaction;
pub(crate) mod statistics;
pub(crate) mod vacuum;
pub(crate) mod verify;
