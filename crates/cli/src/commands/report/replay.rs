//! The dearest sessions compiled again with a policy.

use std::fs;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use clap::ValueEnum;
use contexture::catalogue::Catalogue;
use contexture::ir::Cancel;
use contexture::sessions::{ReadOptions, UsageReader, read_sessions};
use contexture_api::policy::{ClearConfig, PolicyConfig, PreviewConfig};
use contexture_spending::{PolicySavings, ReplayPolicy, SessionReplay, SessionRow, replay_session};

use super::Progress;

/// A log that is larger is not compiled again: its calls count as those that could not be. 256 MiB.
const MAX_REPLAYED_BYTES: u64 = 256 << 20;

/// A policy by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum NamedPolicy {
    /// Previews of long outputs, and old outputs cleared once the history takes half of the window and it pays.
    Frugal,
    /// Previews of long outputs alone.
    Previews,
    /// Clearing of old outputs alone.
    Clearing,
}

impl NamedPolicy {
    const fn name(self) -> &'static str {
        match self {
            Self::Frugal => "frugal",
            Self::Previews => "previews",
            Self::Clearing => "clearing",
        }
    }

    /// The policy as a configuration says it.
    const fn words(self) -> &'static str {
        match self {
            Self::Frugal => "preview = 5000, clear = { above_percent = 50 }",
            Self::Previews => "preview = 5000",
            Self::Clearing => "clear = { above_percent = 50 }",
        }
    }

    fn config(self) -> PolicyConfig {
        let clear = ClearConfig {
            above_percent: 50,
            ..ClearConfig::default()
        };
        PolicyConfig {
            preview: (self != Self::Clearing).then(|| PreviewConfig::above(5_000)),
            clear: (self != Self::Previews).then_some(clear),
            ..PolicyConfig::default()
        }
    }
}

/// Compiles sessions again, on all processors.
pub(super) fn replay_sessions(
    sessions: &[SessionRow],
    policy: NamedPolicy,
    cancel: &Cancel,
    progress: &Progress,
) -> PolicySavings {
    let history = policy.config().history_policy();
    let rules = ReplayPolicy {
        history: &history,
        limit_tokens: None,
    };
    let threads = thread::available_parallelism()
        .map_or(1, usize::from)
        .min(8);
    let next = AtomicUsize::new(0);
    // Sums of whole numbers: in whatever order sessions end, they are the same.
    let savings = Mutex::new(PolicySavings::new(policy.name(), policy.words()));
    thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(session) = sessions.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let replay = replay_files(session, rules, cancel);
                    if let Ok(mut savings) = savings.lock() {
                        savings.add_session(&replay);
                    }
                    progress.advance();
                }
            });
        }
    });
    savings.into_inner().unwrap_or_default()
}

/// Compiles the calls of all files of a session again.
fn replay_files(session: &SessionRow, policy: ReplayPolicy<'_>, cancel: &Cancel) -> SessionReplay {
    let mut all = SessionReplay::default();
    for file in &session.files {
        let is_small = fs::metadata(file).is_ok_and(|facts| facts.len() <= MAX_REPLAYED_BYTES);
        // It was read a moment ago; if it is gone since, its calls are simply not there.
        let Some(text) = is_small.then(|| fs::read_to_string(file).ok()).flatten() else {
            continue;
        };
        let options = ReadOptions {
            keep_going: true,
            source_name: file,
        };
        let Ok(read) = read_sessions(session.format, &text, &options) else {
            continue;
        };
        let Some(mut usage) = UsageReader::new(session.format) else {
            continue;
        };
        text.lines().for_each(|line| usage.read_line(line));
        let usage = usage.finish();
        if let Some(read) = read.first() {
            let replay = replay_session(read, &usage, policy, Catalogue::builtin(), cancel);
            all.add_replay(&replay);
        }
    }
    all
}
