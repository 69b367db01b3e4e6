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
    /// Bytes of what is stored or passed over.
    done: u64,
}

impl ImportProgress {
    /// A bar of so many bytes of files.
    pub(super) fn new(globals: &Globals, bytes: u64) -> Self {
        // Hidden at first: an import that is done at once shows no bar.
        let bar = ProgressBar::hidden();
        bar.set_length(bytes);
        if terminal::is_stderr_terminal() && !globals.quiet && !globals.json {
            let style =
                ProgressStyle::with_template("{wide_bar} {bytes}/{total_bytes}, {eta} left");
            bar.set_style(style.unwrap_or_else(|_| ProgressStyle::default_bar()));
        } else {
            bar.finish_and_clear();
        }
        Self {
            bar,
            start: Instant::now(),
            done: 0,
        }
    }

    /// So many more bytes are done with.
    pub(super) fn advance(&mut self, bytes: u64) {
        self.done += bytes;
        self.show(self.done);
    }

    /// Of the bytes that are being stored, this share is: so many of so many items.
    pub(super) fn show_share(&self, bytes: u64, stored: u64, items: u64) {
        let share = u128::from(bytes) * u128::from(stored.min(items)) / u128::from(items.max(1));
        self.show(self.done + u64::try_from(share).unwrap_or(bytes));
    }

    fn show(&self, position: u64) {
        if self.bar.is_hidden() && !self.bar.is_finished() && self.start.elapsed() > SHOW_AFTER {
            self.bar.set_draw_target(ProgressDrawTarget::stderr());
        }
        self.bar.set_position(position);
    }

    pub(super) fn finish(&self) {
        self.bar.finish_and_clear();
    }
}
