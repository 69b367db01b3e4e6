//! `contexture report`: what the agents' logs cost, what broke their caches, and what a policy would have saved.
//!
//! Nothing is stored. Logs are read line by line on all processors and summed up in the order of their names, so that the
//! same files give the same report. Not here: the figures themselves, which are `contexture-spending`'s.

mod find_files;
mod read_log;
mod replay;
mod text;

use std::env;
use std::path::{Path, PathBuf};
use std::process;

use clap::Args;
use contexture::catalogue::Catalogue;
use contexture::ir::Cancel;
use contexture_spending::{
    DamagedFile, Spending, SpendingCollector, SpendingOptions, estimate_session, render_page,
};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use tokio::signal::ctrl_c;
use tokio::sync::oneshot;

use self::find_files::find_files;
use self::read_log::{ReadLog, read_logs};
use self::replay::NamedPolicy;
use crate::options::globals::Globals;
use crate::options::parse_values::parse_milliseconds;
use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::relative_time::now_ms;
use crate::output::terminal::{Stream, is_stderr_terminal, terminal_columns};
use crate::output::write;

/// Columns of the page where standard output is no terminal.
const COLUMNS: usize = 100;

/// Show what agents' sessions cost, what broke their prompt caches, and what a policy would have saved
///
/// Reads the session logs of Claude Code and Codex, in the folders and files that are named, and stores nothing. Tokens are those
/// that the logs report, each answer counted once; cost is theirs by the catalogue's list prices. Logs of other agents report no
/// usage: they are counted, and marked as estimates.
#[derive(Clone, Debug, Args)]
#[command(after_long_help = "\
Examples:
  contexture report                                    # ~/.claude and ~/.codex
  contexture report ~/.claude --since 30d --html report.html
  contexture report logs/ --project shop --no-policy
  contexture report --since 2026-11-01 --until 2026-11-30 --json | jq .total.dollars

docs/report.md explains each figure.")]
pub(crate) struct Arguments {
    /// Folders, which are walked, and files; default: ~/.claude and ~/.codex
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only calls since then: a date, or so long ago: 2026-11-01, 30d, 12h
    #[arg(long, value_name = "WHEN")]
    since: Option<String>,
    /// Only calls until then, a date included: 2026-11-30, 7d
    #[arg(long, value_name = "WHEN")]
    until: Option<String>,
    /// Only sessions whose folder contains this text
    #[arg(long, value_name = "TEXT")]
    project: Option<String>,
    /// The time zone of days and times: Europe/Berlin, UTC; default: the machine's
    #[arg(long, value_name = "ZONE")]
    time_zone: Option<String>,
    /// How many of the dearest sessions and breaks are listed, and how many sessions are replayed for the policy
    #[arg(long, short = 'n', value_name = "NUMBER", default_value = "10")]
    top: usize,
    /// The policy that the dearest sessions are compiled again with, without a model
    #[arg(long, value_enum, default_value = "frugal", value_name = "POLICY")]
    policy: NamedPolicy,
    /// Leave out what a policy would have saved, which takes longest
    #[arg(long, conflicts_with = "policy")]
    no_policy: bool,
    /// Write the report as an HTML page to this file too; `-`: to standard output, alone
    #[arg(long, value_name = "FILE")]
    html: Option<PathBuf>,
}

