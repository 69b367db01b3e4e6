//! How notes are shown.

use std::fmt::Write as _;

use contexture::layers::builtin::memory::{Expiry, Moment, Notes};
use contexture_server::documents::{NoteDocument, NotesDocument};
use owo_colors::OwoColorize as _;

use crate::ago::{ago, instant};
use crate::failure::Outcome;
use crate::globals::Globals;
use crate::printable::{clip, counted, one_line, pad, pad_left, width};
use crate::{say, terminal};

/// The fewest columns a value takes.
const NARROWEST: usize = 20;

/// Lists the notes that have not expired.
///
/// # Errors
/// The output cannot be written.
pub(super) fn list(notes: &Notes, at: Moment, globals: &Globals) -> Outcome<()> {
    if globals.json {
        let notes = notes.iter(at);
        let notes = notes.map(|(key, note)| NoteDocument::new(key, note, at));
        let notes = notes.collect();
        return say::json(&NotesDocument { notes });
    }
    say::styled(&table(notes, at))?;
    if notes.iter(at).next().is_none() && !globals.quiet {
        say::aside("no notes; `contexture memory set KEY VALUE` makes one\n");
    }
    Ok(())
}

fn table(notes: &Notes, at: Moment) -> String {
    let rows: Vec<[String; 4]> = notes
        .iter(at)
        .map(|(key, note)| {
            let about = note.description.as_deref().map(one_line);
            let about = about.map_or(String::new(), |about| format!(" ({about})"));
            [
                one_line(key),
                one_line(&note.value) + &about,
                note.expires
                    .map_or(String::new(), |expiry| left(expiry, at)),
                ago(note.updated_ms, at.now_ms),
            ]
        })
        .collect();
    let wide = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| width(cell)).max().unwrap_or(0)
    };
    let (keys, lefts, times) = (wide(0), wide(2), wide(3));
    let others = keys + lefts + times + if lefts > 0 { 6 } else { 4 };
    let room = terminal::columns(120).saturating_sub(others);
    let values = wide(1).min(room.max(NARROWEST));
    let mut out = String::new();
    for [key, value, left, time] in &rows {
        let value = pad(&clip(value, values), values);
        let _ = write!(out, "{}  {value}", pad(key, keys).bold());
        if lefts > 0 {
            let _ = write!(out, "  {}", pad(left, lefts));
        }
        let _ = writeln!(out, "  {}", pad_left(time, times).dimmed());
    }
    out
}

/// How long a note is still there: so many answers, or until a minute of universal time.
fn left(expiry: Expiry, at: Moment) -> String {
    match expiry {
        Expiry::AtResponse(last) => {
            let answers = last.saturating_sub(at.responses);
            format!("{} left", counted(answers, "answer"))
        }
        Expiry::AtMs(ms) => {
            let time = instant(ms);
            let minute = time.get(..16).map(|minute| minute.replace('T', " "));
            minute.map_or(format!("until {time}"), |minute| format!("until {minute}Z"))
        }
    }
}
