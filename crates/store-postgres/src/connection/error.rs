//! Translates PostgreSQL's errors into the contract's.

use std::path::Path;

use contexture_store::{Error, StorageFault};
use tokio_postgres::error::{Severity, SqlState};

/// Error inside a transaction.
#[derive(Debug)]
pub(crate) enum RowError {
    /// An error of the contract, which is passed on as it is.
    Store(Error),
    /// An error of the server or of the connection.
    Sql(tokio_postgres::Error),
    /// The tables contain what this program does not write.
    Corrupt(String),
}

impl From<Error> for RowError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<tokio_postgres::Error> for RowError {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(error)
    }
}

/// Returns the error for tables that contain what this program does not write.
pub(crate) fn corrupt_error(why: impl Into<String>) -> RowError {
    RowError::Corrupt(why.into())
}

#[derive(Debug, thiserror::Error)]
#[error("{0}")]
struct CorruptTables(String);

/// Consequence of a failure for its transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum FailureEffect {
    /// The connection is lost: it is unknown what the server did last.
    Lost,
    /// Another transaction interfered: the same transaction may succeed when it is repeated.
    Collision,
    /// A repetition would fail in the same way.
    Final,
}

impl RowError {
    pub(crate) fn failure_effect(&self) -> FailureEffect {
        match self {
            Self::Store(_) | Self::Corrupt(_) => FailureEffect::Final,
            Self::Sql(error) => sql_failure_effect(error),
        }
    }

    /// Translates the error into one of the contract's; `address` is that of the database.
    pub(crate) fn into_error(self, address: &Path) -> Error {
        match self {
            Self::Store(error) => error,
            Self::Sql(error) => from_postgres(error, address),
            Self::Corrupt(why) => Error::Storage {
                path: address.to_owned(),
                fault: StorageFault::Corrupt,
                source: Some(Box::new(CorruptTables(why))),
            },
        }
    }
}

fn sql_failure_effect(error: &tokio_postgres::Error) -> FailureEffect {
    let Some(db) = error.as_db_error() else {
        // The client failed without an answer of the server. Only a closed connection or an I/O
        // error has a cause outside this program.
        let is_io =
            std::error::Error::source(error).is_some_and(|cause| cause.is::<std::io::Error>());
        return if error.is_closed() || is_io {
            FailureEffect::Lost
        } else {
            FailureEffect::Final
        };
    };
    let code = db.code();
    let collisions = [
        SqlState::T_R_SERIALIZATION_FAILURE,
        SqlState::T_R_DEADLOCK_DETECTED,
        SqlState::UNIQUE_VIOLATION,
    ];
    let is_fatal = matches!(
        db.parsed_severity(),
        Some(Severity::Fatal | Severity::Panic)
    );
    if collisions.contains(code) {
        FailureEffect::Collision
    } else if is_end_of_session(is_fatal, code.code()) {
        FailureEffect::Lost
    } else {
        FailureEffect::Final
    }
}

/// Returns whether the server ended the session, or refuses new ones because it starts or stops.
/// Refusing a user, a password or a database is fatal too, but will not pass.
fn is_end_of_session(is_fatal: bool, code: &str) -> bool {
    let is_refusal = code.starts_with("28") || ["3D000", "42501", "53300"].contains(&code);
    (is_fatal && !is_refusal) || code.starts_with("08") || code.starts_with("57P")
}

/// Returns whether the error is that a column has another type or value than expected.
pub(crate) fn is_column_mismatch(error: &tokio_postgres::Error) -> bool {
    error.as_db_error().is_none() && sql_failure_effect(error) == FailureEffect::Final
}

/// Returns the error for a server that cannot be reached, or that ended the connection.
pub(crate) fn unavailable_error(error: tokio_postgres::Error, address: &Path) -> Error {
    Error::Unavailable {
        path: address.to_owned(),
        source: Box::new(error),
    }
}

/// Returns whether a connection could not be made for a reason that may pass: nobody listens, the
/// network failed. A certificate that is refused is not such a reason.
pub(crate) fn is_unreachable(error: &tokio_postgres::Error) -> bool {
    let cause = std::error::Error::source(error);
    let io = cause.and_then(|cause| cause.downcast_ref::<std::io::Error>());
    error.is_closed() || io.is_some_and(|io| io.kind() != std::io::ErrorKind::InvalidData)
}

/// Returns whether the server has no connection left for this user or database, or at all.
pub(crate) fn is_out_of_connections(error: &tokio_postgres::Error) -> bool {
    error.code() == Some(&SqlState::TOO_MANY_CONNECTIONS)
}

/// Translates an error of the client into one of the contract's; `address` is that of the database.
pub(crate) fn from_postgres(error: tokio_postgres::Error, address: &Path) -> Error {
    let busy = |why: &str| Error::Busy {
        why: why.to_owned(),
    };
    if sql_failure_effect(&error) == FailureEffect::Lost {
        return unavailable_error(error, address);
    }
    let code = error.code().map_or("", SqlState::code);
    let fault = match code {
        "55P03" => return busy("another write to the same conversation takes too long"),
        "40001" | "40P01" | "23505" => return busy("other writes were in the way again and again"),
        "53300" => return busy("the server has no connection left"),
        "57014" => {
            return Error::Interrupted {
                why: "the server cancelled a statement, most likely because its time was up"
                    .to_owned(),
            };
        }
        "53100" => StorageFault::Full,
        "25006" => StorageFault::ReadOnly,
        "28000" | "28P01" | "3D000" | "42501" => StorageFault::CannotOpen,
        "XX001" | "XX002" => StorageFault::Corrupt,
        "3F000" | "42P01" => StorageFault::NotADatabase,
        _ => StorageFault::Other,
    };
    Error::Storage {
        path: address.to_owned(),
        fault,
        source: Some(Box::new(error)),
    }
}
