//! `contexture doctor`: whether everything is as it should be, and what to do if not.

mod check;
#[cfg(feature = "serve")]
mod serving;
mod storage;

use std::fs;
use std::io::{self, IsTerminal};
#[cfg(feature = "serve")]
use std::path::PathBuf;

use clap::Args;
use contexture::store::{Conversation, ListConversations};
use contexture::store_postgres;
use contexture::store_sqlite::FORMAT;
use contexture::{Catalogue, DatabaseAddress, Engine, Format};
use jiff::Timestamp;
use owo_colors::OwoColorize as _;
use serde_json::json;

use crate::commands::doctor::check::{CheckState, DoctorCheck};
use crate::database::{self, WhenMissing};
use crate::options::default_model::default_model;
use crate::options::globals::Globals;
use crate::output::exit::Exit;
use crate::output::failure::Outcome;
use crate::output::printable::{
    LongWords, count_with_noun, group_thousands, pad_right, printable_lines, wrap_words,
};
use crate::output::table::Column;
use crate::output::terminal::{Stream, column_count, terminal_columns};
use crate::output::write;
use contexture::engine::parse_node_item;
use contexture::engine::tree::load_tree;

/// So many items are read without being asked to.
const MAX_ITEMS_WITHOUT_DEEP: u64 = 200_000;
/// No clock that is right shows an earlier time: 2025-01-01.
const BUILT_AFTER: Timestamp = Timestamp::constant(1_735_689_600, 0);

/// Clocks of two machines may differ so much.
const CLOCK_TOLERANCE_MS: i64 = 60_000;

/// Check the database, the server's configuration, the model catalogue and the terminal
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture doctor
  contexture doctor --config contexture.toml      # would `contexture serve` start with it?
  contexture doctor --json | jq '.checks[] | select(.state != \"ok\")'
  contexture doctor --models | grep claude")]
pub(crate) struct Arguments {
    /// Read every item of every conversation, however many there are
    #[arg(long)]
    deep: bool,
    #[cfg(feature = "serve")]
    /// The configuration of `contexture serve`, which is looked at too: keys, upstreams, address, open files
    #[arg(long, env = "CONTEXTURE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// List the models that are known, and nothing else
    #[arg(long)]
    models: bool,
}

/// Runs the command. Something that is not as it should be makes it [`Exit::Findings`].
///
/// # Errors
/// The output cannot be written.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    if arguments.models {
        print_models(globals)?;
        return Ok(Exit::Done);
    }
    let mut checks = vec![DoctorCheck::new(
        "version",
        CheckState::Ok,
        env!("CARGO_PKG_VERSION"),
    )];
    #[cfg(feature = "serve")]
    let globals =
        &serving::check_configuration(arguments.config.as_deref(), globals, &mut checks).await;
    checks.push(check_clock());
    check_database(arguments, globals, &mut checks).await;
    checks.push(check_catalogue());
    checks.push(check_terminal());
    let failed = checks.iter().any(|check| check.state == CheckState::Fail);
    if globals.json {
        write::print_json(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        write::print_styled(&format_checks(&checks))?;
    }
    Ok(if failed { Exit::Findings } else { Exit::Done })
}

async fn check_database(arguments: &Arguments, globals: &Globals, checks: &mut Vec<DoctorCheck>) {
    let address = match database::resolve_address(globals) {
        Ok(address) => address,
        Err(failure) => return checks.push(DoctorCheck::from_failure("database", failure)),
    };
    let file = match address.parse() {
        Ok(DatabaseAddress::Sqlite(file) | DatabaseAddress::SharedSqlite(file)) => file,
        Ok(DatabaseAddress::Postgres(_)) => {
            return check_postgres(arguments, globals, checks).await;
        }
        Err(error) => {
            return checks.push(DoctorCheck::from_failure("database", error.into()));
        }
        // Memory, the only address that is left.
        Ok(_) => {
            let found = format!("{address}, which keeps nothing");
            return checks.push(
                DoctorCheck::new("database", CheckState::Warn, found)
                    .with_hint("--db FILE names a file"),
            );
        }
    };
    let shown = file.display();
    // No finding: before the first import there is none.
    let Ok(metadata) = fs::metadata(&file) else {
        let check = DoctorCheck::new("database", CheckState::Ok, format!("{shown}, not made yet"));
        return checks
            .push(check.with_hint("`contexture serve` and `contexture import FILE` make it"));
    };
    let size = format_size(metadata.len());
    if metadata.permissions().readonly() {
        let check = DoctorCheck::new(
            "database",
            CheckState::Warn,
            format!("{shown}, {size}, read-only"),
        );
        checks.push(check.with_hint("make it writable to import or branch"));
    } else {
        checks.push(DoctorCheck::new(
            "database",
            CheckState::Ok,
            format!("{shown}, {size}"),
        ));
    }
    storage::check_storage(&file, checks);
    let engine = match database::open_engine(globals, WhenMissing::Refuse).await {
        Ok(engine) => engine,
        Err(failure) => return checks.push(DoctorCheck::from_failure("format", failure)),
    };
    let found = format!("opens; the newest format this version knows is {FORMAT}");
    checks.push(DoctorCheck::new("format", CheckState::Ok, found));
    check_contents(arguments, globals, &engine, checks).await;
}

