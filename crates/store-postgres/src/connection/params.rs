//! Parameters of statements.
//!
//! Each Rust type maps to one column type, so a statement can be sent with the types of its
//! parameters and need not be prepared first.

use std::sync::Arc;

use bytes::BytesMut;
use contexture_ir::{ContentHash, NodeId, PathHash, ProcessId, ResponseId, RunId, StreamId};
use contexture_store::BlobId;
use tokio_postgres::Row;
use tokio_postgres::types::{FromSql, IsNull, ToSql, Type, to_sql_checked};

use crate::connection::error::{RowError, corrupt_error};

/// A value and its column type.
#[derive(Debug)]
pub(crate) struct Param {
    pub(crate) value: Box<dyn ToSql + Send + Sync>,
    pub(crate) kind: Type,
}

impl Param {
    pub(crate) fn new<T: Column>(value: T) -> Self {
        Self {
            value: Box::new(value.sql()),
            kind: T::TYPE,
        }
    }
}

/// The parameters of a statement.
macro_rules! params {
    ($($value:expr),* $(,)?) => { vec![$($crate::connection::params::Param::new($value)),*] };
}
pub(crate) use params;

/// A Rust type that maps to a column type.
pub(crate) trait Column {
    /// Type that the client encodes.
    type Sql: ToSql + Send + Sync + 'static;
    /// Column type of the value.
    const TYPE: Type;
    /// Column type of an array of such values.
    const ARRAY: Type;

    fn sql(self) -> Self::Sql;
}

/// Bytes for a `bytea` column.
#[derive(Clone, Debug)]
pub(crate) enum Bytea {
    Id([u8; 16]),
    Check([u8; 8]),
    Text(Arc<str>),
    Shared(Arc<[u8]>),
    Own(Vec<u8>),
}

impl Bytea {
    fn as_bytes(&self) -> &[u8] {
        match self {
            Self::Id(bytes) => bytes,
            Self::Check(bytes) => bytes,
            Self::Text(text) => text.as_bytes(),
            Self::Shared(bytes) => bytes,
            Self::Own(bytes) => bytes,
        }
    }
}

impl ToSql for Bytea {
    fn to_sql(
        &self,
        ty: &Type,
        out: &mut BytesMut,
    ) -> Result<IsNull, Box<dyn std::error::Error + Sync + Send>> {
        self.as_bytes().to_sql(ty, out)
    }

    fn accepts(ty: &Type) -> bool {
        *ty == Type::BYTEA
    }

    to_sql_checked!();
}

macro_rules! plain {
    ($($rust:ty: $kind:ident, $array:ident;)*) => {$(
        impl Column for $rust {
            type Sql = Self;
            const TYPE: Type = Type::$kind;
            const ARRAY: Type = Type::$array;

            fn sql(self) -> Self {
                self
            }
        }
    )*};
}

plain! {
    bool: BOOL, BOOL_ARRAY;
    i16: INT2, INT2_ARRAY;
    i32: INT4, INT4_ARRAY;
    i64: INT8, INT8_ARRAY;
    f64: FLOAT8, FLOAT8_ARRAY;
    String: TEXT, TEXT_ARRAY;
    Bytea: BYTEA, BYTEA_ARRAY;
}

macro_rules! bytea {
    ($($rust:ty: $value:ident => $bytea:expr;)*) => {$(
        impl Column for $rust {
            type Sql = Bytea;
            const TYPE: Type = Type::BYTEA;
            const ARRAY: Type = Type::BYTEA_ARRAY;

            fn sql(self) -> Bytea {
                let $value = self;
                $bytea
            }
        }
    )*};
}

bytea! {
    [u8; 16]: id => Bytea::Id(id);
    [u8; 8]: check => Bytea::Check(check);
    NodeId: id => Bytea::Id(*id.as_bytes());
    ContentHash: hash => Bytea::Id(*hash.as_bytes());
    RunId: id => Bytea::Id(*id.as_bytes());
    ResponseId: id => Bytea::Id(*id.as_bytes());
    PathHash: hash => Bytea::Id(*hash.as_bytes());
    ProcessId: id => Bytea::Id(*id.as_bytes());
    StreamId: id => Bytea::Id(*id.as_bytes());
    BlobId: id => Bytea::Id(*id.as_bytes());
    Arc<str>: text => Bytea::Text(text);
    Arc<[u8]>: bytes => Bytea::Shared(bytes);
}

impl Column for &str {
    type Sql = String;
    const TYPE: Type = Type::TEXT;
    const ARRAY: Type = Type::TEXT_ARRAY;

    fn sql(self) -> String {
        self.to_owned()
    }
}

impl<T: Column> Column for Option<T> {
    type Sql = Option<T::Sql>;
    const TYPE: Type = T::TYPE;
    const ARRAY: Type = T::ARRAY;

    fn sql(self) -> Self::Sql {
        self.map(T::sql)
    }
}

impl<T: Column> Column for Vec<T> {
    type Sql = Vec<T::Sql>;
    const TYPE: Type = T::ARRAY;
    // Arrays of arrays are not used.
    const ARRAY: Type = T::ARRAY;

    fn sql(self) -> Self::Sql {
        self.into_iter().map(T::sql).collect()
    }
}

/// Reads a column as a `T`; an error if the type does not fit.
pub(crate) fn get_column<'a, T: FromSql<'a>>(row: &'a Row, index: usize) -> Result<T, RowError> {
    Ok(row.try_get(index)?)
}

/// Reads a column of exactly `N` bytes.
pub(crate) fn get_bytes<const N: usize>(row: &Row, index: usize) -> Result<[u8; N], RowError> {
    exact_bytes(row.try_get(index)?)
}

/// Reads a column of exactly `N` bytes; `None` for null.
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
    // The server does not enforce the length, so a wrong one is damage.
    bytes.try_into().map_err(wrong)
}

/// Reads a number that is never negative.
pub(crate) fn get_count(row: &Row, index: usize) -> Result<u64, RowError> {
    let number: i32 = row.try_get(index)?;
    u64::try_from(number).map_err(|_| corrupt_error(format!("a count is {number}")))
}
