//! What is shown of a run while it goes on: the text on standard output as it comes, all else beside it.

use std::io::{self, IsTerminal as _, Write as _};
use std::sync::{Mutex, MutexGuard, PoisonError};

use contexture::Item;
use contexture::runs::{RunEvent, RunNews};
use contexture::wire::StreamEvent;
use owo_colors::OwoColorize as _;

use super::waiting::call_line;
use crate::globals::Globals;
use crate::printable::{clip, counted, lines, one_line, short};
use crate::say;

/// Columns of what a tool says of its failure.
const COLUMNS: usize = 80;

/// Shows a run.
#[derive(Debug)]
pub(crate) struct Teller {
    /// Whether the text is shown as it comes; programs are given all of it at the end.
    text: bool,
    /// Whether anything is said beside it.
    beside: bool,
    /// Whether the text goes to a terminal, which must not be moved by it.
    terminal: bool,
    /// Whether the last line of text is still open.
    open: Mutex<bool>,
}

impl Teller {
    pub(crate) fn new(globals: &Globals) -> Self {
        Self {
            text: !globals.json,
            beside: !globals.json && !globals.quiet,
            terminal: io::stdout().is_terminal(),
            open: Mutex::new(false),
        }
    }

    /// Something happened.
    pub(crate) fn see(&self, event: &RunEvent) {
        match &event.news {
            RunNews::Delta(delta) => self.delta(delta),
            RunNews::Answered { .. } => self.close(),
            RunNews::Retrying { attempt, why } => self.aside(&format!(
                "{} attempt {attempt} failed: {}\n",
                "↻".yellow(),
                lines(why)
            )),
            RunNews::Refused { feedback } => self.aside(&format!(
                "{} the answer is not taken: {}\n",
                "↻".yellow(),
                one_line(feedback)
            )),
            RunNews::ToolStarted { call, .. } => {
                let call = call_line(&call.name, &call.arguments);
                self.aside(&format!("{} {call}\n", "→".cyan()));
            }
            RunNews::ToolDone { output, .. } => {
                let failed = output.is_error == Some(true);
                let text = Item::FunctionCallOutput(output.clone()).text();
                let said = match failed {
                    true => clip(&one_line(&text), COLUMNS).red().to_string(),
                    false => counted(text.chars().count() as u64, "character")
                        .dimmed()
                        .to_string(),
                };
                self.aside(&format!("{} {said}\n", "←".cyan()));
            }
            RunNews::Ended { spent, .. } => {
                let run = event.run.to_string();
                let told = format!("run {} · {spent}", short(&run));
                self.aside(&format!("{}\n", told.dimmed()));
            }
            _ => {}
        }
    }

    fn delta(&self, delta: &StreamEvent) {
        match delta {
            StreamEvent::TextDelta { delta, .. } | StreamEvent::RefusalDelta { delta, .. } => {
                self.write(delta);
            }
            // The answer begins, or begins anew.
            StreamEvent::Started { .. } => self.close(),
            _ => {}
        }
    }

    /// Writes text. That nobody reads it ends nothing: the run is kept all the same.
    fn write(&self, text: &str) {
        if !self.text || text.is_empty() {
            return;
        }
        let mut open = self.open();
        let mut out = io::stdout().lock();
        let _ = match self.terminal {
            true => out.write_all(lines(text).as_bytes()),
            false => out.write_all(text.as_bytes()),
        };
        let _ = out.flush();
        *open = !text.ends_with('\n');
    }

    /// Ends a line of text that is open.
    pub(crate) fn close(&self) {
        let mut open = self.open();
        if *open {
            let mut out = io::stdout().lock();
            let _ = out.write_all(b"\n");
            let _ = out.flush();
        }
        *open = false;
    }

    fn aside(&self, text: &str) {
        self.close();
        if self.beside {
            say::aside(text);
        }
    }

    fn open(&self) -> MutexGuard<'_, bool> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