async fn check_postgres(arguments: &Arguments, globals: &Globals, checks: &mut Vec<DoctorCheck>) {
    let engine = match database::open_engine(globals, WhenMissing::Refuse).await {
        Ok(engine) => engine,
        Err(failure) => return checks.push(DoctorCheck::from_failure("database", failure)),
    };
    let newest = store_postgres::FORMAT;
    let found = format!("PostgreSQL; the newest format this version knows is {newest}");
    checks.push(DoctorCheck::new("database", CheckState::Ok, found));
    check_contents(arguments, globals, &engine, checks).await;
}

async fn check_contents(
    arguments: &Arguments,
    globals: &Globals,
    engine: &Engine,
    checks: &mut Vec<DoctorCheck>,
) {
    match list_conversations(engine, globals).await {
        Ok(found) => {
            let items: u64 = found.iter().map(|conversation| conversation.nodes).sum();
            let kept = format!(
                "{} of {}, {}",
                count_with_noun(found.len() as u64, "conversation"),
                globals.owner.as_deref().unwrap_or("local"),
                count_with_noun(items, "item")
            );
            checks.push(DoctorCheck::new("contents", CheckState::Ok, kept));
            checks.push(check_times(&found, Timestamp::now()));
            checks.push(check_integrity(arguments, globals, engine, &found, items).await);
        }
        Err(failure) => checks.push(DoctorCheck::from_failure("contents", failure)),
    }
}

async fn list_conversations(engine: &Engine, globals: &Globals) -> Outcome<Vec<Conversation>> {
    let owner = database::resolve_owner(globals)?;
    let mut list = ListConversations {
        limit: Some(500),
        ..ListConversations::default()
    };
    let mut found = Vec::new();
    loop {
        let page = engine.list_conversations(&owner, list.clone()).await?;
        found.extend(page.conversations);
        match page.next {
            Some(next) => list.after = Some(next),
            None => return Ok(found),
        }
    }
}

/// Reads what is stored; the store compares every item with its hash.
async fn check_integrity(
    arguments: &Arguments,
    globals: &Globals,
    engine: &Engine,
    found: &[Conversation],
    items: u64,
) -> DoctorCheck {
    // Reading very many items takes long; a check that is run in passing must not.
    if items > MAX_ITEMS_WITHOUT_DEEP && !arguments.deep {
        let check = DoctorCheck::new(
            "integrity",
            CheckState::Warn,
            "not read: there are many items",
        );
        return check.with_hint("`contexture doctor --deep` reads every one");
    }
    let mut read = 0;
    let mut damaged: Vec<String> = Vec::new();
    for conversation in found {
        match verify_items(globals, engine, conversation).await {
            Ok(items) => read += items,
            // Every conversation is tried, so that one that is damaged hides no other.
            Err(failure) => damaged.push(failure.message),
        }
    }
    integrity_check(read, &damaged)
}

/// The check after so many items were read and these conversations were found damaged.
fn integrity_check(read: u64, damaged: &[String]) -> DoctorCheck {
    let Some(first) = damaged.first() else {
        let found = format!("{} read, none damaged", count_with_noun(read, "item"));
        return DoctorCheck::new("integrity", CheckState::Ok, found);
    };
    let many = count_with_noun(damaged.len() as u64, "conversation");
    let found = format!("{many} damaged: {first}");
    DoctorCheck::new("integrity", CheckState::Fail, found).with_hint(
        "keep a copy of the file; what is not damaged stays readable: `contexture export`",
    )
}

async fn verify_items(
    globals: &Globals,
    engine: &Engine,
    conversation: &Conversation,
) -> Outcome<u64> {
    let owner = database::resolve_owner(globals)?;
    let builder = engine.conversation(&conversation.id).owner(owner.as_str());
    let tree = load_tree(&builder.open_existing().await?).await?;
    // The store has checked the hashes; this also reads every item as what it says it is.
    for node in &tree.nodes {
        parse_node_item(node)?;
    }
    Ok(tree.nodes.len() as u64)
}

