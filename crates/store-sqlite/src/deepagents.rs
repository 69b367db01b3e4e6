//! Reads databases of `@deepagents/context`, chat by chat.
//!
//! The file is opened read-only. If no other process has it open, it is opened as immutable, so
//! that SQLite creates no files beside it. One transaction covers all reads. A chat is returned as
//! the JSON object that `contexture-sessions` reads as `deepagents`: its rows in the order of
//! insertion, every column under its name. Only one chat is in memory at a time.
//!
//! Not here: the meaning of the rows.

use std::fs::File;
use std::io::{ErrorKind, Read};
use std::path::{Path, PathBuf};

use contexture_store::{Error, StorageFault};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, OpenFlags, OptionalExtension, Row, ToSql};
use serde_json::{Map, Value};

use crate::connection::harden_connection;
use crate::error::from_sqlite;

/// First bytes of a SQLite file.
const HEADER: &[u8; 16] = b"SQLite format 3\0";
/// Names of the tables, each with the column that holds the id of the chat.
const TABLES: [(&str, &str); 4] = [
    ("chats", "id"),
    ("messages", "chatId"),
    ("branches", "chatId"),
    ("checkpoints", "chatId"),
];
/// Largest size of a chat's JSON in bytes, since it is held in memory as a whole.
const MAX_CHAT_BYTES: usize = 1 << 30;

/// Returns whether a file is a SQLite database, of whatever program.
///
/// # Errors
/// The file cannot be read.
pub fn is_sqlite(path: &Path) -> std::io::Result<bool> {
    let mut header = [0; 16];
    match File::open(path)?.read_exact(&mut header) {
        Ok(()) => Ok(&header == HEADER),
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(false),
        Err(error) => Err(error),
    }
}

/// A database that `@deepagents/context` made.
///
/// ```
/// use contexture_store_sqlite::DeepAgentsFile;
/// # let directory = tempfile::tempdir()?;
/// # let path = directory.path().join("chats.db");
/// # rusqlite::Connection::open(&path)?.execute_batch(
/// #     "CREATE TABLE chats (id TEXT); CREATE TABLE messages (chatId TEXT);
/// #      CREATE TABLE branches (chatId TEXT); CREATE TABLE checkpoints (chatId TEXT);
/// #      INSERT INTO chats VALUES ('support-42')")?;
/// let mut file = DeepAgentsFile::open(&path)?;
/// while let Some(chat) = file.next_chat()? {
///     assert!(chat.starts_with(r#"{"chat":{"id":"support-42""#));
/// }
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct DeepAgentsFile {
    conn: Connection,
    path: PathBuf,
    /// The `rowid` of the last chat that was read; `None` once all are read.
    after: Option<i64>,
}

impl DeepAgentsFile {
    /// Opens a file for reading.
    ///
    /// # Errors
    /// [`Error::Storage`] if it cannot be read; [`Error::Invalid`] if it has other tables.
    pub fn open(path: &Path) -> Result<Self, Error> {
        let sql = |error| from_sqlite(error, path);
        let flags = OpenFlags::SQLITE_OPEN_READ_ONLY
            | OpenFlags::SQLITE_OPEN_URI
            | OpenFlags::SQLITE_OPEN_NO_MUTEX;
        let conn = Connection::open_with_flags(file_uri(path)?, flags).map_err(sql)?;
        harden_connection(&conn).map_err(sql)?;
        conn.execute_batch("BEGIN").map_err(sql)?;
        for (table, _) in TABLES {
            let found: bool = conn
                .prepare("SELECT 1 FROM pragma_table_list WHERE name = ? AND type = 'table'")
                .and_then(|mut statement| statement.exists([table]))
                .map_err(sql)?;
            if !found {
                let why = format!(
                    "no table `{table}`: expected chats, messages, branches and checkpoints, as \
                     @deepagents/context makes them"
                );
                return Err(Error::invalid_argument("database", why));
            }
        }
        Ok(Self {
            conn,
            path: path.to_owned(),
            after: Some(i64::MIN),
        })
    }

    /// Counts the chats.
    ///
    /// # Errors
    /// [`Error::Storage`].
    pub fn chat_count(&self) -> Result<u64, Error> {
        let count = self
            .conn
            .query_row("SELECT count(*) FROM chats", [], |row| row.get::<_, i64>(0));
        let count = count.map_err(|error| from_sqlite(error, &self.path))?;
        Ok(u64::try_from(count).unwrap_or_default())
    }

