//! Writing: results on standard output, everything else on standard error.
//!
//! Results for programs are written as they are. What people read goes through streams that drop
//! colours where there is no terminal.

use std::io::{self, Write};

use owo_colors::OwoColorize as _;
use serde::Serialize;

use crate::output::failure::{Failure, Outcome};
use crate::output::printable::printable_lines;

/// Writes a result as it is; a newline follows if it does not end in one.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print_text(text: &str) -> Outcome<()> {
    let mut out = io::stdout().lock();
    out.write_all(text.as_bytes())?;
    if !text.ends_with('\n') {
        out.write_all(b"\n")?;
    }
    // An error on closing would be lost: a full disk or a closed pipe is told here.
    out.flush()?;
    Ok(())
}

/// Writes a result as JSON on one line.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print_json(value: &impl Serialize) -> Outcome<()> {
    let text =
        serde_json::to_string(value).map_err(|error| Failure::from(io::Error::other(error)))?;
    print_text(&text)
}

/// Writes a result for people, which may carry colours.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print_styled(text: &str) -> Outcome<()> {
    let mut out = anstream::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}

/// Writes a report for people to standard error. That nobody can read it is no failure.
pub(crate) fn print_stderr(text: &str) {
    let mut out = anstream::stderr().lock();
    let _ = out.write_all(text.as_bytes());
    let _ = out.flush();
}

/// Says why the command failed.
pub(crate) fn print_failure(failure: &Failure, as_json: bool) {
    if as_json {
        print_stderr(&format!("{}\n", failure.to_json()));
        return;
    }
    let mut text = format!(
        "{} {}\n",
        "error:".red().bold(),
        printable_lines(&failure.message)
    );
    for note in &failure.notes {
        text.push_str(&format!("  {}\n", printable_lines(note)));
    }
    if let Some(hint) = &failure.hint {
        text.push_str(&format!("  {} {}\n", "hint:".cyan(), printable_lines(hint)));
    }
    print_stderr(&text);
}

/// Says what is worth knowing though the command goes on.
pub(crate) fn print_warning(text: &str) {
    print_stderr(&format!(
        "{} {}\n",
        "warning:".yellow().bold(),
        printable_lines(text)
    ));
}
