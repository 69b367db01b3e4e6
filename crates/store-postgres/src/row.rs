//! Reading rows.

use tokio_postgres::Row;
use tokio_postgres::types::FromSql;

use crate::fault::{Fault, corrupt};

/// A column.
pub(crate) fn get<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, Fault> {
    Ok(row.try_get(index)?)
}

/// A column of `N` bytes.
pub(crate) fn bytes<const N: usize>(row: &Row, index: usize) -> Result<[u8; N], Fault> {
    exactly(row.try_get(index)?)
}

/// A column of `N` bytes, or null.
pub(crate) fn bytes_or_null<const N: usize>(
    row: &Row,
    index: usize,
) -> Result<Option<[u8; N]>, Fault> {
    let bytes: Option<&[u8]> = row.try_get(index)?;
    bytes.map(exactly).transpose()
}

fn exactly<const N: usize>(bytes: &[u8]) -> Result<[u8; N], Fault> {
    let length = bytes.len();
    let wrong = |_| corrupt(format!("a column has {length} bytes instead of {N}"));
    bytes.try_into().map_err(wrong)
}

/// A number that is never negative.
pub(crate) fn count(row: &Row, index: usize) -> Result<u64, Fault> {
    let number: i32 = row.try_get(index)?;
    u64::try_from(number).map_err(|_| corrupt(format!("a count is {number}")))
}