/// Runs the command.
///
/// # Errors
/// A path that does not exist, no log at all, an option that cannot be read, a page that cannot be written, Ctrl-C. Damage in
/// single files is no error: they are listed.
pub(crate) async fn run(arguments: &Arguments, globals: &Globals) -> Outcome {
    let cancel = Cancel::new();
    let (sender, mut receiver) = oneshot::channel();
    let work = {
        let (arguments, globals, cancel) = (arguments.clone(), globals.clone(), cancel.clone());
        move || {
            // Nobody waits any more only if the program is about to end.
            let _ = sender.send(draw_up(&arguments, &globals, &cancel));
        }
    };
    let done = tokio::select! {
        // Asked first, so that the key is listened to before the work begins.
        biased;
        Ok(()) = ctrl_c() => {
            // The work looks at this with every line and every call. A pipe that nobody writes to keeps it waiting all the
            // same: a second press leaves at once.
            cancel.cancel();
            tokio::select! {
                done = &mut receiver => done,
                Ok(()) = ctrl_c() => process::exit(Exit::Interrupted as i32),
            }
        }
        done = async {
            tokio::task::spawn_blocking(work);
            (&mut receiver).await
        } => done,
    };
    let failed = |_| Failure::new(Exit::Fault, "thread", "reading the logs failed");
    let spending = done.map_err(failed)??;
    if let Some(path) = &arguments.html {
        write::write_page(path, &render_page(&spending))?;
        // The page has standard output for itself.
        if path == Path::new("-") {
            return Ok(Exit::Done);
        }
    }
    if globals.json {
        write::print_json(&spending)?;
    } else {
        let columns = terminal_columns(Stream::Output).unwrap_or(COLUMNS);
        write::print_styled(&text::render_text(&spending, columns))?;
    }
    Ok(Exit::Done)
}

/// Reads the logs and sums them up.
fn draw_up(arguments: &Arguments, globals: &Globals, cancel: &Cancel) -> Outcome<Spending> {
    let options = spending_options(arguments)?;
    let roots = match arguments.paths.is_empty() {
        true => default_folders()?,
        false => arguments.paths.clone(),
    };
    let found = find_files(&roots, cancel)?;
    let mut collector = SpendingCollector::new(Catalogue::builtin(), options);
    for (path, what) in &found.unreadable {
        collector.add_unreadable(path, what.as_str());
    }
    let progress = Progress::new(globals, found.files.len(), "files");
    let mut logs = 0_u64;
    read_logs(&found.files, cancel, |path, log| {
        progress.advance();
        logs += u64::from(add_to(&mut collector, path, log));
    });
    progress.finish();
    check_interrupted(cancel)?;
    let mut spending = collector.finish();
    if logs == 0 {
        return Err(no_logs(&roots, &spending.files.damaged));
    }
    if !arguments.no_policy && !spending.dearest_sessions.is_empty() {
        let progress = Progress::new(
            globals,
            spending.dearest_sessions.len(),
            "sessions replayed",
        );
        let sessions = &spending.dearest_sessions;
        let savings = replay::replay_sessions(sessions, arguments.policy, cancel, &progress);
        progress.finish();
        check_interrupted(cancel)?;
        spending.policy = Some(savings);
    }
    Ok(spending)
}

/// Adds what was read of a file; tells whether it is a log.
fn add_to(collector: &mut SpendingCollector<'_>, path: &Path, log: ReadLog) -> bool {
    let name = path.display().to_string();
    match log {
        ReadLog::Usage(usage) => collector.add_log(&name, &usage),
        ReadLog::Estimated(format, sessions) => {
            collector.count_log();
            for session in &sessions {
                let counter =
                    contexture::tokens::counter_for(contexture::catalogue::Encoding::O200kBase);
                collector.add_estimate(format, estimate_session(session, counter));
            }
        }
        ReadLog::Unreadable(what) => {
            collector.add_unreadable(&name, what);
            return false;
        }
        ReadLog::Other => {
            collector.count_other_file();
            return false;
        }
    }
    true
}

fn check_interrupted(cancel: &Cancel) -> Outcome<()> {
    match cancel.is_cancelled() {
        true => Err(Failure::new(
            Exit::Interrupted,
            "interrupted",
            "called off with Ctrl-C",
        )),
        false => Ok(()),
    }
}

/// There is no log among the files; what of them could not be read may be why.
fn no_logs(roots: &[PathBuf], damaged: &[DamagedFile]) -> Failure {
    let names = roots.iter().map(|root| format!("`{}`", root.display()));
    let names: Vec<String> = names.collect();
    let message = format!("no session log found in {}", names.join(", "));
    let failure = Failure::new(Exit::NotFound, "no_logs", message).with_hint(
        "name a folder with logs of Claude Code (~/.claude) or Codex (~/.codex), or a file",
    );
    let notes = damaged.iter().take(3);
    notes.fold(failure, |failure, one| {
        failure.with_note(format!("{}: {}", one.file, one.what))
    })
}