/// Whether the clock is set at all: what is stored has its time.
fn check_clock() -> DoctorCheck {
    let now = Timestamp::now();
    let found = now.strftime("%Y-%m-%d %H:%M UTC").to_string();
    if now < BUILT_AFTER {
        return DoctorCheck::new(
            "clock",
            CheckState::Fail,
            format!("{found}, which has passed"),
        )
        .with_hint("set the clock: what is stored would seem older than it is");
    }
    DoctorCheck::new("clock", CheckState::Ok, found)
}

/// Whether the clock agrees with what is stored: nothing is written later than now.
fn check_times(found: &[Conversation], now: Timestamp) -> DoctorCheck {
    let newest = found
        .iter()
        .map(|conversation| conversation.updated_ms)
        .max();
    let ahead = newest.map_or(0, |newest| newest.saturating_sub(now.as_millisecond()));
    if ahead <= CLOCK_TOLERANCE_MS {
        let found = "nothing stored is of a later time";
        return DoctorCheck::new("clock and database", CheckState::Ok, found);
    }
    let found = format!("something stored is of a time {} s from now", ahead / 1000);
    DoctorCheck::new("clock and database", CheckState::Warn, found)
        .with_hint("compare the clocks of all machines that use the database; times are only shown, order is kept")
}

fn check_catalogue() -> DoctorCheck {
    let catalogue = Catalogue::builtin();
    let count = catalogue.models().len() as u64;
    let unknown: Vec<&str> = Format::PROVIDERS
        .into_iter()
        .map(default_model)
        // The models meant where none is named must be there.
        .filter(|name| catalogue.resolve(name).is_err())
        .collect();
    if count == 0 || !unknown.is_empty() {
        let found = format!(
            "{}, without {}",
            count_with_noun(count, "model"),
            unknown.join(", ")
        );
        return DoctorCheck::new("catalogue", CheckState::Fail, found)
            .with_hint("install contexture again");
    }
    let version = env!("CARGO_PKG_VERSION");
    DoctorCheck::new(
        "catalogue",
        CheckState::Ok,
        format!("{}, of version {version}", count_with_noun(count, "model")),
    )
}

fn check_terminal() -> DoctorCheck {
    if !io::stdout().is_terminal() {
        return DoctorCheck::new(
            "terminal",
            CheckState::Ok,
            "output goes to a file or program: no colours",
        );
    }
    let colours = match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => "no colours",
        _ => "colours",
    };
    let found = format!("{} columns, {colours}", column_count(Stream::Output));
    DoctorCheck::new("terminal", CheckState::Ok, found)
}

/// The state as a coloured word of four columns.
fn coloured_state(state: CheckState) -> String {
    // Padded before it is coloured: colour codes have no width.
    match state {
        CheckState::Ok => "ok  ".green().to_string(),
        CheckState::Warn => "warn".yellow().to_string(),
        CheckState::Fail => "fail".red().bold().to_string(),
    }
}

fn format_checks(checks: &[DoctorCheck]) -> String {
    let wide = checks.iter().map(|check| check.name.len()).max();
    let wide = wide.unwrap_or(0);
    let columns = terminal_columns(Stream::Output);
    let mut out = String::new();
    let mut push = |line: String| {
        out.push_str(&match columns {
            // Below the words of the first line.
            Some(columns) => wrap_words(&line, columns, wide + 8, LongWords::Keep),
            None => line,
        });
    };
    for check in checks {
        let state = coloured_state(check.state);
        let name = pad_right(check.name, wide);
        push(format!(
            "{state}  {name}  {}\n",
            printable_lines(&check.found)
        ));
        if let Some(hint) = &check.hint {
            let hint = format!("{} {}", "hint:".cyan(), printable_lines(hint));
            push(format!("{:>1$}{hint}\n", "", wide + 8));
        }
    }
    out
}

fn print_models(globals: &Globals) -> Outcome<()> {
    let catalogue = Catalogue::builtin();
    if globals.json {
        return write::print_json(&json!({ "models": catalogue.models().collect::<Vec<_>>() }));
    }
    let rows = catalogue.models().map(|model| {
        vec![
            model.provider.clone(),
            model.id.clone(),
            group_thousands(model.context_window),
            model.encoding.to_string(),
        ]
    });
    let columns = [
        Column::word("").with_rank(1),
        Column::id(""),
        Column::figure("").with_rank(2),
        Column::word(""),
    ];
    write::print_table(&columns, &rows.collect::<Vec<_>>())
}

fn format_size(bytes: u64) -> String {
    match bytes {
        ..10_000 => format!("{} bytes", group_thousands(bytes)),
        10_000..10_000_000 => format!("{} kB", group_thousands(bytes / 1_000)),
        _ => format!("{} MB", group_thousands(bytes / 1_000_000)),
    }
}
