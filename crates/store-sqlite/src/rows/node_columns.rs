//! A node's row as columns, with a checksum over all of them that is compared at every read.
//!
//! Values that SQL statements use have columns of their own. The others are packed into the column
//! `rest`, because even an empty column costs a byte: the checksum, the presence bits, the numbers
//! (seven bits a byte), the ids.
//!
//! The number of numbers and ids is part of the checksum and defines the presence bits. A new value
//! needs either a column of its own beside `rest`, or a migration that rewrites every row. The
//! result of an old migration ([`repack_rows`]) must not change: a column added to [`COLUMNS`] does
//! not exist yet when that migration runs.
//!
//! The checksum is XXH3-64, about fifteen times as fast as BLAKE3 for a short item. It detects
//! damage, not manipulation: whoever can write the file can compute it. Not here: the meaning of
//! the columns, and the item's hash, which is its identity.

use rusqlite::types::FromSqlError;
use rusqlite::{Connection, Row, params};
use twox_hash::XxHash3_64;

use crate::error::RowError;
use crate::rows::path::NodePosition;

/// The columns of the table, as statements name them.
pub(crate) const COLUMNS: &str =
    "id, kind, codec, redacted_ms, node_id, copied_from, message_id, rest, item";

const REST: usize = 7;
const ITEM: usize = 8;

const NUMBERS: usize = 17;
const IDS: usize = 7;
const MESSAGE_ID: usize = NUMBERS + IDS;

/// Indices into [`NodeColumns::numbers`].
pub(crate) const SEGMENT: usize = 1;
pub(crate) const DEPTH: usize = 2;
pub(crate) const MESSAGES: usize = 3;
pub(crate) const TURNS: usize = 4;
pub(crate) const COMPACTED: usize = 5;
pub(crate) const KIND: usize = 6;
pub(crate) const ORIGIN: usize = 7;
pub(crate) const AUDIENCE: usize = 8;
pub(crate) const ROOT_NO: usize = 9;
pub(crate) const CREATED_MS: usize = 11;
pub(crate) const CODEC: usize = 13;
pub(crate) const KEY_ID: usize = 14;
pub(crate) const STEP: usize = 15;
pub(crate) const REDACTED_MS: usize = 16;
/// Indices into [`NodeColumns::ids`].
pub(crate) const NODE_ID: usize = 0;
pub(crate) const CONTENT_HASH: usize = 1;
pub(crate) const MEANING_HASH: usize = 2;
pub(crate) const ANSWERS: usize = 3;
pub(crate) const COPIED_FROM: usize = 4;
pub(crate) const RUN: usize = 5;
pub(crate) const RESPONSE: usize = 6;

/// Indices of the packed numbers and of the packed ids, in the order in which they are packed.
const PACKED_NUMBERS: [usize; 13] = [1, 2, 3, 4, 5, 7, 8, 9, 10, 11, 12, 14, 15];
const PACKED_IDS: [usize; 5] = [1, 2, 3, 5, 6];
/// Packed values that nearly every row has, one bit each: the lowest for the first number, the
/// highest for the check. A row stores how its bits differ from these.
const USUAL: u64 = 0b100_0010_0110_1111_1111;

/// A row of the table `nodes`, as columns.
#[derive(Debug, Default)]
pub(crate) struct NodeColumns<'a> {
    /// Numbers in this order: `id`, `segment`, `depth`, `messages`, `turns`, `compacted`, `kind`,
    /// `origin`, `audience`, `root_no`, `fence`, `created_ms`, `item_version`, `codec`, `key_id`,
    /// `step`, `redacted_ms`.
    pub(crate) numbers: [Option<i64>; NUMBERS],
    /// Ids in this order: `node_id`, `content_hash`, `meaning_hash`, `answers`, `copied_from`, `run`, `response`.
    pub(crate) ids: [Option<&'a [u8; 16]>; IDS],
    pub(crate) message_id: Option<&'a str>,
    pub(crate) item: &'a [u8],
}

/// Checksum of a row; `None` in rows of format 2 and before.
pub(crate) type RowCheck = Option<[u8; 8]>;

impl<'a> NodeColumns<'a> {
    /// Reads a row of [`COLUMNS`] with its checksum; returns `None` if it cannot be unpacked.
    pub(crate) fn from_row(row: &'a Row<'_>) -> rusqlite::Result<Option<(Self, RowCheck)>> {
        let Some((mut columns, check)) = Self::from_packed(row.get_ref(REST)?.as_blob()?) else {
            return Ok(None);
        };
        columns.numbers[0] = row.get(0)?;
        columns.numbers[KIND] = row.get(1)?;
        columns.numbers[CODEC] = row.get(2)?;
        columns.numbers[REDACTED_MS] = row.get(3)?;
        columns.ids[NODE_ID] = bytes_of(row, 4)?;
        columns.ids[COPIED_FROM] = bytes_of(row, 5)?;
        columns.message_id = row.get_ref(6)?.as_str_or_null()?;
        columns.item = row.get_ref(ITEM)?.as_blob()?;
        Ok(Some((columns, check)))
    }

