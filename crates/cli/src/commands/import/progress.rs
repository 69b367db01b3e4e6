//! How far an import is.

use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::options::globals::Globals;
use crate::output::terminal;

/// An import that takes longer shows how far it is.
const SHOW_AFTER: Duration = Duration::from_millis(300);

/// A bar on standard error, if somebody watches and it takes long enough to wonder.
pub(super) struct ImportProgress {
    bar: ProgressBar,
    start: Instant,
}

impl ImportProgress {
    pub(super) fn new(globals: &Globals) -> Self {
        // Hidden at first: an import that is done at once shows no bar.
        let bar = ProgressBar::hidden();
        bar.set_length(0);
        if terminal::is_stderr_terminal() && !globals.quiet && !globals.json {
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

    pub(super) fn add_sessions(&self, sessions: usize) {
        self.bar.inc_length(sessions as u64);
    }

    pub(super) fn advance(&self) {
        if self.bar.is_hidden() && !self.bar.is_finished() && self.start.elapsed() > SHOW_AFTER {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.inc(1);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
