//! Opening a database by its address.

use std::path::PathBuf;
use std::str::FromStr;
use std::sync::Arc;

use contexture_store::{MemoryStore, Store};
use contexture_store_sqlite::SqliteStore;

use crate::error::EngineError;

/// Where conversations are kept.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Database {
    /// In the process, gone with it: `memory:`.
    Memory,
    /// In a SQLite file: `sqlite:<path>`, or a path alone.
    Sqlite(PathBuf),
}

impl FromStr for Database {
    type Err = EngineError;

    fn from_str(address: &str) -> Result<Self, EngineError> {
        let unsupported = || EngineError::UnsupportedDatabase {
            address: redact_credentials(address),
        };
        match address.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("sqlite", path)) => {
                // `sqlite://a.db` is how other tools write it.
                let path = path.strip_prefix("//").unwrap_or(path);
                if path.is_empty() {
                    Err(unsupported())
                } else {
                    Ok(Self::Sqlite(path.into()))
                }
            }
            // Another scheme is refused and never taken for a file of that name.
            Some((_, rest)) if rest.starts_with("//") => Err(unsupported()),
            _ if address.is_empty() => Err(unsupported()),
            _ => Ok(Self::Sqlite(address.into())),
        }
    }
}

/// Opens the store at an address: a path or `sqlite:<path>`, which is created if absent, or `memory:`.
///
/// # Errors
/// [`EngineError::UnsupportedDatabase`], or the backend's error.
pub(crate) async fn open_store(address: &str) -> Result<Arc<dyn Store>, EngineError> {
    Ok(match address.parse()? {
        Database::Memory => Arc::new(MemoryStore::default()),
        Database::Sqlite(path) => Arc::new(SqliteStore::open(path)?),
    })
}

/// The address without what may be a password.
fn redact_credentials(address: &str) -> String {
    match (address.find("//"), address.rfind('@')) {
        (Some(start), Some(at)) if start < at => {
            format!(
                "{}//…{}",
                address.get(..start).unwrap_or_default(),
                address.get(at..).unwrap_or_default()
            )
        }
        _ => address.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses() {
        let check = |address: &str, path: &str| {
            assert_eq!(
                address.parse::<Database>().unwrap(),
                Database::Sqlite(path.into())
            );
        };
        check("support.db", "support.db");
        check("sqlite:/var/lib/a.db", "/var/lib/a.db");
        check("sqlite:///var/lib/a.db", "/var/lib/a.db");
        check("sqlite://a.db", "a.db");
        assert_eq!("memory:".parse::<Database>().unwrap(), Database::Memory);
        for bad in ["", "sqlite:", "postgres://ada:secret@host/db", "redis://x"] {
            let error = bad.parse::<Database>().unwrap_err().to_string();
            assert!(!error.contains("secret"), "{error}");
        }
    }
}