    /// Unpacks the column `rest` and its checksum; returns `None` if it is damaged.
    pub(crate) fn from_packed(rest: &'a [u8]) -> Option<(Self, RowCheck)> {
        let (check, mut rest) = rest.split_first_chunk::<8>()?;
        let presence = take_number(&mut rest)? ^ USUAL;
        if presence >> (PACKED_NUMBERS.len() + PACKED_IDS.len() + 1) != 0 {
            return None;
        }
        let mut bits = (0..).map(|bit| presence >> bit & 1 == 1);
        let mut is_present = || bits.next() == Some(true);
        let mut columns = Self::default();
        for number in PACKED_NUMBERS {
            if is_present() {
                *columns.numbers.get_mut(number)? = Some(zigzag_decode(take_number(&mut rest)?));
            }
        }
        for id in PACKED_IDS {
            if is_present() {
                let (bytes, after) = rest.split_first_chunk()?;
                *columns.ids.get_mut(id)? = Some(bytes);
                rest = after;
            }
        }
        let check = match is_present() {
            true => Some(*check),
            false if *check == [0; 8] => None,
            false => return None,
        };
        rest.is_empty().then_some((columns, check))
    }

    /// Returns the position of the node in the tree.
    pub(crate) fn position(&self) -> NodePosition {
        NodePosition {
            segment: self.small_number(SEGMENT),
            depth: self.small_number(DEPTH),
        }
    }

    /// Returns a number as a `u32`; 0 if it is missing or does not fit.
    pub(crate) fn small_number(&self, number: usize) -> u32 {
        let number = self.numbers.get(number).copied().flatten();
        number
            .and_then(|number| u32::try_from(number).ok())
            .unwrap_or(0)
    }

    /// Packs the values without a column of their own into the column `rest`.
    pub(crate) fn pack_rest(&self, check: RowCheck) -> Vec<u8> {
        let mut rest = Vec::with_capacity(64);
        rest.extend(check.unwrap_or_default());
        let numbers = PACKED_NUMBERS.map(|number| self.numbers.get(number).copied().flatten());
        let ids = PACKED_IDS.map(|id| self.ids.get(id).copied().flatten());
        let presence = numbers.iter().map(Option::is_some);
        let presence = presence.chain(ids.iter().map(Option::is_some));
        let presence = presence.chain([check.is_some()]).enumerate();
        let presence = presence.fold(0, |all, (bit, presence)| all | u64::from(presence) << bit);
        put_number(&mut rest, presence ^ USUAL);
        for number in numbers.into_iter().flatten() {
            put_number(&mut rest, zigzag_encode(number));
        }
        for id in ids.into_iter().flatten() {
            rest.extend(id);
        }
        rest
    }

    /// Inserts the row with its checksum.
    pub(crate) fn insert_row(&self, conn: &Connection) -> Result<(), RowError> {
        self.insert_row_with(conn, Some(self.checksum()))
    }

    fn insert_row_with(&self, conn: &Connection, check: RowCheck) -> Result<(), RowError> {
        let sql = format!("INSERT INTO nodes ({COLUMNS}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)");
        conn.prepare_cached(&sql)?.execute(params![
            self.numbers[0],
            self.numbers[KIND],
            self.numbers[CODEC],
            self.numbers[REDACTED_MS],
            self.ids[NODE_ID],
            self.ids[COPIED_FROM],
            self.message_id,
            self.pack_rest(check),
            self.item,
        ])?;
        Ok(())
    }

    /// Computes the checksum of the row: XXH3-64 over all columns, in little-endian bytes.
    pub(crate) fn checksum(&self) -> [u8; 8] {
        let mut fixed = [0_u8; NUMBERS * 8 + IDS * 16 + 4];
        let (numbers, rest) = fixed.split_at_mut(NUMBERS * 8);
        let (ids, present) = rest.split_at_mut(IDS * 16);
        let mut presence: u32 = 0;
        for (bit, (slot, number)) in numbers.chunks_exact_mut(8).zip(self.numbers).enumerate() {
            if let Some(number) = number {
                slot.copy_from_slice(&number.to_le_bytes());
                presence |= 1 << bit;
            }
        }
        for (bit, (slot, id)) in ids.chunks_exact_mut(16).zip(self.ids).enumerate() {
            if let Some(id) = id {
                slot.copy_from_slice(id);
                presence |= 1 << (NUMBERS + bit);
            }
        }
        if self.message_id.is_some() {
            presence |= 1 << MESSAGE_ID;
        }
        present.copy_from_slice(&presence.to_le_bytes());
        let mut hash = XxHash3_64::oneshot(&fixed);
        if let Some(message) = self.message_id {
            hash = XxHash3_64::oneshot_with_seed(hash, message.as_bytes());
        }
        XxHash3_64::oneshot_with_seed(hash, self.item).to_le_bytes()
    }

    /// Returns whether `check` was computed from this row.
    pub(crate) fn matches_check(&self, check: [u8; 8]) -> bool {
        self.checksum() == check
    }
}

/// Maps signed numbers to unsigned ones, small ones to small ones.
fn zigzag_encode(number: i64) -> u64 {
    ((number << 1) ^ (number >> 63)).cast_unsigned()
}

