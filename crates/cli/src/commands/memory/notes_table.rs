//! How notes are shown.

use contexture::layers::builtin::memory::{EarlierValue, Expiry, Note, NoteTime, Notes};
use contexture_api::{NoteDocument, NotesDocument};
use owo_colors::OwoColorize as _;

use crate::options::globals::Globals;
use crate::output::failure::Outcome;
use crate::output::printable::{count_with_noun, one_line};
use crate::output::relative_time::{format_timestamp, relative_time};
use crate::output::table::Column;
use crate::output::write;

/// How the list is laid out.
const COLUMNS: [Column; 4] = [
    Column::id("").with_paint(|key| key.bold().to_string()),
    Column::words("", 16).with_rank(2),
    Column::word("").with_rank(1),
    Column::figure("").with_paint(|age| age.dimmed().to_string()),
];

/// Lists the notes that have not expired.
///
/// # Errors
/// The output cannot be written.
pub(super) fn print_notes(notes: &Notes, at: NoteTime, globals: &Globals) -> Outcome<()> {
    if globals.json {
        let notes = notes.iter_live(at);
        let notes = notes.map(|(key, note)| NoteDocument::new(key, note, at));
        let notes = notes.collect();
        return write::print_json(&NotesDocument { notes, next: None });
    }
    let rows = notes.iter_live(at);
    let rows: Vec<_> = rows.map(|(key, note)| note_row(key, note, at)).collect();
    write::print_table(&COLUMNS, &rows)?;
    if notes.iter_live(at).next().is_none() && !globals.quiet {
        write::print_note("no notes; `contexture memory set KEY VALUE` makes one\n");
    }
    Ok(())
}

/// Lists what a note said before: the value, since when and until when.
///
/// # Errors
/// The output cannot be written.
pub(super) fn print_history(note: &Note, at: NoteTime) -> Outcome<()> {
    let row = |was: &EarlierValue| {
        let [from, until] = [was.from_ms, was.until_ms].map(|ms| relative_time(ms, at.now_ms));
        vec![
            "was".to_owned(),
            one_line(&was.value),
            format!("from {from}"),
            format!("until {until}"),
        ]
    };
    let rows: Vec<_> = note.earlier.iter().map(row).collect();
    write::print_table(&COLUMNS, &rows)
}

/// Its key, its value with what it is about, how long it is still there, and its age.
fn note_row(key: &str, note: &Note, at: NoteTime) -> Vec<String> {
    let about = note.description.as_deref().map(one_line);
    let about = about.map_or(String::new(), |about| format!(" ({about})"));
    vec![
        key.to_owned(),
        one_line(&note.value) + &about,
        note.expires
            .map_or(String::new(), |expiry| remaining_lifetime(expiry, at)),
        relative_time(note.updated_ms, at.now_ms),
    ]
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
