//! A node's row as columns, with a check over all of them: damage is noticed at every read.
//!
//! The check is XXH3-64, which for a short item takes a fifteenth of the time of BLAKE3. It tells
//! damage, not malice: who can write the file can write a check. Not here: what the columns mean,
//! and the item's hash, which is its identity.

use rusqlite::types::FromSqlError;
use rusqlite::{Connection, Row};
use twox_hash::XxHash3_64;

use crate::fault::Fault;

/// The columns in the order of [`Columns`], the check behind them.
pub(crate) const COLUMNS: &str = "id, segment, depth, messages, turns, compacted, kind, origin, \
     audience, root_no, fence, created_ms, item_version, codec, key_id, step, redacted_ms, \
     node_id, content_hash, meaning_hash, answers, copied_from, run, response, message_id, item, \
     row_check";

const NUMBERS: usize = 17;
const IDS: usize = 7;
const MESSAGE_ID: usize = NUMBERS + IDS;
const ITEM: usize = MESSAGE_ID + 1;
const CHECK: usize = ITEM + 1;

/// A row.
#[derive(Debug)]
pub(crate) struct Columns<'a> {
    /// From `id` to `redacted_ms`.
    pub(crate) numbers: [Option<i64>; NUMBERS],
    /// From `node_id` to `response`.
    pub(crate) ids: [Option<&'a [u8; 16]>; IDS],
    pub(crate) message_id: Option<&'a str>,
    pub(crate) item: &'a [u8],
}

impl<'a> Columns<'a> {
    /// Reads a row of [`COLUMNS`], and its check where it has one.
    pub(crate) fn of(row: &'a Row<'_>) -> rusqlite::Result<(Self, Option<[u8; 8]>)> {
        let mut numbers = [None; NUMBERS];
        for (column, number) in numbers.iter_mut().enumerate() {
            *number = row.get(column)?;
        }
        let mut ids = [None; IDS];
        for (column, id) in (NUMBERS..).zip(ids.iter_mut()) {
            *id = bytes_of(row, column)?;
        }
        let columns = Self {
            numbers,
            ids,
            message_id: row.get_ref(MESSAGE_ID)?.as_str_or_null()?,
            item: row.get_ref(ITEM)?.as_blob()?,
        };
        Ok((columns, bytes_of(row, CHECK)?.copied()))
    }

    /// Inserts the row.
    pub(crate) fn insert(&self, conn: &Connection) -> Result<(), Fault> {
        let mut statement = conn.prepare_cached(&format!(
            "INSERT INTO nodes ({COLUMNS}) VALUES \
             (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
        ))?;
        for (column, number) in (1..).zip(self.numbers) {
            statement.raw_bind_parameter(column, number)?;
        }
        for (column, id) in (NUMBERS + 1..).zip(self.ids) {
            statement.raw_bind_parameter(column, id.map(<[u8; 16]>::as_slice))?;
        }
        statement.raw_bind_parameter(MESSAGE_ID + 1, self.message_id)?;
        statement.raw_bind_parameter(ITEM + 1, self.item)?;
        statement.raw_bind_parameter(CHECK + 1, self.check())?;
        statement.raw_execute()?;
        Ok(())
    }

    /// The check.
    fn check(&self) -> [u8; 8] {
        let mut fixed = [0_u8; NUMBERS * 8 + IDS * 16 + 4];
        let (numbers, rest) = fixed.split_at_mut(NUMBERS * 8);
        let (ids, present) = rest.split_at_mut(IDS * 16);
        let mut there: u32 = 0;
        for (bit, (slot, number)) in numbers.chunks_exact_mut(8).zip(self.numbers).enumerate() {
            if let Some(number) = number {
                slot.copy_from_slice(&number.to_le_bytes());
                there |= 1 << bit;
            }
        }
        for (bit, (slot, id)) in ids.chunks_exact_mut(16).zip(self.ids).enumerate() {
            if let Some(id) = id {
                slot.copy_from_slice(id);
                there |= 1 << (NUMBERS + bit);
            }
        }
        if self.message_id.is_some() {
            there |= 1 << MESSAGE_ID;
        }
        present.copy_from_slice(&there.to_le_bytes());
        let mut hash = XxHash3_64::oneshot(&fixed);
        if let Some(message) = self.message_id {
            hash = XxHash3_64::oneshot_with_seed(hash, message.as_bytes());
        }
        XxHash3_64::oneshot_with_seed(hash, self.item).to_le_bytes()
    }

    /// Whether this is what `check` was taken over.
    pub(crate) fn matches(&self, check: [u8; 8]) -> bool {
        self.check() == check
    }
}

/// Takes the check of a row anew, after it was changed on purpose.
pub(crate) fn seal(conn: &Connection, key: i64) -> Result<(), Fault> {
    let check = conn
        .prepare_cached(&format!("SELECT {COLUMNS} FROM nodes WHERE id = ?"))?
        .query_row([key], |row| Ok(Columns::of(row)?.0.check()))?;
    conn.prepare_cached("UPDATE nodes SET row_check = ? WHERE id = ?")?
        .execute((check, key))?;
    Ok(())
}

/// So many bytes, or `NULL`.
fn bytes_of<'a, const N: usize>(
    row: &'a Row<'_>,
    column: usize,
) -> rusqlite::Result<Option<&'a [u8; N]>> {
    let bytes = row.get_ref(column)?.as_blob_or_null()?;
    let wrong = |_| FromSqlError::InvalidBlobSize {
        expected_size: N,
        blob_size: bytes.map_or(0, <[u8]>::len),
    };
    Ok(bytes.map(<&[u8; N]>::try_from).transpose().map_err(wrong)?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_column_counts() {
        let plain = || Columns {
            numbers: [Some(0); NUMBERS],
            ids: [Some(&[0; 16]); IDS],
            message_id: Some(""),
            item: b"",
        };
        let mut checks = vec![plain().check()];
        for column in 0..NUMBERS {
            for value in [None, Some(1)] {
                let mut changed = plain();
                changed.numbers[column] = value;
                checks.push(changed.check());
            }
        }
        for column in 0..IDS {
            for value in [None, Some(&[1; 16])] {
                let mut changed = plain();
                changed.ids[column] = value;
                checks.push(changed.check());
            }
        }
        for message_id in [None, Some("a")] {
            checks.push(
                Columns {
                    message_id,
                    ..plain()
                }
                .check(),
            );
        }
        checks.push(
            Columns {
                item: b"a",
                ..plain()
            }
            .check(),
        );
        let all = checks.len();
        checks.sort_unstable();
        checks.dedup();
        assert_eq!(checks.len(), all);
    }

    #[test]
    fn the_check_is_the_one_that_stored_rows_have() {
        let columns = Columns {
            numbers: [Some(7); NUMBERS],
            ids: [Some(&[9; 16]); IDS],
            message_id: Some("m"),
            item: b"{}",
        };
        // Computed with the reference implementation.
        assert_eq!(columns.check(), [56, 68, 190, 208, 46, 112, 40, 70]);
    }
}
