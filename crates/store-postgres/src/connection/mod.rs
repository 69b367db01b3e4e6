//! Connections: addresses, TLS, the pool, transactions, and what goes into and comes out of a statement.
//!
//! * `address` parses a connection string; `tls` makes the client's part of TLS from it.
//! * `pool` lends connections and runs a transaction on one, again where that is safe.
//! * `transaction` is what statements are sent with: those that are awaited, and those that go out
//!   together with the commit.
//! * `params` names the column type of each Rust type, and reads columns back.
//! * `error` tells apart what may be repeated, what is damaged, and what nobody can know.
//!
//! What always holds: nothing here outlives a transaction on the server (no prepared statement, no
//! session setting), so that a pooler in transaction mode may stand between. Statements are sent
//! with the types of their parameters, which saves the round trip that preparing would cost.
//!
//! Errors: a serialisation failure, a deadlock, or a connection that broke before the commit was
//! sent has changed nothing, and the transaction runs again. A connection that broke after it leaves
//! the outcome unknown; only calls that recognise their repetition run again then
//! ([`Access::WriteIdempotent`](pool::Access::WriteIdempotent)).
//!
//! Error texts never hold the user or the password of an address, whatever the driver says.
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
