//! `contexture doctor`: whether everything is as it should be, and what to do if not.

mod check;
mod serving;

use std::fmt::Write as _;
use std::fs;
use std::io::{self, IsTerminal};
use std::path::PathBuf;

use clap::Args;
use contexture::store::{Conversation, ListConversations};
use contexture::store_postgres;
use contexture::store_sqlite::FORMAT;
use contexture::{Catalogue, Engine, Format};
use jiff::Timestamp;
use owo_colors::OwoColorize as _;
use serde_json::json;

use crate::commands::doctor::check::{Check, State};
use crate::database::{self, Missing};
use crate::exit::Exit;
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::models::general;
use crate::printable::{counted, grouped, lines, pad, pad_left};
use crate::{say, terminal};
use contexture::engine::item;
use contexture::engine::tree::load;

/// So many items are read without being asked to.
const READ_UNASKED: u64 = 200_000;
/// No clock that is right shows an earlier time: 2025-01-01.
const BUILT_AFTER: Timestamp = Timestamp::constant(1_735_689_600, 0);

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
        models(globals)?;
        return Ok(Exit::Done);
    }
    let mut checks = vec![Check::new("version", State::Ok, env!("CARGO_PKG_VERSION"))];
    let file = arguments.config.as_deref();
    let config = file.and_then(|file| serving::configuration(file, &mut checks));
    let mut globals = globals.clone();
    if let Some(config) = &config {
        globals.db = globals.db.or_else(|| config.server.db.clone());
        serving::server(config, &mut checks).await;
    }
    checks.push(clock());
    database(arguments, &globals, &mut checks).await;
    checks.push(catalogue());
    checks.push(screen());
    let failed = checks.iter().any(|check| check.state == State::Fail);
    if globals.json {
        say::json(&json!({ "ok": !failed, "checks": checks }))?;
    } else {
        say::styled(&text(&checks))?;
    }
    Ok(if failed { Exit::Findings } else { Exit::Done })
}

async fn database(arguments: &Arguments, globals: &Globals, checks: &mut Vec<Check>) {
    let address = match database::address(globals) {
        Ok(address) => address,
        Err(failure) => return checks.push(Check::failed("database", failure)),
    };
    if database::is_postgres(&address) {
        return server(arguments, globals, checks).await;
    }
    let Some(file) = database::file(&address) else {
        let found = format!("{address}, which keeps nothing");
        return checks
            .push(Check::new("database", State::Warn, found).hint("--db FILE names a file"));
    };
    let shown = file.display();
    let Ok(metadata) = fs::metadata(file) else {
        let check = Check::new("database", State::Ok, format!("{shown}, not made yet"));
        return checks.push(check.hint("`contexture import FILE` makes it"));
    };
    let size = size(metadata.len());
    if metadata.permissions().readonly() {
        let check = Check::new(
            "database",
            State::Warn,
            format!("{shown}, {size}, read-only"),
        );
        checks.push(check.hint("make it writable to import or branch"));
    } else {
        checks.push(Check::new(
            "database",
            State::Ok,
            format!("{shown}, {size}"),
        ));
    }
    let engine = match database::open(globals, Missing::Refuse).await {
        Ok(engine) => engine,
        Err(failure) => return checks.push(Check::failed("format", failure)),
    };
    let found = format!("opens; the newest format this version knows is {FORMAT}");
    checks.push(Check::new("format", State::Ok, found));
    contents(arguments, globals, &engine, checks).await;
}

async fn server(arguments: &Arguments, globals: &Globals, checks: &mut Vec<Check>) {
    let engine = match database::open(globals, Missing::Refuse).await {
        Ok(engine) => engine,
        Err(failure) => return checks.push(Check::failed("database", failure)),
    };
    let newest = store_postgres::FORMAT;
    let found = format!("PostgreSQL; the newest format this version knows is {newest}");
    checks.push(Check::new("database", State::Ok, found));
    contents(arguments, globals, &engine, checks).await;
}

async fn contents(
    arguments: &Arguments,
    globals: &Globals,
    engine: &Engine,
    checks: &mut Vec<Check>,
) {
    match conversations(engine, globals).await {
        Ok(found) => {
            let items: u64 = found.iter().map(|conversation| conversation.nodes).sum();
            let kept = format!(
                "{} of {}, {}",
                counted(found.len() as u64, "conversation"),
                globals.owner.as_deref().unwrap_or("local"),
                counted(items, "item")
            );
            checks.push(Check::new("contents", State::Ok, kept));
            checks.push(integrity(arguments, globals, engine, &found, items).await);
        }
        Err(failure) => checks.push(Check::failed("contents", failure)),
    }
}

async fn conversations(engine: &Engine, globals: &Globals) -> Outcome<Vec<Conversation>> {
    let owner = database::owner(globals)?;
    let mut list = ListConversations {
        limit: Some(500),
        ..ListConversations::default()
    };
    let mut found = Vec::new();
    loop {
        let page = engine.conversations(&owner, list.clone()).await?;
        found.extend(page.conversations);
        match page.next {
            Some(next) => list.after = Some(next),
            None => return Ok(found),
        }
    }
}

