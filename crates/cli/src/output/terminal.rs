//! What is known of the terminal.

use std::env;
use std::io::{self, IsTerminal};

use console::Term;

/// The fewest and the most columns that output is fitted to.
const COLUMN_RANGE: (usize, usize) = (40, 400);
/// Columns of output that goes to a file or a program.
const PLAIN_COLUMNS: usize = 120;

/// A stream that people may look at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stream {
    Output,
    Error,
}

/// How many columns the stream's terminal has, within reason; `None` where it is none. `COLUMNS` decides if it is set.
pub(crate) fn terminal_columns(stream: Stream) -> Option<usize> {
    let (least, most) = COLUMN_RANGE;
    let set = env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse::<usize>().ok());
    // Before the question whether there is a terminal: tests and pipes set it to get a known width.
    if let Some(columns) = set {
        return Some(columns.clamp(least, most));
    }
    let (terminal, is_terminal) = match stream {
        Stream::Output => (Term::stdout(), io::stdout().is_terminal()),
        Stream::Error => (Term::stderr(), io::stderr().is_terminal()),
    };
    let (_, columns) = terminal.size();
    is_terminal.then(|| usize::from(columns).clamp(least, most))
}

/// How many columns a table on this stream fills.
pub(crate) fn column_count(stream: Stream) -> usize {
    terminal_columns(stream).unwrap_or(PLAIN_COLUMNS)
}

/// Whether somebody watches standard error.
pub(crate) fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal()
}
