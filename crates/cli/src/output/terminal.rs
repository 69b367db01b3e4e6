//! What is known of the terminal.

use std::env;
use std::io::{self, IsTerminal};

use console::Term;

/// How many columns to fill: the terminal's, within reason, or `otherwise` where standard output is
/// none. `COLUMNS` decides if it is set.
pub(crate) fn column_count(otherwise: usize) -> usize {
    let set = env::var("COLUMNS")
        .ok()
        .and_then(|columns| columns.parse::<usize>().ok());
    // Before the question whether there is a terminal: tests and pipes set it to get a known width.
    if let Some(columns) = set {
        return columns.clamp(40, 400);
    }
    if !io::stdout().is_terminal() {
        return otherwise;
    }
    let (_, columns) = Term::stdout().size();
    usize::from(columns).clamp(60, 200)
}

/// Whether somebody watches standard error.
pub(crate) fn is_stderr_terminal() -> bool {
    io::stderr().is_terminal()
}