/// Reads what is stored; the store compares every item with its hash.
async fn integrity(
    arguments: &Arguments,
    globals: &Globals,
    engine: &Engine,
    found: &[Conversation],
    items: u64,
) -> Check {
    if items > READ_UNASKED && !arguments.deep {
        let check = Check::new("integrity", State::Warn, "not read: there are many items");
        return check.hint("`contexture doctor --deep` reads every one");
    }
    let mut read = 0;
    let mut damaged: Vec<String> = Vec::new();
    for conversation in found {
        match sound(globals, engine, conversation).await {
            Ok(items) => read += items,
            Err(failure) => damaged.push(failure.message),
        }
    }
    match damaged.first() {
        None => Check::new(
            "integrity",
            State::Ok,
            format!("{} read, none damaged", counted(read, "item")),
        ),
        Some(first) => {
            let many = counted(damaged.len() as u64, "conversation");
            Check::new("integrity", State::Fail, format!("{many} damaged: {first}")).hint(
                "keep a copy of the file; what is not damaged stays readable: `contexture export`",
            )
        }
    }
}

async fn sound(globals: &Globals, engine: &Engine, conversation: &Conversation) -> Outcome<u64> {
    let owner = database::owner(globals)?;
    let builder = engine.conversation(&conversation.id).owner(owner.as_str());
    let tree = load(&builder.existing().await?).await?;
    for node in &tree.nodes {
        item(node)?;
    }
    Ok(tree.nodes.len() as u64)
}

/// Whether the clock is set at all: what is stored has its time.
fn clock() -> Check {
    let now = Timestamp::now();
    let found = now.strftime("%Y-%m-%d %H:%M UTC").to_string();
    if now < BUILT_AFTER {
        return Check::new("clock", State::Fail, format!("{found}, which has passed"))
            .hint("set the clock: what is stored would seem older than it is");
    }
    Check::new("clock", State::Ok, found)
}

fn catalogue() -> Check {
    let catalogue = Catalogue::builtin();
    let count = catalogue.models().len() as u64;
    let unknown: Vec<&str> = Format::PROVIDERS
        .into_iter()
        .map(general)
        .filter(|name| catalogue.resolve(name).is_err())
        .collect();
    if count == 0 || !unknown.is_empty() {
        let found = format!(
            "{}, without {}",
            counted(count, "model"),
            unknown.join(", ")
        );
        return Check::new("catalogue", State::Fail, found).hint("install contexture again");
    }
    let version = env!("CARGO_PKG_VERSION");
    Check::new(
        "catalogue",
        State::Ok,
        format!("{}, of version {version}", counted(count, "model")),
    )
}

fn screen() -> Check {
    if !io::stdout().is_terminal() {
        return Check::new(
            "terminal",
            State::Ok,
            "output goes to a file or program: no colours",
        );
    }
    let colours = match anstream::AutoStream::choice(&io::stdout()) {
        anstream::ColorChoice::Never => "no colours",
        _ => "colours",
    };
    let found = format!("{} columns, {colours}", terminal::columns(80));
    Check::new("terminal", State::Ok, found)
}

fn text(checks: &[Check]) -> String {
    let wide = checks
        .iter()
        .map(|check| check.name.len())
        .max()
        .unwrap_or(0);
    let mut out = String::new();
    for check in checks {
        let state = match check.state {
            State::Ok => "ok  ".green().to_string(),
            State::Warn => "warn".yellow().to_string(),
            State::Fail => "fail".red().bold().to_string(),
        };
        let _ = writeln!(
            out,
            "{state}  {}  {}",
            pad(check.name, wide),
            lines(&check.found)
        );
        if let Some(hint) = &check.hint {
            let _ = writeln!(
                out,
                "      {}  {} {}",
                pad("", wide),
                "hint:".cyan(),
                lines(hint)
            );
        }
    }
    out
}

fn models(globals: &Globals) -> Outcome<()> {
    let catalogue = Catalogue::builtin();
    if globals.json {
        return say::json(&json!({ "models": catalogue.models().collect::<Vec<_>>() }));
    }
    let mut out = String::new();
    for model in catalogue.models() {
        let _ = writeln!(
            out,
            "{}  {}  {}  {}",
            pad(&model.provider, 10),
            pad(&model.id, 44),
            pad_left(&grouped(model.context_window), 10),
            model.encoding
        );
    }
    say::styled(&out)
}

fn size(bytes: u64) -> String {
    match bytes {
        ..10_000 => format!("{} bytes", grouped(bytes)),
        10_000..10_000_000 => format!("{} kB", grouped(bytes / 1_000)),
        _ => format!("{} MB", grouped(bytes / 1_000_000)),
    }
}
