//! `contexture import`: session files become conversations.

use std::fmt::Write as _;
use std::io::BufRead;
use std::sync::Arc;
use std::time::{Duration, Instant};

use clap::Args;
use contexture::Engine;
use contexture::engine::{ImportOptions, Imported, Parted};
use contexture::ir::ConversationId;
use contexture::sessions::{ReadOptions, Session, read};
use contexture::store::ImportedConversation;
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use owo_colors::OwoColorize as _;
use serde_json::{Value, json};
use tokio::task::JoinSet;

use crate::database::{self, Missing};
use crate::exit::Exit;
use crate::failure::{Failure, Outcome};
use crate::globals::Globals;
use crate::input::Source;
use crate::printable::{clip, counted, one_line, pad, width};
use crate::session::format;
use crate::words::session_format;
use crate::{portable, say, terminal};

/// Sessions that are stored at the same time: the database commits what waits together.
const AT_ONCE: usize = 64;
/// An import that takes longer shows how far it is.
const PATIENCE: Duration = Duration::from_millis(300);
/// The most columns a title takes.
const TITLE: usize = 60;

/// Keep session files as conversations
///
/// Importing a file again stores nothing twice; a session that grew gets what is new. A log with an
/// id of its own is known again by it; for others name the conversation: the file goes on from what
/// both say, and where it says something else, on a new branch.
#[derive(Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture import examples/marshmallow-1867.traj
  contexture import ~/.claude/projects/*/*.jsonl --keep-going
  contexture import chat.json --conversation support-42
  contexture import - --format openai-chat < chat.json

Formats: openai-chat, openai-responses, anthropic, gemini, ui, items, swe-agent, tau-bench,
claude-code, codex; and contexture, whole conversations as `export --to
contexture` writes them. A file with several sessions becomes several conversations.")]
pub(crate) struct Arguments {
    /// The files; `-`: standard input
    #[arg(required = true)]
    files: Vec<String>,
    /// The format of the files; default: detected
    #[arg(long, short, visible_alias = "from", value_parser = session_format())]
    format: Option<String>,
    /// The conversation's id, for a file with one session; default: made from the session's own
    #[arg(long, value_name = "ID")]
    conversation: Option<String>,
    /// Store what can be read and list the rest, instead of stopping at the first error
    #[arg(long)]
    keep_going: bool,
}

/// What came of all files.
#[derive(Default)]
struct Harvest {
    imported: Vec<(Arc<Session>, Imported)>,
    /// Whole conversations, of files that `export --to contexture` wrote.
    whole: Vec<ImportedConversation>,
    skipped: Vec<String>,
    failed: Vec<Failure>,
}

/// The sessions of one file, to be stored.
struct Batch<'a> {
    source: &'a Source,
    sessions: Vec<Arc<Session>>,
    options: ImportOptions,
    keep_going: bool,
}

/// Runs the command.
///
/// # Errors
/// A file that cannot be read, or a conversation that cannot be stored; with `--keep-going` these are
/// listed, and the command ends with [`Exit::Findings`].
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let mut harvest = Harvest::default();
    let mut engine: Option<Engine> = None;
    let progress = Progress::new(globals);
    for name in &arguments.files {
        let source = Source::from(name.as_str());
        // What cannot be read is told of below.
        if let Ok(Some(mut lines)) = portable::open(&source) {
            let kept = whole(arguments, globals, &source, &mut *lines).await;
            match kept {
                Ok(kept) => harvest.whole.extend(kept),
                Err(failure) if arguments.keep_going => harvest.failed.push(failure),
                Err(failure) => return Err(failure),
            }
            continue;
        }
        let sessions = match sessions(arguments, &source) {
            Ok(sessions) => sessions,
            Err(failure) if arguments.keep_going => {
                harvest.failed.push(failure);
                continue;
            }
            Err(failure) => return Err(stopped(failure, &harvest)),
        };
        let options = options(arguments, globals, sessions.len())?;
        // Not before there is something to store: a wrong file must not make a database.
        let engine = match &engine {
            Some(engine) => engine.clone(),
            None => engine
                .insert(database::open(globals, Missing::Make).await?)
                .clone(),
        };
        for skipped in sessions.iter().flat_map(|session| &session.skipped) {
            let line = format!("{source} record {}: {}", skipped.number, skipped.what);
            harvest.skipped.push(line);
        }
        progress.more(sessions.len());
        let batch = Batch {
            source: &source,
            sessions,
            options,
            keep_going: arguments.keep_going,
        };
        store(&engine, batch, &mut harvest, &progress).await?;
    }
    progress.done();
    report(&harvest, globals)?;
    let clean = harvest.failed.is_empty() && harvest.skipped.is_empty();
    Ok(if clean { Exit::Done } else { Exit::Findings })
}

/// Keeps the whole conversations of a file that `export --to contexture` wrote.
async fn whole(
    arguments: &Arguments,
    globals: &Globals,
    source: &Source,
    lines: &mut dyn BufRead,
) -> Outcome<Vec<ImportedConversation>> {
    if arguments.conversation.is_some() {
        let message = format!("{source}: whole conversations keep their ids");
        return Err(Failure::usage(message).hint("leave out --conversation"));
    }
    let owner = database::owner(globals)?;
    let engine = database::open(globals, Missing::Make).await?;
    portable::import(&**engine.store(), &owner, source, lines).await
}

/// The sessions of a file.
fn sessions(arguments: &Arguments, source: &Source) -> Outcome<Vec<Arc<Session>>> {
    let text = source.read()?;
    let name = source.name().unwrap_or_default();
    let of = |failure: Failure| failure.of(source);
    let format = format(&text, arguments.format.as_deref(), &name).map_err(of)?;
    let options = ReadOptions {
        keep_going: arguments.keep_going,
        source_name: &name,
    };
    let sessions = read(format, &text, &options).map_err(|error| of(error.into()))?;
    Ok(sessions.into_iter().map(Arc::new).collect())
}

fn options(arguments: &Arguments, globals: &Globals, sessions: usize) -> Outcome<ImportOptions> {
    let conversation = match &arguments.conversation {
        Some(_) if sessions > 1 || arguments.files.len() > 1 => {
            let message = "--conversation names one conversation, and there are several sessions";
            return Err(Failure::usage(message).hint("leave it out: each gets an id of its own"));
        }
        Some(id) => Some(ConversationId::new(id)?),
        None => None,
    };
    Ok(ImportOptions {
        owner: database::owner(globals)?,
        conversation,
    })
}

/// Stores sessions, several at a time; the harvest has them in their own order.
async fn store(
    engine: &Engine,
    batch: Batch<'_>,
    harvest: &mut Harvest,
    progress: &Progress,
) -> Outcome<()> {
    let Batch {
        source,
        sessions,
        options,
        keep_going,
    } = batch;
    let mut waiting = sessions.into_iter().enumerate();
    let mut running = JoinSet::new();
    let mut done: Vec<(usize, Arc<Session>, Outcome<Imported>)> = Vec::new();
    let mut stop = false;
    loop {
        while running.len() < AT_ONCE && !stop {
            let Some((index, session)) = waiting.next() else {
                break;
            };
            let (engine, options) = (engine.clone(), options.clone());
            running.spawn(async move {
                let imported = engine
                    .import(&session, &options)
                    .await
                    .map_err(Failure::from);
                (index, session, imported)
            });
        }
        let Some(finished) = running.join_next().await else {
            break;
        };
        let (index, session, imported) = finished.map_err(|error| {
            Failure::new(
                Exit::Fault,
                "import",
                format!("an import ended early: {error}"),
            )
        })?;
        let imported = imported.map_err(|failure: Failure| failure.of(source));
        stop |= imported.is_err() && !keep_going;
        done.push((index, session, imported));
        progress.step();
    }
    done.sort_by_key(|(index, ..)| *index);
    for (_, session, imported) in done {
        match imported {
            Ok(imported) => harvest.imported.push((session, imported)),
            Err(failure) => harvest.failed.push(failure),
        }
    }
    match harvest.failed.pop() {
        Some(failure) if !keep_going => Err(stopped(failure, harvest)),
        Some(failure) => {
            harvest.failed.push(failure);
            Ok(())
        }
        None => Ok(()),
    }
}

/// The failure, and what was stored before it.
fn stopped(failure: Failure, harvest: &Harvest) -> Failure {
    match harvest.imported.len() as u64 {
        0 => failure.note("nothing was stored"),
        stored => failure.note(format!("{} stored before", counted(stored, "conversation"))),
    }
}

fn report(harvest: &Harvest, globals: &Globals) -> Outcome<()> {
    if globals.json {
        say::json(&document(harvest))?;
    } else if !globals.quiet {
        say::styled(&table(harvest))?;
    }
    if !globals.json {
        for (_, imported) in &harvest.imported {
            if let Some(parted) = &imported.parted {
                say::warning(&went_another_way(imported, parted));
            }
        }
        for failure in &harvest.failed {
            say::failure(failure, false);
        }
        for skipped in &harvest.skipped {
            say::warning(&format!("left out: {skipped}"));
        }
    }
    Ok(())
}

fn went_another_way(imported: &Imported, parted: &Parted) -> String {
    let Parted { branch, shared } = parted;
    let id = &imported.conversation;
    let rest = imported.nodes.saturating_sub(*shared) as u64;
    format!(
        "{id} went another way after {}: the file's other {} on the new branch `{branch}`, now the \
         active one; `contexture log {id}` shows both",
        counted(*shared as u64, "item"),
        if rest == 1 {
            "one is".to_owned()
        } else {
            format!("{rest} are")
        },
    )
}

fn document(harvest: &Harvest) -> Value {
    let imported = harvest.imported.iter().map(|(session, imported)| {
        json!({
            "conversation": imported.conversation.as_str(),
            "title": imported.title,
            "format": session.format.as_str(),
            "source": session.source_id,
            "items": imported.nodes,
            "new": imported.new,
            "branches": imported.branches,
            "parted": imported.parted.as_ref().map(|parted| json!({
                "branch": parted.branch.as_str(), "after": parted.shared,
            })),
        })
    });
    let whole = harvest.whole.iter().map(|whole| {
        json!({
            "conversation": whole.id.as_str(), "format": portable::NAME, "items": whole.nodes,
            "new": whole.nodes, "branches": whole.branches, "blobs": whole.blobs,
        })
    });
    let failed = harvest.failed.iter().map(|failure| failure.to_json());
    json!({
        "imported": imported.chain(whole).collect::<Vec<_>>(),
        "skipped": harvest.skipped,
        "failed": failed.collect::<Vec<_>>(),
    })
}

fn table(harvest: &Harvest) -> String {
    let ids = harvest
        .imported
        .iter()
        .map(|(_, imported)| width(imported.conversation.as_str()));
    let wide = ids.max().unwrap_or(0);
    let mut out = String::new();
    for whole in &harvest.whole {
        let count = counted(whole.nodes, "item");
        let branches = match whole.branches {
            0 | 1 => String::new(),
            many => format!(", {many} branches"),
        };
        let _ = writeln!(out, "{}  {count}{branches}", whole.id.as_str().bold());
    }
    for (session, imported) in &harvest.imported {
        let count = match (imported.new, imported.nodes) {
            (_, 0) if session.instructions.is_empty() => "nothing but its records".to_owned(),
            (_, 0) => "instructions only".to_owned(),
            (0, nodes) => format!("{}, nothing new", counted(nodes as u64, "item")),
            (new, nodes) if new < nodes => format!("added {new}, known {}", nodes - new),
            (_, nodes) => counted(nodes as u64, "item"),
        };
        let branches = match imported.branches {
            0 | 1 => String::new(),
            many => format!(", {many} branches"),
        };
        let title = clip(
            &one_line(imported.title.as_deref().unwrap_or_default()),
            TITLE,
        );
        let id = pad(imported.conversation.as_str(), wide);
        let _ = writeln!(out, "{}  {count}{branches}  {}", id.bold(), title.dimmed());
    }
    out
}

/// A bar on standard error, if somebody watches and it takes long enough to wonder.
struct Progress {
    bar: ProgressBar,
    start: Instant,
}

impl Progress {
    fn new(globals: &Globals) -> Self {
        let bar = ProgressBar::hidden();
        bar.set_length(0);
        if terminal::is_watched() && !globals.quiet && !globals.json {
            let style = ProgressStyle::with_template("{bar:40} {pos}/{len} sessions, {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        } else {
            bar.finish_and_clear();
        }
        Self {
            bar,
            start: Instant::now(),
        }
    }

    fn more(&self, sessions: usize) {
        self.bar.inc_length(sessions as u64);
    }

    fn step(&self) {
        if self.bar.is_hidden() && !self.bar.is_finished() && self.start.elapsed() > PATIENCE {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }

    fn done(&self) {
        self.bar.finish_and_clear();
    }
}
