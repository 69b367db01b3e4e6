//! Writing: results on standard output, everything else on standard error.
//!
//! Results for programs are written as they are. What people read goes through streams that drop
//! colours where there is no terminal.

use std::io::{self, Write};
use std::path::Path;

use owo_colors::OwoColorize as _;
use serde::Serialize;

use crate::output::exit::Exit;
use crate::output::failure::{Failure, Outcome};
use crate::output::printable::{LongWords, printable_lines, wrap_words};
use crate::output::table::{Column, format_table};
use crate::output::terminal::{Stream, column_count, terminal_columns};

/// Sentences are not wider than this, however wide the terminal is: the eye would lose the line.
const PROSE_COLUMNS: usize = 100;

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

/// Writes a table for people, fitted to the terminal.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print_table(columns: &[Column], rows: &[Vec<String>]) -> Outcome<()> {
    print_styled(&format_table(columns, rows, column_count(Stream::Output)))
}

/// Writes what people read as sentences: a result on standard output, wrapped to the terminal.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print_sentence(text: &str) -> Outcome<()> {
    print_wrapped(text, 2)
}

/// The same; what goes on in a further line stands behind `indent` spaces.
///
/// # Errors
/// When it cannot be written.
pub(crate) fn print_wrapped(text: &str, indent: usize) -> Outcome<()> {
    print_styled(&wrap_for(Stream::Output, text, indent))
}

/// Writes a remark beside the result to standard error, wrapped to the terminal.
pub(crate) fn print_note(text: &str) {
    print_stderr(&wrap_for(Stream::Error, text, 2));
}

/// The text wrapped to the stream's terminal; for a file or program it stays as it is.
fn wrap_for(stream: Stream, text: &str, indent: usize) -> String {
    match terminal_columns(stream) {
        Some(columns) => wrap_words(text, columns.min(PROSE_COLUMNS), indent, LongWords::Keep),
        None => text.to_owned(),
    }
}

/// Says why the command failed.
pub(crate) fn print_failure(failure: &Failure, as_json: bool) {
    if as_json {
        print_stderr(&format!("{}\n", failure.to_json()));
        return;
    }
    let line = |text: String, indent| wrap_for(Stream::Error, &text, indent);
    let message = printable_lines(&failure.message);
    let mut text = line(format!("{} {message}\n", "error:".red().bold()), 2);
    for note in &failure.notes {
        text.push_str(&line(format!("  {}\n", printable_lines(note)), 4));
    }
    if let Some(hint) = &failure.hint {
        let hint = format!("  {} {}\n", "hint:".cyan(), printable_lines(hint));
        text.push_str(&line(hint, 8));
    }
    print_stderr(&text);
}

/// Says what is worth knowing though the command goes on.
pub(crate) fn print_warning(text: &str) {
    print_note(&format!(
        "{} {}\n",
        "warning:".yellow().bold(),
        printable_lines(text)
    ));
}

/// Writes a page to a file, or to standard output if the file is `-`.
pub(crate) fn write_page(path: &Path, html: &str) -> Outcome<()> {
    if path == Path::new("-") {
        return print_text(html);
    }
    std::fs::write(path, html).map_err(|error| {
        let message = format!("cannot write `{}`: {error}", path.display());
        Failure::new(Exit::Stream, "write", message)
            .with_hint("name a file in a directory that exists and that you may write to")
    })
}
