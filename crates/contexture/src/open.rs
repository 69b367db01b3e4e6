//! Opening an engine over the database at an address.
//!
//! The only file of this crate that holds code: `contexture-engine` knows the store's contract and no backend, so the
//! choice of a backend by its address is made here, where the features are.

use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;

use contexture_engine::Engine;
use contexture_store::{MemoryStore, Store};

/// Where conversations are stored: what an address means, whichever backends this build has.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum DatabaseAddress {
    /// In the memory of this process, gone with it: `memory:`.
    Memory,
    /// In a SQLite file: `sqlite:<path>`, `sqlite://<path>`, or a path alone.
    Sqlite(PathBuf),
    /// In a SQLite file that servers in other processes use too: `sqlite:<path>?shared=true`.
    SharedSqlite(PathBuf),
    /// On a PostgreSQL server: `postgres://…` or `postgresql://…`, the whole address.
    Postgres(String),
}

/// Option of the address of a file that several processes serve.
const SHARED: &str = "?shared=true";

impl DatabaseAddress {
    /// Returns the SQLite file that it names, if it names one.
    #[must_use]
    pub fn sqlite_file(&self) -> Option<&Path> {
        match self {
            Self::Sqlite(file) | Self::SharedSqlite(file) => Some(file),
            Self::Memory | Self::Postgres(_) => None,
        }
    }
}

impl FromStr for DatabaseAddress {
    type Err = OpenError;

    fn from_str(address: &str) -> Result<Self, OpenError> {
        let unsupported = || OpenError::UnsupportedAddress {
            address: redact_credentials(address),
        };
        match address.split_once(':') {
            Some(("memory", "")) => Ok(Self::Memory),
            Some(("postgres" | "postgresql", rest)) if rest.starts_with("//") => {
                Ok(Self::Postgres(address.to_owned()))
            }
            Some(("sqlite", path)) => {
                // `sqlite://a.db` is how other tools write it.
                let path = path.strip_prefix("//").unwrap_or(path);
                // After a scheme only: a path alone may hold any character.
                match path.strip_suffix(SHARED) {
                    Some("") => Err(unsupported()),
                    Some(path) => Ok(Self::SharedSqlite(path.into())),
                    None if path.is_empty() => Err(unsupported()),
                    None => Ok(Self::Sqlite(path.into())),
                }
            }
            // Another scheme is refused and never taken for a file of that name.
            Some((_, rest)) if rest.starts_with("//") => Err(unsupported()),
            _ if address.is_empty() => Err(unsupported()),
            // A lone colon may be part of a file's name, or follow a drive's letter.
            _ => Ok(Self::Sqlite(address.into())),
        }
    }
}

/// Why an engine could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum OpenError {
    /// No backend has addresses like this one.
    #[error(
        "cannot open {address:?}: expected a path, `sqlite:<path>`, `memory:` or `postgres://…`"
    )]
    UnsupportedAddress {
        /// The address, without credentials.
        address: String,
    },
    /// The backend of the address is not part of this build.
    #[error("cannot open {address:?}: enable the feature `{feature}` of the crate `contexture`")]
    MissingFeature {
        /// The address, without credentials.
        address: String,
        /// The feature that brings the backend.
        feature: &'static str,
    },
    /// The backend cannot open the database, or refuses it.
    #[error(transparent)]
    Store(#[from] contexture_store::Error),
}

impl OpenError {
    /// A short stable word for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::UnsupportedAddress { .. } => "unsupported_database",
            Self::MissingFeature { .. } => "missing_feature",
            Self::Store(error) => error.kind(),
        }
    }

    /// Whether the same call, unchanged, may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::UnsupportedAddress { .. } | Self::MissingFeature { .. } => false,
        }
    }
}

/// Opens an engine over the database at an address.
///
/// | Address | Store | Feature |
/// |---|---|---|
/// | `memory:` | the memory of this process | – |
/// | a path, `sqlite:<path>` | a SQLite file, created if absent | `sqlite` (default) |
/// | `sqlite:<path>?shared=true` | the same, with servers in other processes | `sqlite` |
/// | `postgres://…`, `postgresql://…` | a PostgreSQL database with its tables (`contexture migrate`) | `postgres` |
///
/// Options of the engine are set on what it returns, options of a store by opening the store and
/// [`Engine::new`].
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let engine = contexture::open("memory:").await?.without_calibration();
/// let chat = engine.conversation("support-42").open().await?;
/// # assert_eq!(chat.id().as_str(), "support-42");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
///
/// # Errors
/// [`OpenError::UnsupportedAddress`], [`OpenError::MissingFeature`], or the error of the store.
pub async fn open(address: &str) -> Result<Engine, OpenError> {
    let store: Arc<dyn Store> = match address.parse()? {
        DatabaseAddress::Memory => Arc::new(MemoryStore::default()),
        #[cfg(feature = "sqlite")]
        DatabaseAddress::Sqlite(path) => {
            Arc::new(contexture_store_sqlite::SqliteStore::open(path)?)
        }
        #[cfg(feature = "sqlite")]
        DatabaseAddress::SharedSqlite(path) => {
            let options = contexture_store_sqlite::SqliteOptions {
                shared: true,
                ..contexture_store_sqlite::SqliteOptions::default()
            };
            let store = contexture_store_sqlite::SqliteStore::open_with(path, options)?;
            Arc::new(store)
        }
        #[cfg(feature = "postgres")]
        DatabaseAddress::Postgres(address) => {
            Arc::new(contexture_store_postgres::PostgresStore::open(&address).await?)
        }
        #[cfg(not(feature = "sqlite"))]
        DatabaseAddress::Sqlite(_) | DatabaseAddress::SharedSqlite(_) => {
            return Err(missing_feature(address, "sqlite"));
        }
        #[cfg(not(feature = "postgres"))]
        DatabaseAddress::Postgres(_) => return Err(missing_feature(address, "postgres")),
    };
    Ok(Engine::new(store))
}

