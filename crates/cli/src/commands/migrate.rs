//! `contexture migrate`: a database brought to the format of this version.

use clap::Args;
use contexture::DatabaseAddress;
use contexture::store_postgres;
use contexture::store_sqlite;
use serde_json::json;

use crate::database::{self, WhenMissing};
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::write;

/// Bring a database to this version: make or upgrade PostgreSQL tables, finish the text index
#[derive(Debug, Args)]
#[command(after_long_help = "\
A file is upgraded whenever it is opened; a PostgreSQL database only by this command, because other
programs may be using it; stop those of an older version first. For both it finishes the index of
texts, without which searches find only a part. It may be repeated, interrupted, and run by several
at once.

Examples:
  contexture migrate --db postgres://contexture@localhost/contexture
  CONTEXTURE_DB=postgres://contexture:secret@db/contexture contexture migrate")]
pub(crate) struct Arguments {}

/// Runs the command.
///
/// # Errors
/// The database cannot be reached, or refuses.
pub(crate) async fn run(_: &Arguments, globals: &Globals) -> Outcome {
    let address: DatabaseAddress = database::resolve_address(globals)?.parse()?;
    let (from, to) = if let DatabaseAddress::Postgres(address) = &address {
        let from = store_postgres::migrate(address).await?;
        // Otherwise searches would find only a part until they have started it themselves.
        let store = store_postgres::PostgresStore::open(address).await?;
        store.index_texts().await?;
        (from, store_postgres::FORMAT)
    } else {
        // Opening a file upgrades it, but for the index of texts.
        database::open_engine(globals, WhenMissing::Refuse).await?;
        if let Some(file) = address.sqlite_file() {
            store_sqlite::SqliteStore::open(file)?.index_texts().await?;
        }
        (store_sqlite::FORMAT, store_sqlite::FORMAT)
    };
    if globals.json {
        write::print_json(&json!({ "from": from, "format": to }))?;
    } else if !globals.quiet {
        write::print_sentence(&match from {
            0 => format!("tables made, format {to}\n"),
            _ if from >= to => format!("nothing to do, format {to}\n"),
            _ => format!("upgraded from format {from} to {to}\n"),
        })?;
    }
    Ok(Exit::Done)
}
