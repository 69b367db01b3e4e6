//! Connections: addresses, TLS, the pool, transactions, parameters and columns of statements.
//!
//! * `address` parses a connection string; `tls` makes the TLS connector from it.
//! * `pool` lends connections, and runs a transaction on one, with retries where that is safe.
//! * `turns` says who may hold one: fewer, if the server gives fewer.
//! * `transaction` sends statements: some are awaited, others go out together with the commit.
//! * `params` maps Rust types to column types, and reads columns back.
//! * `error` distinguishes failures that may be retried, damage, and unknown outcomes.
//!
//! What always holds: nothing outlives a transaction on the server (no prepared statement, no
//! session setting), so a connection pooler in transaction mode may be used. Statements are sent
//! with the types of their parameters, which saves the round trip that preparing would cost.
//!
//! Errors: after a serialization failure, a deadlock, or a connection that broke before the commit
//! was sent, nothing has changed and the transaction is retried. A connection that broke after it
//! leaves the outcome unknown; only idempotent calls are retried then
//! ([`Access::WriteIdempotent`](pool::Access::WriteIdempotent)).
//!
//! Error texts never contain the user or the password of an address.
//!
//! What is not here: SQL. The tables are in [`schema`](crate::schema), statements beside the rows
//! they read and write.
//!
//! This is the bottom of the crate: it uses nothing of the other modules but
//! [`options`](crate::options).

pub(crate) mod address;
pub(crate) mod error;
pub(crate) mod params;
pub(crate) mod pool;
mod tls;
pub(crate) mod transaction;
pub(crate) mod turns;
