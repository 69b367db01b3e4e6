//! Maintenance: work on a database beside the calls of its users.
//!
//! * `verify` checks the rows of a conversation against each other and against their checksums.
//! * `backup` copies the database into a file while it is in use.
//! * `statistics` counts what a conversation holds.
//! * `deletion` removes the rows of deleted conversations and erased owners.
//! * `redaction` replaces content by tombstones.
//! * `blob_gc` removes blobs that nothing names, `vacuum` gives unused pages back.
//!
//! What always holds: what may take long goes in steps of bounded length, so that writers wait for
//! one step at most, and goes on where it was interrupted. What is left to do is read from the
//! tables, never kept in memory, where a crash would lose it.
//!
//! Removed content is removed from the file, not merely unlinked: connections are opened with
//! `secure_delete`, terms are merged out of the index, and the log is emptied before a redaction or
//! an erasure is acknowledged.
//!
//! What is not here: the calls and who runs them ([`store`](crate::store)), migrations
//! ([`schema`](crate::schema)).
//!
//! Dependencies: this module is above all modules with statements and below `store`. Content is read
//! by the readers of [`rows`](crate::rows), so that damage is noticed in one way.

pub(crate) mod backup;
pub(crate) mod blob_gc;
pub(crate) mod deletion;
pub(crate) mod redaction;
pub(crate) mod statistics;
pub(crate) mod vacuum;
pub(crate) mod verify;
