//! What is shown of a run while it goes on: the text on standard output as it comes, all else beside it.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture::Item;
use contexture::runs::{RunEvent, RunEventKind};
use contexture::wire::StreamEvent;
use owo_colors::OwoColorize as _;

use crate::chat::pending_calls::call_line;
use crate::options::globals::Globals;
use crate::output::printable::{
    clip_to_width, count_with_noun, one_line, printable_lines, short_id,
};
use crate::output::terminal::{Stream, column_count};
use crate::output::write;

/// The most columns of what a tool says of its failure.
const FAILURE_COLUMNS: usize = 80;

/// Shows a run.
#[derive(Debug)]
pub(crate) struct RunPrinter {
    /// Whether the text is shown as it comes; programs are given all of it at the end.
    prints_text: bool,
    /// Whether anything is said beside it.
    prints_status: bool,
    /// Whether the text goes to a terminal, which must not be moved by it.
    is_terminal: bool,
    /// Whether the last line of text is still open.
    line_open: Mutex<bool>,
}

impl RunPrinter {
    pub(crate) fn new(globals: &Globals) -> Self {
        Self {
            prints_text: !globals.json,
            prints_status: !globals.json && !globals.quiet,
            is_terminal: io::stdout().is_terminal(),
            line_open: Mutex::new(false),
        }
    }

    /// Something happened.
    pub(crate) fn print_event(&self, event: &RunEvent) {
        match &event.kind {
            RunEventKind::Delta(delta) => self.print_delta(delta),
            RunEventKind::ResponseStored { .. } => self.close_line(),
            RunEventKind::Retrying {
                attempt,
                reason: why,
            } => self.print_status(&format!(
                "{} attempt {attempt} failed: {}\n",
                "↻".yellow(),
                printable_lines(why)
            )),
            RunEventKind::ResponseRejected { feedback } => self.print_status(&format!(
                "{} the answer is not taken: {}\n",
                "↻".yellow(),
                one_line(feedback)
            )),
            RunEventKind::ToolStarted { call, .. } => {
                let call = call_line(&call.name, &call.arguments);
                self.print_status(&format!("{} {call}\n", "→".cyan()));
            }
            RunEventKind::ToolFinished { output, .. } => {
                let failed = output.is_error == Some(true);
                let columns = column_count(Stream::Error) - 2;
                let text = Item::FunctionCallOutput(output.clone()).text();
                let said = match failed {
                    true => clip_to_width(&one_line(&text), columns.min(FAILURE_COLUMNS))
                        .red()
                        .to_string(),
                    false => count_with_noun(text.chars().count() as u64, "character")
                        .dimmed()
                        .to_string(),
                };
                self.print_status(&format!("{} {said}\n", "←".cyan()));
            }
            RunEventKind::Ended { usage: spent, .. } => {
                let run = event.run.to_string();
                let told = format!("run {} · {spent}", short_id(&run));
                self.print_status(&format!("{}\n", told.dimmed()));
            }
            _ => {}
        }
    }

    fn print_delta(&self, delta: &StreamEvent) {
        match delta {
            // A refusal is what the model says, too.
            StreamEvent::TextDelta { delta, .. } | StreamEvent::RefusalDelta { delta, .. } => {
                self.print_text(delta);
            }
            // The answer begins, or begins anew.
            StreamEvent::Started { .. } => self.close_line(),
            _ => {}
        }
    }

    /// Writes text. That nobody reads it ends nothing: the run is kept all the same.
    fn print_text(&self, text: &str) {
        if !self.prints_text || text.is_empty() {
            return;
        }
        // Held while writing: a status line must not get between the text and the note that its
        // line is open.
        let mut open = self.lock_line_open();
        let mut out = io::stdout().lock();
        let _ = match self.is_terminal {
            // A model's text may hold control characters, which a terminal would obey; a file gets
            // it as it is.
            true => out.write_all(printable_lines(text).as_bytes()),
            false => out.write_all(text.as_bytes()),
        };
        // An answer comes in small pieces, often without a line end, which alone would not be
        // shown. Errors are dropped: a run goes on though nobody reads.
        let _ = out.flush();
        *open = !text.ends_with('\n');
    }

    /// Ends a line of text that is open.
    pub(crate) fn close_line(&self) {
        let mut open = self.lock_line_open();
        if *open {
            let mut out = io::stdout().lock();
            let _ = out.write_all(b"\n");
            let _ = out.flush();
        }
        *open = false;
    }

    fn print_status(&self, text: &str) {
        self.close_line();
        if self.prints_status {
            write::print_note(text);
        }
    }

    fn lock_line_open(&self) -> MutexGuard<'_, bool> {
        self.line_open
            .lock()
            // A flag cannot be half written; a panic elsewhere does not make it wrong.
            .unwrap_or_else(PoisonError::into_inner)
    }
}
