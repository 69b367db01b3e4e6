//! The conversation store on PostgreSQL: for many processes, on one server or on several.
//!
//! [`PostgresStore`] keeps the contract of [`contexture_store::Store`]. A position in a tree is
//! (conversation, segment, depth), the primary key of its node; a segment names the segments
//! before it, so a path is one statement and no write ever walks one. Every statement names the
//! conversation (or, for lists and values outside the tree, the owner), so the same SQL runs on a
//! server that spreads conversations over machines.
//!
//! # Transactions
//!
//! A write is one READ COMMITTED transaction that begins with an update of the conversation's row:
//! whoever comes second waits there. What it must know it asks in one or two flights of statements,
//! sent without waiting for each other; what it writes goes out with the commit in one more. Unique
//! keys would refuse what a lock had let through. A read is one REPEATABLE READ transaction.
//!
//! Serialisation failures, deadlocks and collisions of our own keys are tried again, at most
//! five times in all; a connection that breaks before the commit was sent likewise. If it breaks
//! after, appends and blobs are repeated, which their ids make exact, and anything else is
//! [`Error::OutcomeUnknown`](contexture_store::Error::OutcomeUnknown).
//!
//! # Searching
//!
//! Each node has its terms beside it in a `tsvector`, made by `contexture_store::rules` and not by
//! the server's text search; the index proposes places, the rules judge. Among more than are judged,
//! the newest by their nodes' time are taken.
//!
//! # Upkeep
//!
//! A deletion that was interrupted goes on in a task of the store, after opening and whenever one is
//! dropped. [`Maintenance`](contexture_store::Maintenance) checks conversations against themselves,
//! counts them and collects blobs that nothing names; it has the server check its files where its
//! extension `amcheck` is installed, and tidy them up by `VACUUM`, which gives back what stands at a
//! file's end and keeps the rest for what comes. Copying is left to `pg_dump` and `pg_basebackup`.
//!
//! # Poolers
//!
//! Nothing outlives a transaction: no prepared statements, session settings, advisory locks,
//! temporary tables, `LISTEN`. So a pooler in transaction mode may stand between, PgBouncer say.
//!
//! # Setting up
//!
//! [`migrate`] makes or upgrades the tables, in the SQL schema `contexture`. Opening never changes
//! a table; it refuses a database that was not migrated. The database's encoding must be UTF-8, and
//! what an acknowledged write survives is what its `synchronous_commit` says: leave it on.
//!
//! What is not here: the contract's decisions (`contexture_store::rules`), partitions and shards
//! (the schema allows them, their set-up is the operator's), notifications (readers in other processes
//! look again from time to time).

mod append;
mod connection;
mod conversations;
mod key_values;
mod maintenance;
mod options;
mod path_index;
mod refs;
mod rows;
mod schema;
mod search;
mod store;
mod streams;

pub use options::PostgresOptions;
pub use schema::{FORMAT, migrate};
pub use store::PostgresStore;