fn zigzag_decode(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

/// Writes a number with seven bits a byte, the lowest first.
fn put_number(to: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        to.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    to.push(number as u8);
}

fn take_number(from: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let (byte, rest) = from.split_first()?;
        *from = rest;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Some(number);
        }
    }
    None
}

/// Moves the rows of format 8 into the table of format 9. Checksums are copied, so damaged rows
/// stay recognisable.
pub(crate) fn repack_rows(conn: &Connection) -> Result<(), RowError> {
    // Overwrites the old rows, so that they do not stay in free pages.
    conn.pragma_update_and_check(None, "secure_delete", true, |_| Ok(()))?;
    {
        let mut statement = conn.prepare(
            "SELECT id, segment, depth, messages, turns, compacted, kind, origin, audience, root_no, \
             fence, created_ms, item_version, codec, key_id, step, redacted_ms, node_id, \
             content_hash, meaning_hash, answers, copied_from, run, response, message_id, item, \
             row_check FROM nodes_8",
        )?;
        let mut rows = statement.query([])?;
        while let Some(row) = rows.next()? {
            let mut columns = NodeColumns::default();
            for (column, number) in columns.numbers.iter_mut().enumerate() {
                *number = row.get(column)?;
            }
            for (column, id) in (NUMBERS..).zip(columns.ids.iter_mut()) {
                *id = bytes_of(row, column)?;
            }
            columns.message_id = row.get_ref(MESSAGE_ID)?.as_str_or_null()?;
            columns.item = row.get_ref(MESSAGE_ID + 1)?.as_blob()?;
            columns.insert_row_with(conn, bytes_of(row, MESSAGE_ID + 2)?.copied())?;
        }
    }
    conn.execute_batch("DROP TABLE nodes_8")?;
    Ok(())
}

/// Reads exactly `N` bytes, or `NULL`.
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
    fn what_is_packed_is_unpacked() {
        let full = NodeColumns {
            numbers: [
                0,
                1,
                63,
                64,
                -1,
                1 << 40,
                0,
                2,
                3,
                i64::MAX,
                i64::MIN,
                1_700_000_000_000,
                1,
                0,
                5,
                6,
                0,
            ]
            .map(Some),
            ids: [Some(&[7; 16]); IDS],
            ..NodeColumns::default()
        };
        let mut usual = NodeColumns::default();
        for number in [1, 2, 3, 4, 5, 7, 8, 9, 11, 12] {
            usual.numbers[number] = Some(1);
        }
        usual.ids[CONTENT_HASH] = Some(&[9; 16]);
        assert_eq!(usual.pack_rest(Some([1; 8])).len(), 8 + 1 + 10 + 16);
        for columns in [full, usual, NodeColumns::default()] {
            for check in [None, Some([8; 8])] {
                let rest = columns.pack_rest(check);
                let (read, read_check) = NodeColumns::from_packed(&rest).unwrap();
                assert_eq!(read_check, check);
                for number in PACKED_NUMBERS {
                    assert_eq!(read.numbers[number], columns.numbers[number]);
                }
                for id in PACKED_IDS {
                    assert_eq!(read.ids[id], columns.ids[id]);
                }
                for end in 0..rest.len() {
                    assert!(
                        NodeColumns::from_packed(&rest[..end]).is_none(),
                        "{end} bytes"
                    );
                }
                assert!(NodeColumns::from_packed(&[&rest[..], &[0]].concat()).is_none());
            }
        }
        assert!(NodeColumns::from_packed(&[0xff; 40]).is_none());
    }

    #[test]
    fn every_column_counts() {
        let plain = || NodeColumns {
            numbers: [Some(0); NUMBERS],
            ids: [Some(&[0; 16]); IDS],
            message_id: Some(""),
            item: b"",
        };
        let mut checks = vec![plain().checksum()];
        for column in 0..NUMBERS {
            for value in [None, Some(1)] {
                let mut changed = plain();
                changed.numbers[column] = value;
                checks.push(changed.checksum());
            }
        }
        for column in 0..IDS {
            for value in [None, Some(&[1; 16])] {
                let mut changed = plain();
                changed.ids[column] = value;
                checks.push(changed.checksum());
            }
        }
        for message_id in [None, Some("a")] {
            checks.push(
                NodeColumns {
                    message_id,
                    ..plain()
                }
                .checksum(),
            );
        }
        checks.push(
            NodeColumns {
                item: b"a",
                ..plain()
            }
            .checksum(),
        );
        let all = checks.len();
        checks.sort_unstable();
        checks.dedup();
        assert_eq!(checks.len(), all);
    }

    #[test]
    fn the_check_is_the_one_that_stored_rows_have() {
        let columns = NodeColumns {
            numbers: [Some(7); NUMBERS],
            ids: [Some(&[9; 16]); IDS],
            message_id: Some("m"),
            item: b"{}",
        };
        // Computed with the reference implementation.
        assert_eq!(columns.checksum(), [56, 68, 190, 208, 46, 112, 40, 70]);
    }
}
