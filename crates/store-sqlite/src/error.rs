//! Translates SQLite's errors into the contract's.

use std::path::Path;

use contexture_store::{Error, StorageFault};
use rusqlite::ErrorCode;
use rusqlite::types::FromSqlError;

/// Error inside a transaction.
#[derive(Debug)]
pub(crate) enum RowError {
    /// An error of the contract, which is passed on as it is.
    Store(Error),
    /// An error of SQLite, which [`from_sqlite`] translates.
    Sql(rusqlite::Error),
}

impl From<Error> for RowError {
    fn from(error: Error) -> Self {
        Self::Store(error)
    }
}

impl From<rusqlite::Error> for RowError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(error)
    }
}

impl From<FromSqlError> for RowError {
    fn from(error: FromSqlError) -> Self {
        Self::Sql(error.into())
    }
}

impl RowError {
    /// Translates the error into one of the contract's; `path` is the database file.
    pub(crate) fn into_error(self, path: &Path) -> Error {
        match self {
            Self::Store(error) => error,
            Self::Sql(error) => from_sqlite(error, path),
        }
    }
}

/// Returns the error for a database whose own structure is damaged.
pub(crate) fn corrupt_error(why: impl Into<String>) -> RowError {
    RowError::Sql(rusqlite::Error::SqliteFailure(
        rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_CORRUPT),
        Some(why.into()),
    ))
}

/// Translates an error of SQLite into one of the contract's; `path` is the database file.
pub(crate) fn from_sqlite(error: rusqlite::Error, path: &Path) -> Error {
    let code = error.sqlite_error_code();
    if matches!(
        code,
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked)
    ) {
        return Error::Busy {
            why: "another process is writing to the database".to_owned(),
        };
    }
    if code == Some(ErrorCode::OperationInterrupted) {
        return Error::Interrupted {
            why: "SQLite was told to stop".to_owned(),
        };
    }
    Error::Storage {
        path: path.to_owned(),
        fault: storage_fault(code),
        source: Some(Box::new(error)),
    }
}

fn storage_fault(code: Option<ErrorCode>) -> StorageFault {
    match code {
        Some(ErrorCode::DiskFull) => StorageFault::Full,
        Some(ErrorCode::ReadOnly) => StorageFault::ReadOnly,
        Some(ErrorCode::CannotOpen | ErrorCode::PermissionDenied) => StorageFault::CannotOpen,
        Some(ErrorCode::NotADatabase) => StorageFault::NotADatabase,
        Some(ErrorCode::DatabaseCorrupt) => StorageFault::Corrupt,
        Some(ErrorCode::SystemIoFailure) => StorageFault::Io,
        _ => StorageFault::Other,
    }
}
