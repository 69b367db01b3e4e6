//! The schema: the format of the database, and its migrations.
//!
//! Migrations are the numbered files in `migrations/`. Each of their statements runs in one
//! transaction with the update that records it in the one row of `contexture.schema_version`; that
//! row is locked first. So an interrupted migration continues where it stopped, concurrent
//! migrations take turns, and each statement runs once.
//!
//! To add a column: a new file in `migrations/`, its entry in [`MIGRATIONS`] and the next [`FORMAT`]; then the code that
//! writes and reads rows (for nodes `rows/node_row.rs`), and the same in the SQLite store (`schema/mod.rs`, `rows/`).

use contexture_store::{Error, StorageFault};
use tokio_postgres::Client;
use tokio_postgres::error::SqlState;

use crate::connection::address::DatabaseAddress;
use crate::connection::error::{RowError, from_postgres};
use crate::connection::params::get_column;
use crate::connection::pool::{Access, ConnectionPool};
use crate::conversations::list_index::fill_title_terms;
use crate::options::PostgresOptions;

/// The newest format this version knows.
pub const FORMAT: u32 = 13;

/// A migration from one format to the next.
struct Migration {
    sql: &'static str,
    /// Oldest format that a version must know to use the database afterwards.
    needs: i32,
}

/// All migrations; the one at index n leads from format n to format n + 1.
const MIGRATIONS: [Migration; FORMAT as usize] = [
    Migration {
        sql: include_str!("../migrations/0001_begin.sql"),
        needs: 1,
    },
    Migration {
        sql: include_str!("../migrations/0002_streams.sql"),
        needs: 2,
    },
    Migration {
        sql: include_str!("../migrations/0003_terms.sql"),
        needs: 3,
    },
    Migration {
        sql: include_str!("../migrations/0004_upkeep.sql"),
        needs: 4,
    },
    Migration {
        sql: include_str!("../migrations/0005_responses.sql"),
        needs: 5,
    },
    Migration {
        sql: include_str!("../migrations/0006_live_values.sql"),
        needs: 5,
    },
    Migration {
        sql: include_str!("../migrations/0007_moved_branches.sql"),
        needs: 7,
    },
    Migration {
        sql: include_str!("../migrations/0008_list_index.sql"),
        // An older version would store titles that nobody finds.
        needs: 8,
    },
    Migration {
        sql: include_str!("../migrations/0009_calls.sql"),
        // An older version would delete conversations and owners without their calls.
        needs: 9,
    },
    Migration {
        sql: include_str!("../migrations/0010_stems.sql"),
        // An older version would make the terms of all texts anew, without stems.
        needs: 10,
    },
    Migration {
        sql: include_str!("../migrations/0011_call_bodies.sql"),
        // An older version would redact a message and leave it in them.
        needs: 11,
    },
    Migration {
        sql: include_str!("../migrations/0012_branch_holders.sql"),
        // An older version would work on what another process is working on.
        needs: 12,
    },
    Migration {
        sql: include_str!("../migrations/0013_stems_for_words.sql"),
        // An older version would make the terms of all texts anew, and newer ones would not find them.
        needs: 13,
    },
];

/// Largest number of attempts to create the schema while others create it too.
const ATTEMPTS: usize = 10;

/// Creates or upgrades the tables of the database at `address`; returns the format that it had.
///
/// Needs the right to create a schema, or a schema `contexture` that it owns. It is idempotent, may
/// run several times at once, and continues an interrupted migration.
///
/// # Errors
///
/// [`Error::Newer`] for a database of a later version, [`Error::Storage`] for a schema `contexture`
/// of another program, an encoding other than UTF-8, and errors of the server.
pub async fn migrate(address: &str) -> Result<u32, Error> {
    let options = PostgresOptions {
        // Statements run one after another, so one connection is enough.
        connections: 1,
        ..PostgresOptions::default()
    };
    let server = ConnectionPool::new(DatabaseAddress::parse(address)?, &options)?;
    let client = server.get_client(Access::Write, None).await?;
    let to_error = |fault: RowError| fault.into_error(server.address());
    create_schema_if_missing(&client, &server).await?;
    let found = read_format(&client).await.map_err(to_error)?;
    loop {
        match run_next_statement(&client, &server).await {
            Ok(true) => {}
            Ok(false) => break,
            Err(fault) => return Err(to_error(fault)),
        }
    }
    // What SQL cannot compute. Interrupted, it is finished by the next migration; until then lists
    // by title do without their index.
    fill_title_terms(&client).await.map_err(to_error)?;
    Ok(u32::try_from(found).unwrap_or(0))
}

