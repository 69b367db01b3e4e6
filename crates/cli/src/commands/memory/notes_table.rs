//! How notes are shown.

use std::fmt::Write as _;

use contexture::layers::builtin::memory::{Expiry, Note, NoteTime, Notes};
use contexture_api::{NoteDocument, NotesDocument};
use owo_colors::OwoColorize as _;

use crate::options::globals::Globals;
use crate::output::failure::Outcome;
use crate::output::printable::{
    clip_to_width, count_with_noun, display_width, one_line, pad_left, pad_right,
};
use crate::output::relative_time::{format_timestamp, relative_time};
use crate::output::terminal;
use crate::output::write;

/// The fewest columns a value takes.
const MIN_VALUE_COLUMNS: usize = 20;

/// Lists the notes that have not expired.
///
/// # Errors
/// The output cannot be written.
pub(super) fn print_notes(notes: &Notes, at: NoteTime, globals: &Globals) -> Outcome<()> {
    if globals.json {
        let notes = notes.iter_live(at);
        let notes = notes.map(|(key, note)| NoteDocument::new(key, note, at));
        let notes = notes.collect();
        return write::print_json(&NotesDocument { notes });
    }
    write::print_styled(&note_table(notes, at))?;
    if notes.iter_live(at).next().is_none() && !globals.quiet {
        write::print_stderr("no notes; `contexture memory set KEY VALUE` makes one\n");
    }
    Ok(())
}

/// Its key, its value with what it is about, how long it is still there, and its age.
fn note_cells(key: &str, note: &Note, at: NoteTime) -> [String; 4] {
    let about = note.description.as_deref().map(one_line);
    let about = about.map_or(String::new(), |about| format!(" ({about})"));
    [
        one_line(key),
        one_line(&note.value) + &about,
        note.expires
            .map_or(String::new(), |expiry| remaining_lifetime(expiry, at)),
        relative_time(note.updated_ms, at.now_ms),
    ]
}

fn note_table(notes: &Notes, at: NoteTime) -> String {
    let rows = notes.iter_live(at);
    let rows: Vec<[String; 4]> = rows.map(|(key, note)| note_cells(key, note, at)).collect();
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| display_width(cell)).max().unwrap_or(0)
    };
    let (keys, lefts, times) = (wide(0), wide(2), wide(3));
    // Two spaces between columns; the column of lifetimes is left out where no note has one.
    let others = keys + lefts + times + if lefts > 0 { 6 } else { 4 };
    let room = terminal::column_count(120).saturating_sub(others);
    let values = wide(1).min(room.max(MIN_VALUE_COLUMNS));
    let mut out = String::new();
    for [key, value, left, time] in &rows {
        let value = pad_right(&clip_to_width(value, values), values);
        let _ = write!(out, "{}  {value}", pad_right(key, keys).bold());
        if lefts > 0 {
            let _ = write!(out, "  {}", pad_right(left, lefts));
        }
        let _ = writeln!(out, "  {}", pad_left(time, times).dimmed());
    }
    out
}

/// How long a note is still there: so many answers, or until a minute of universal time.
fn remaining_lifetime(expiry: Expiry, at: NoteTime) -> String {
    match expiry {
        Expiry::AtResponse(last) => {
            let answers = last.saturating_sub(at.responses);
            format!("{} left", count_with_noun(answers, "answer"))
        }
        Expiry::AtMs(ms) => {
            let time = format_timestamp(ms);
            let minute = time.get(..16).map(|minute| minute.replace('T', " "));
            minute.map_or(format!("until {time}"), |minute| format!("until {minute}Z"))
        }
    }
}
