//! Reading rows.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::fault::{RowError, corrupt_error};

/// A column.
pub(crate) fn get_column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, RowError> {
    Ok(row.try_get(index)?)
}

/// A column of `N` bytes.
pub(crate) fn get_bytes<const N: usize>(row: &Row, index: usize) -> Result<[u8; N], RowError> {
    exact_bytes(row.try_get(index)?)
}

/// A column of `N` bytes, or null.
pub(crate) fn get_bytes_or_null<const N: usize>(
    row: &Row,
    index: usize,
) -> Result<Option<[u8; N]>, RowError> {
    let bytes: Option<&[u8]> = row.try_get(index)?;
    bytes.map(exact_bytes).transpose()
}

fn exact_bytes<const N: usize>(bytes: &[u8]) -> Result<[u8; N], RowError> {
    let length = bytes.len();
    let wrong = |_| corrupt_error(format!("a column has {length} bytes instead of {N}"));
    bytes.try_into().map_err(wrong)
}

/// A number that is never negative.
pub(crate) fn get_count(row: &Row, index: usize) -> Result<u64, RowError> {
    let number: i32 = row.try_get(index)?;
    u64::try_from(number).map_err(|_| corrupt_error(format!("a count is {number}")))
}