/// Checks that the database can be used as it is.
pub(crate) async fn check_schema_version(server: &ConnectionPool) -> Result<(), Error> {
    let client = server.get_client(Access::Read, None).await?;
    let row = client
        .query_typed(
            "SELECT format, needs, current_setting('server_encoding') \
             FROM contexture.schema_version",
            &[],
        )
        .await;
    let rows = match row {
        Ok(rows) => rows,
        Err(error) if is_missing(&error) => return Err(older_format_error(server, 0)),
        Err(error) => return Err(from_postgres(error, server.address())),
    };
    let read = || -> Result<(i32, i32, String), RowError> {
        match rows.first() {
            Some(row) => Ok((
                get_column(row, 0)?,
                get_column(row, 1)?,
                get_column(row, 2)?,
            )),
            None => Ok((0, 0, "UTF8".to_owned())),
        }
    };
    let (format, needs, encoding) = read().map_err(|fault| fault.into_error(server.address()))?;
    check_encoding(&encoding, server)?;
    // A newer format alone is no obstacle: the oldest version that it still allows decides.
    check_needs(needs, server)?;
    match u32::try_from(format) {
        Ok(format) if format >= FORMAT => Ok(()),
        _ => Err(older_format_error(
            server,
            u32::try_from(format).unwrap_or(0),
        )),
    }
}

fn is_missing(error: &tokio_postgres::Error) -> bool {
    let missing = [SqlState::UNDEFINED_TABLE, SqlState::INVALID_SCHEMA_NAME];
    error.code().is_some_and(|code| missing.contains(code))
}

fn older_format_error(server: &ConnectionPool, found: u32) -> Error {
    Error::Older {
        path: server.address().to_owned(),
        found,
        needed: FORMAT,
    }
}

fn check_needs(needs: i32, server: &ConnectionPool) -> Result<(), Error> {
    match u32::try_from(needs) {
        Ok(needs) if needs > FORMAT => Err(Error::Newer {
            path: server.address().to_owned(),
            found: needs,
            supported: FORMAT,
        }),
        _ => Ok(()),
    }
}

#[derive(Debug, thiserror::Error)]
#[error(
    "the database's encoding is {0}, expected UTF8: CREATE DATABASE … ENCODING 'UTF8' TEMPLATE template0"
)]
struct Encoding(String);

#[derive(Debug, thiserror::Error)]
#[error("there is a schema contexture with tables of something else")]
struct ForeignTables;

fn storage_error(
    server: &ConnectionPool,
    fault: StorageFault,
    why: impl std::error::Error + Send + Sync + 'static,
) -> Error {
    Error::Storage {
        path: server.address().to_owned(),
        fault,
        source: Some(Box::new(why)),
    }
}

fn check_encoding(encoding: &str, server: &ConnectionPool) -> Result<(), Error> {
    if encoding == "UTF8" {
        return Ok(());
    }
    let why = Encoding(encoding.to_owned());
    Err(storage_error(server, StorageFault::CannotOpen, why))
}

/// Creates the schema and its table `schema_version`, if they are missing.
async fn create_schema_if_missing(client: &Client, server: &ConnectionPool) -> Result<(), Error> {
    let to_error = |fault: RowError| fault.into_error(server.address());
    let mut attempts = ATTEMPTS;
    loop {
        attempts -= 1;
        let found = inspect_schema(client).await.map_err(to_error)?;
        check_encoding(&found.encoding, server)?;
        if found.is_begun {
            return Ok(());
        }
        if found.is_foreign {
            return Err(storage_error(
                server,
                StorageFault::NotADatabase,
                ForeignTables,
            ));
        }
        match create_schema(client, found.has_schema).await {
            // Another process created it since it was inspected: inspect again.
            Err(error) if attempts > 0 && is_there_already(&error) => {}
            Err(error) => return Err(from_postgres(error, server.address())),
            Ok(()) => return Ok(()),
        }
    }
}

/// State of the schema before a migration.
struct SchemaState {
    encoding: String,
    has_schema: bool,
    is_begun: bool,
    is_foreign: bool,
}

async fn inspect_schema(client: &Client) -> Result<SchemaState, RowError> {
    let rows = client
        .query_typed(
            "SELECT current_setting('server_encoding'), \
             (SELECT count(*) FROM pg_namespace WHERE nspname = 'contexture'), \
             (SELECT count(*) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace \
             WHERE s.nspname = 'contexture' AND c.relkind = 'r'), \
             (SELECT count(*) FROM pg_class c JOIN pg_namespace s ON s.oid = c.relnamespace \
             WHERE s.nspname = 'contexture' AND c.relname = 'schema_version')",
            &[],
        )
        .await?;
    let Some(row) = rows.first() else {
        return Err(crate::connection::error::corrupt_error("no answer"));
    };
    let exists = |index| -> Result<bool, RowError> { Ok(get_column::<i64>(row, index)? > 0) };
    Ok(SchemaState {
        encoding: get_column(row, 0)?,
        has_schema: exists(1)?,
        is_foreign: exists(2)? && !exists(3)?,
        is_begun: exists(3)?,
    })
}