    /// Returns the next chat as JSON; `None` after the last.
    ///
    /// # Errors
    /// [`Error::Storage`] if its rows cannot be read, [`Error::Invalid`] if it is larger than 1 GiB;
    /// the next call continues with the chat after it.
    pub fn next_chat(&mut self) -> Result<Option<String>, Error> {
        let Some(after) = self.after.take() else {
            return Ok(None);
        };
        let sql = "SELECT rowid, * FROM chats WHERE rowid > ? ORDER BY rowid LIMIT 1";
        let found = self
            .conn
            .prepare_cached(sql)
            .and_then(|mut statement| {
                let chat = |row: &Row<'_>| Ok((row.get(0)?, columns_to_json(row, 1)?));
                statement.query_row([after], chat).optional()
            })
            .map_err(|error| from_sqlite(error, &self.path))?;
        let Some((rowid, chat)) = found else {
            return Ok(None);
        };
        self.after = Some(rowid);
        let mut json = format!(r#"{{"chat":{}"#, Value::Object(chat));
        for (table, key) in TABLES.into_iter().skip(1) {
            self.append_table_rows(table, key, rowid, &mut json)?;
        }
        json.push('}');
        Ok(Some(json))
    }

    /// Appends a chat's rows of a table to the JSON.
    fn append_table_rows(
        &self,
        table: &str,
        key: &str,
        chat: i64,
        json: &mut String,
    ) -> Result<(), Error> {
        let sql = |error| from_sqlite(error, &self.path);
        json.push_str(&format!(r#","{table}":["#));
        let select = format!(
            "SELECT * FROM {table} WHERE {key} = (SELECT id FROM chats WHERE rowid = ?) \
             ORDER BY rowid"
        );
        let mut statement = self.conn.prepare_cached(&select).map_err(sql)?;
        let mut rows = statement.query([&chat as &dyn ToSql]).map_err(sql)?;
        let mut first = true;
        while let Some(row) = rows.next().map_err(sql)? {
            if !std::mem::take(&mut first) {
                json.push(',');
            }
            json.push_str(&Value::Object(columns_to_json(row, 0).map_err(sql)?).to_string());
            if json.len() > MAX_CHAT_BYTES {
                let why = format!("a chat of more than {MAX_CHAT_BYTES} bytes in table `{table}`");
                return Err(Error::invalid_argument("database", why));
            }
        }
        json.push(']');
        Ok(())
    }
}

/// Returns the file's URI. A file that nobody has open is opened as immutable, because SQLite would
/// otherwise create files beside it.
fn file_uri(path: &Path) -> Result<String, Error> {
    let storage = |fault, source: Option<std::io::Error>| Error::Storage {
        path: path.to_owned(),
        fault,
        source: source.map(Into::into),
    };
    let full = path.canonicalize();
    let full = full.map_err(|error| storage(StorageFault::CannotOpen, Some(error)))?;
    let text = full
        .to_str()
        .ok_or_else(|| storage(StorageFault::CannotOpen, None))?;
    let mut address = "file:".to_owned();
    for byte in text.bytes() {
        match byte {
            b'/' | b'-' | b'.' | b'_' | b'~' | b'0'..=b'9' | b'a'..=b'z' | b'A'..=b'Z' => {
                address.push(char::from(byte));
            }
            other => address.push_str(&format!("%{other:02x}")),
        }
    }
    let has_sibling_file = |end: &str| {
        let mut name = full.clone().into_os_string();
        name.push(end);
        PathBuf::from(name).exists()
    };
    let is_open_elsewhere = has_sibling_file("-wal") || has_sibling_file("-journal");
    address.push_str(if is_open_elsewhere {
        "?mode=ro"
    } else {
        "?mode=ro&immutable=1"
    });
    Ok(address)
}

/// Converts a row's columns from `first` on to JSON. A value that is not text is replaced by its
/// size.
fn columns_to_json(row: &Row<'_>, first: usize) -> rusqlite::Result<Map<String, Value>> {
    let statement = row.as_ref();
    let bytes = |bytes: &[u8]| serde_json::json!({ "bytes": bytes.len() });
    (first..statement.column_count())
        .map(|index| {
            let value = match row.get_ref(index)? {
                ValueRef::Null => Value::Null,
                ValueRef::Integer(number) => number.into(),
                ValueRef::Real(number) => number.into(),
                ValueRef::Text(text) => match std::str::from_utf8(text) {
                    Ok(text) => text.into(),
                    Err(_) => bytes(text),
                },
                ValueRef::Blob(blob) => bytes(blob),
            };
            Ok((statement.column_name(index)?.to_owned(), value))
        })
        .collect()
}