/// Where Claude Code and Codex keep their logs, as far as that is there.
fn default_folders() -> Outcome<Vec<PathBuf>> {
    let home = env::var_os("HOME").map(PathBuf::from);
    let folder = |variable: &str, name: &str| {
        let set = env::var_os(variable)
            .filter(|set| !set.is_empty())
            .map(PathBuf::from);
        set.or_else(|| Some(home.as_ref()?.join(name)))
    };
    let folders = [
        folder("CLAUDE_CONFIG_DIR", ".claude"),
        folder("CODEX_HOME", ".codex"),
    ];
    let folders: Vec<PathBuf> = folders
        .into_iter()
        .flatten()
        .filter(|path| path.is_dir())
        .collect();
    if folders.is_empty() {
        let message = "there is neither ~/.claude nor ~/.codex on this machine";
        return Err(Failure::new(Exit::NotFound, "no_logs", message)
            .with_hint("name the folder or the files: contexture report PATH"));
    }
    Ok(folders)
}

fn spending_options(arguments: &Arguments) -> Outcome<SpendingOptions> {
    let time_zone = match &arguments.time_zone {
        None => TimeZone::system(),
        Some(name) => TimeZone::get(name).map_err(|_| {
            Failure::usage(format!("unknown time zone {name:?}"))
                .with_hint("name one of the IANA database: Europe/Berlin, America/New_York, UTC")
        })?,
    };
    let time = |option: &str, text: &Option<String>, is_end| {
        let text = text.as_deref();
        text.map(|text| parse_time(option, text, &time_zone, is_end))
            .transpose()
    };
    Ok(SpendingOptions {
        since_ms: time("--since", &arguments.since, DayEdge::Begin)?,
        until_ms: time("--until", &arguments.until, DayEdge::End)?,
        project: arguments.project.clone(),
        listed: arguments.top,
        time_zone,
    })
}

/// Which edge of a day a date means.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DayEdge {
    Begin,
    End,
}

/// A date, or an age, in milliseconds since 1970.
fn parse_time(option: &str, text: &str, zone: &TimeZone, edge: DayEdge) -> Outcome<i64> {
    if let Ok(age) = parse_milliseconds(text) {
        return Ok(now_ms().saturating_sub(i64::try_from(age).unwrap_or(i64::MAX)));
    }
    let time = text.parse::<Date>().ok().and_then(|date| {
        let date = match edge {
            DayEdge::Begin => date,
            // The day itself is included, so what counts is when the next one begins.
            DayEdge::End => date.tomorrow().ok()?,
        };
        date.to_zoned(zone.clone()).ok()
    });
    let time = time
        .map(|time| time.timestamp())
        .or_else(|| text.parse::<Timestamp>().ok());
    time.map(|time| time.as_millisecond()).ok_or_else(|| {
        Failure::usage(format!("{option} {text}: expected a date or an age"))
            .with_hint("write 2026-11-01, 30d or 12h")
    })
}

/// A bar on standard error, if somebody watches and it takes long enough to wonder.
struct Progress {
    bar: ProgressBar,
    start: std::time::Instant,
}

impl Progress {
    fn new(globals: &Globals, steps: usize, what: &str) -> Self {
        let bar = ProgressBar::hidden();
        bar.set_length(steps as u64);
        if is_stderr_terminal() && !globals.quiet && !globals.json {
            let style = ProgressStyle::with_template(&format!(
                "{{bar:30}} {{pos}}/{{len}} {what}, {{eta}} left"
            ));
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        } else {
            bar.finish_and_clear();
        }
        Self {
            bar,
            start: std::time::Instant::now(),
        }
    }

    fn advance(&self) {
        // What is done at once shows no bar.
        let is_long = self.start.elapsed().as_millis() > 300;
        if self.bar.is_hidden() && !self.bar.is_finished() && is_long {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }

    fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
