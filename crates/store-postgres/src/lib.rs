//! The conversation store on PostgreSQL: for many processes, on one server or on several.
//!
//! [`PostgresStore`] keeps the contract of [`contexture_store::Store`]. A position in a tree is
//! (conversation, segment, depth), the primary key of its node. A segment names the segments before
//! it, so reading a path takes a few statements and no write ever walks one. Every statement names
//! the conversation (or, for lists and values outside the tree, the owner), so the same SQL runs on
//! a server that shards conversations over machines.
//!
//! # Transactions
//!
//! A write to a tree is one READ COMMITTED transaction that begins with an update of the
//! conversation's row, where concurrent writers wait. Its queries are sent in one or two round
//! trips, its writes with the commit in one more. Writes to a stream lock the stream's row, writes
//! of an owner's values their own rows. Unique keys catch what a lock does not. A read is one
//! REPEATABLE READ transaction.
//!
//! Serialization failures, deadlocks and unique violations are retried, up to five attempts in all,
//! and so is a connection that breaks before the commit was sent. If it breaks after, idempotent
//! calls (appends with items, blobs, chunks, the end of a stream) are retried, and anything else is
//! [`Error::OutcomeUnknown`](contexture_store::Error::OutcomeUnknown).
//!
//! # Searching
//!
//! Each node has a `tsvector` with its terms. `contexture_store::rules` makes the terms, not the
//! server's text search. The index proposes nodes and the rules examine them; if there are too
//! many, those with the newest node times are taken. Conversations written by an older version are
//! indexed in the background once a search meets them (`PostgresStore::index_texts` does it at
//! once); until then a search finds what is indexed and reports the progress.
//!
//! # Upkeep
//!
//! Another task of the store finishes interrupted deletions: after opening, and after a deletion call
//! that failed or was dropped. [`Maintenance`](contexture_store::Maintenance) verifies
//! conversations, counts rows and collects unnamed blobs. If the extension `amcheck` is installed,
//! the server checks its files. Compacting runs `VACUUM`, which returns free space at the end of a
//! file and keeps the rest for reuse. Use `pg_dump` or `pg_basebackup` for backups.
//!
//! # Poolers
//!
//! Nothing outlives a transaction: no prepared statements, session settings, advisory locks,
//! temporary tables, `LISTEN`. So a pooler in transaction mode, such as PgBouncer, may be used.
//!
//! # Setting up
//!
//! [`migrate`] creates or upgrades the tables, in the SQL schema `contexture`. Opening never
//! changes a table; it refuses a database that was not migrated. The database's encoding must be
//! UTF-8. Durability is that of its `synchronous_commit`: leave it on.
//!
//! What is not here: the contract's decisions (`contexture_store::rules`); partitions and shards
//! (the schema allows them, the operator sets them up); notifications (readers in other processes
//! poll).

mod append;
mod background;
mod calls;
mod connection;
mod conversations;
mod key_values;
mod maintenance;
mod options;
mod path_index;
mod processes;
mod refs;
mod rows;
mod schema;
mod search;
mod store;
mod streams;

pub use options::PostgresOptions;
pub use schema::{FORMAT, migrate};
pub use store::PostgresStore;
