//! Logs of one JSON record a line.

use serde_json::value::RawValue;

use crate::error::SessionError;
use crate::json::excerpt;
use crate::kept_records::{Records, StoredRecord};
use crate::session::{ReadOptions, Skipped};

/// What a line should hold.
pub(crate) struct Expected {
    /// What to call a record: `a Claude Code record`.
    pub(crate) what: &'static str,
}

/// What is not understood of a line: most likely it is another version's.
pub(crate) struct NotUnderstood(pub(crate) String);

/// Reads a log's lines in order; `record` says what is not understood of a line, if anything is. A line of JSON never ends
/// the reading: one that is not understood is kept and listed. A line that is no JSON shows damage, and ends it.
pub(crate) fn each_line(
    text: &str,
    expected: &Expected,
    options: &ReadOptions<'_>,
    records: &mut Records,
    mut record: impl FnMut(&RawValue, &mut Records) -> Result<(), NotUnderstood>,
) -> Result<Vec<Skipped>, SessionError> {
    let mut skipped = Vec::new();
    let mut read = 0;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let raw = serde_json::from_str::<&RawValue>(line).map_err(|error| describe_damage(&error));
        let found = match raw.map(|raw| record(raw, records)) {
            Ok(Ok(())) => {
                read += 1;
                continue;
            }
            Err(found) if !options.keep_going => {
                return Err(SessionError::Record {
                    place: "line",
                    number: index + 1,
                    expected: expected.what,
                    found,
                    read,
                });
            }
            Ok(Err(NotUnderstood(found))) | Err(found) => found,
        };
        // Kept as text, since it may be no JSON that a record could hold.
        records.list.push(StoredRecord::Text(line.to_owned()));
        skipped.push(Skipped {
            number: index + 1,
            what: format!("expected {}, found {found}", expected.what),
        });
    }
    Ok(skipped)
}

fn describe_damage(error: &serde_json::Error) -> String {
    // The log was cut off while it was written, usually in its last line.
    match error.is_eof() {
        true => "truncated JSON".to_owned(),
        false => format!("broken JSON at column {}", error.column()),
    }
}

/// Describes a record that is no object with a `type`.
pub(crate) fn wrong_record(record: &str) -> NotUnderstood {
    NotUnderstood(if record.starts_with('{') {
        format!("an object without `type`: {}", excerpt(record))
    } else {
        excerpt(record)
    })
}

/// Records as lines.
pub(crate) fn join_lines(records: Vec<Result<String, &str>>) -> String {
    let mut out = String::new();
    for record in records {
        out.push_str(&record.unwrap_or_else(str::to_owned));
        out.push('\n');
    }
    out
}