async fn create_schema(client: &Client, has_schema: bool) -> Result<(), tokio_postgres::Error> {
    // Skipped if the schema exists, since the statement needs a privilege even then.
    if !has_schema {
        client.batch_execute("CREATE SCHEMA contexture").await?;
    }
    client
        .batch_execute(
            "CREATE TABLE contexture.schema_version (\
             format integer NOT NULL, done integer NOT NULL, needs integer NOT NULL, \
             one boolean PRIMARY KEY DEFAULT true CHECK (one)); \
             INSERT INTO contexture.schema_version (format, done, needs) VALUES (0, 0, 0)",
        )
        .await
}

fn is_there_already(error: &tokio_postgres::Error) -> bool {
    let codes = [
        SqlState::UNIQUE_VIOLATION,
        SqlState::DUPLICATE_SCHEMA,
        SqlState::DUPLICATE_TABLE,
        SqlState::DUPLICATE_OBJECT,
    ];
    error.code().is_some_and(|code| codes.contains(code))
}

async fn read_format(client: &Client) -> Result<i32, RowError> {
    let rows = client
        .query_typed("SELECT format FROM contexture.schema_version", &[])
        .await?;
    rows.first().map_or(Ok(0), |row| get_column(row, 0))
}

/// Runs the next statement; returns whether there was one.
async fn run_next_statement(client: &Client, server: &ConnectionPool) -> Result<bool, RowError> {
    client
        .batch_execute("BEGIN ISOLATION LEVEL READ COMMITTED READ WRITE")
        .await?;
    let outcome = run_statement_in_transaction(client, server).await;
    let end = match &outcome {
        Ok(true) => "COMMIT",
        // Also if there was nothing to do: this releases the row's lock.
        _ => "ROLLBACK",
    };
    client.batch_execute(end).await?;
    outcome
}

async fn run_statement_in_transaction(
    client: &Client,
    server: &ConnectionPool,
) -> Result<bool, RowError> {
    let rows = client
        .query_typed(
            "SELECT format, done, needs FROM contexture.schema_version FOR UPDATE",
            &[],
        )
        .await?;
    let Some(row) = rows.first() else {
        return Err(crate::connection::error::corrupt_error(
            "contexture.schema_version is empty",
        ));
    };
    let (format, done): (i32, i32) = (get_column(row, 0)?, get_column(row, 1)?);
    check_needs(get_column(row, 2)?, server)?;
    // Read under the lock, so it includes what other processes have migrated.
    let Some(migration) = usize::try_from(format).ok().and_then(|n| MIGRATIONS.get(n)) else {
        return Ok(false);
    };
    let statements = split_statements(migration.sql);
    let Some(statement) = usize::try_from(done).ok().and_then(|n| statements.get(n)) else {
        let why = format!("contexture.schema_version names statement {done} of {format}");
        return Err(crate::connection::error::corrupt_error(why));
    };
    let is_last = statements.len() == usize::try_from(done).unwrap_or(0) + 1;
    let note = match is_last {
        true => format!(
            "format = {}, done = 0, needs = {}",
            format + 1,
            migration.needs
        ),
        false => format!("done = {}", done + 1),
    };
    client
        .batch_execute(&format!(
            "{statement}; UPDATE contexture.schema_version SET {note}"
        ))
        .await?;
    Ok(true)
}

/// Splits a file into statements: each ends with a semicolon, which occurs nowhere else except in
/// comments.
fn split_statements(sql: &str) -> Vec<String> {
    let code: Vec<&str> = sql
        .lines()
        .map(|line| line.split("--").next().unwrap_or_default().trim_end())
        .filter(|line| !line.is_empty())
        .collect();
    let code = code.join("\n");
    let statements = code.split(';').map(str::trim);
    statements
        .filter(|statement| !statement.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_are_cut_into_statements() {
        for migration in &MIGRATIONS {
            for statement in split_statements(migration.sql) {
                let known = [
                    "CREATE ",
                    "ALTER TABLE ",
                    "DROP INDEX ",
                    "UPDATE contexture.",
                ];
                let is_known = known.iter().any(|verb| statement.starts_with(verb));
                assert!(is_known, "{statement}");
                assert!(statement.contains("contexture."), "{statement}");
            }
        }
        assert_eq!(
            split_statements("-- a; b\nA\n  b; -- c;\n\nD;\n"),
            ["A\n  b", "D"]
        );
    }
}
