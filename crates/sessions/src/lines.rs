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

/// What is wrong with a line.
pub(crate) enum LineFault {
    /// It is no record of the log.
    NoRecord(String),
    /// It is a record in which something is not understood: most likely another version's.
    NotUnderstood(String),
}

/// Reads a log's lines in order; `record` says what is wrong with a line, if anything is. A record that is not understood
/// never ends the reading: it is kept and listed.
pub(crate) fn each_line(
    text: &str,
    expected: &Expected,
    options: &ReadOptions<'_>,
    records: &mut Records,
    mut record: impl FnMut(&RawValue, &mut Records) -> Result<(), LineFault>,
) -> Result<Vec<Skipped>, SessionError> {
    let mut skipped = Vec::new();
    let mut read = 0;
    for (index, line) in text.lines().enumerate() {
        if line.trim().is_empty() {
            continue;
        }
        let result = match serde_json::from_str::<&RawValue>(line) {
            Ok(raw) => record(raw, records),
            // The log was cut off while it was written, usually in its last line.
            Err(error) if error.is_eof() => Err(LineFault::NoRecord("truncated JSON".to_owned())),
            Err(error) => {
                let found = format!("broken JSON at column {}", error.column());
                Err(LineFault::NoRecord(found))
            }
        };
        let goes_on = options.keep_going || matches!(result, Err(LineFault::NotUnderstood(_)));
        match result {
            Ok(()) => read += 1,
            Err(LineFault::NoRecord(found) | LineFault::NotUnderstood(found)) if goes_on => {
                // Kept as text, since it may be no JSON that a record could hold.
                records.list.push(StoredRecord::Text(line.to_owned()));
                skipped.push(Skipped {
                    number: index + 1,
                    what: format!("expected {}, found {found}", expected.what),
                });
            }
            Err(LineFault::NoRecord(found) | LineFault::NotUnderstood(found)) => {
                return Err(SessionError::Record {
                    place: "line",
                    number: index + 1,
                    expected: expected.what,
                    found,
                    read,
                });
            }
        }
    }
    Ok(skipped)
}

/// The fault of a record that is no object with a `type`.
pub(crate) fn wrong_record(record: &str) -> LineFault {
    LineFault::NoRecord(if record.starts_with('{') {
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