/// Opens an engine over a database that exists, at least to read it.
///
/// It is [`open`], but a SQLite file on a read-only medium, or without the permission to write, is opened too: everything
/// can be read, and writes fail as `StorageFault::ReadOnly`.
///
/// # Errors
/// As [`open`]; a file that cannot be written and has an older format is `Error::Older`.
pub async fn open_for_reading(address: &str) -> Result<Engine, OpenError> {
    match open(address).await {
        #[cfg(feature = "sqlite")]
        Err(OpenError::Store(error)) if is_not_writable(&error) => {
            let Some(file) = address
                .parse::<DatabaseAddress>()?
                .sqlite_file()
                .filter(|file| file.is_file())
                .map(Path::to_owned)
            else {
                return Err(error.into());
            };
            let options = contexture_store_sqlite::SqliteOptions::default();
            let store = contexture_store_sqlite::SqliteStore::open_read_only(file, options)?;
            Ok(Engine::new(Arc::new(store)))
        }
        opened => opened,
    }
}

#[cfg(feature = "sqlite")]
fn is_not_writable(error: &contexture_store::Error) -> bool {
    use contexture_store::{Error, StorageFault};
    matches!(
        error,
        Error::Storage {
            fault: StorageFault::ReadOnly | StorageFault::CannotOpen,
            ..
        }
    )
}

#[cfg(not(all(feature = "sqlite", feature = "postgres")))]
fn missing_feature(address: &str, feature: &'static str) -> OpenError {
    OpenError::MissingFeature {
        address: redact_credentials(address),
        feature,
    }
}

/// Replaces what may be a user and a password in an address.
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
    fn address_parse_names_the_backend() {
        let check = |address: &str, expected: DatabaseAddress| {
            let parsed = address.parse::<DatabaseAddress>();
            assert_eq!(parsed.unwrap(), expected, "{address}");
        };
        let file = |path: &str| DatabaseAddress::Sqlite(path.into());
        check("memory:", DatabaseAddress::Memory);
        check("support.db", file("support.db"));
        check("sqlite:/var/lib/a.db", file("/var/lib/a.db"));
        check("sqlite:///var/lib/a.db", file("/var/lib/a.db"));
        check("sqlite://a.db", file("a.db"));
        let shared = |path: &str| DatabaseAddress::SharedSqlite(path.into());
        check("sqlite:a.db?shared=true", shared("a.db"));
        check("a.db?shared=true", file("a.db?shared=true"));
        check("C:\\data\\a.db", file("C:\\data\\a.db"));
        for server in ["postgres://ada:secret@host/db", "postgresql://host/db"] {
            check(server, DatabaseAddress::Postgres(server.to_owned()));
        }
    }

    #[test]
    fn address_of_no_backend_is_refused_without_its_password() {
        for bad in [
            "",
            "sqlite:",
            "sqlite://",
            "sqlite:?shared=true",
            "redis://ada:secret@host",
        ] {
            let error = bad.parse::<DatabaseAddress>().unwrap_err();
            assert_eq!(error.kind(), "unsupported_database", "{bad}");
            assert!(!error.to_string().contains("secret"), "{error}");
        }
    }

    async fn is_usable(engine: Engine) {
        let chat = engine.conversation("c").open().await.unwrap();
        chat.save([contexture_ir::user("Hello")]).await.unwrap();
        assert_eq!(chat.info().await.unwrap().nodes, 1);
    }

    #[tokio::test]
    async fn open_memory_gives_an_empty_engine() {
        is_usable(open("memory:").await.unwrap()).await;
    }

    #[cfg(feature = "sqlite")]
    #[tokio::test]
    async fn open_path_creates_the_file_and_finds_it_again() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("a.db");
        let path = path.to_str().unwrap();
        is_usable(open(path).await.unwrap()).await;
        let again = open(&format!("sqlite:{path}")).await.unwrap();
        let chat = again.conversation("c").open_existing().await.unwrap();
        assert_eq!(chat.info().await.unwrap().nodes, 1);
    }

    #[cfg(not(feature = "sqlite"))]
    #[tokio::test]
    async fn open_path_without_sqlite_names_the_feature() {
        let error = open("a.db").await.unwrap_err();
        assert_eq!(error.kind(), "missing_feature");
        assert!(error.to_string().contains("`sqlite`"), "{error}");
    }

    #[cfg(feature = "postgres")]
    #[tokio::test]
    async fn open_postgres_asks_the_server_and_hides_the_password() {
        // Port 9 of this machine has no PostgreSQL: the address has passed and the connection fails.
        let address = "postgres://ada:secret@127.0.0.1:9/db?connect_timeout=1";
        let error = open(address).await.unwrap_err();
        assert!(matches!(error, OpenError::Store(_)), "{error}");
        assert!(!format!("{error:?}").contains("secret"), "{error:?}");
    }

    #[cfg(not(feature = "postgres"))]
    #[tokio::test]
    async fn open_postgres_without_postgres_names_the_feature() {
        let error = open("postgres://ada:secret@host/db").await.unwrap_err();
        assert_eq!(error.kind(), "missing_feature");
        let text = error.to_string();
        assert!(
            text.contains("`postgres`") && !text.contains("secret"),
            "{text}"
        );
    }
}
