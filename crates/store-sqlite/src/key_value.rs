//! Values outside the tree as rows.

use contexture_ir::Owner;
use contexture_store::{Entry, KeyScope, PutEntry, rules};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::blob::check;
use crate::conv::Conv;
use crate::fault::{Fault, corrupt};

/// A scope's columns; a conversation must exist.
fn columns<'a>(
    conn: &Connection,
    owner: &Owner,
    scope: &'a KeyScope,
) -> Result<(u8, &'a str), Fault> {
    Ok(match scope {
        KeyScope::Owner => (0, ""),
        KeyScope::Resource(resource) => (1, resource),
        KeyScope::Conversation(id) => {
            Conv::load(conn, owner, id)?;
            (2, id.as_str())
        }
    })
}

const SELECT: &str = "SELECT key, version, at_ms, value_check, value FROM key_values \
     WHERE owner = ? AND scope_kind = ? AND scope = ?";

fn read(row: &Row<'_>) -> Result<Option<Entry>, Fault> {
    let key: String = row.get(0)?;
    let Some(value) = row.get::<_, Option<Vec<u8>>>(4)? else {
        return Ok(None);
    };
    if row.get::<_, Option<[u8; 8]>>(3)? != Some(check(&value)) {
        return Err(corrupt(format!(
            "the value of {key:?} does not match its hash"
        )));
    }
    let version: i64 = row.get(1)?;
    Ok(Some(Entry {
        key,
        value: value.into(),
        version: u64::try_from(version).unwrap_or(0),
        at_ms: row.get(2)?,
    }))
}

/// The value of a key.
pub(crate) fn get(
    conn: &Connection,
    owner: &Owner,
    scope: &KeyScope,
    key: &str,
) -> Result<Option<Entry>, Fault> {
    let (kind, scope) = columns(conn, owner, scope)?;
    let sql = format!("{SELECT} AND key = ?");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![owner.as_str(), kind, scope, key])?;
    match rows.next()? {
        Some(row) => read(row),
        None => Ok(None),
    }
}

/// All values whose key begins with `prefix`, by key.
pub(crate) fn list(
    conn: &Connection,
    owner: &Owner,
    scope: &KeyScope,
    prefix: &str,
) -> Result<Vec<Entry>, Fault> {
    let (kind, scope) = columns(conn, owner, scope)?;
    let sql = format!("{SELECT} AND key >= ? ORDER BY key");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![owner.as_str(), kind, scope, prefix])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        if !row.get::<_, String>(0)?.starts_with(prefix) {
            break;
        }
        found.extend(read(row)?);
    }
    Ok(found)
}

/// Writes or deletes a value; gives its new version.
pub(crate) fn put(
    conn: &Connection,
    owner: &Owner,
    scope: &KeyScope,
    put: &PutEntry,
) -> Result<u64, Fault> {
    let (kind, scope) = columns(conn, owner, scope)?;
    let stored: Option<(i64, bool)> = conn
        .prepare_cached(
            "SELECT version, value IS NOT NULL FROM key_values \
             WHERE owner = ? AND scope_kind = ? AND scope = ? AND key = ?",
        )?
        .query_row(params![owner.as_str(), kind, scope, put.key], |row| {
            Ok((row.get(0)?, row.get(1)?))
        })
        .optional()?;
    let version = stored.map_or(0, |(version, _)| version);
    let present = stored.filter(|(_, present)| *present);
    let present = present.and_then(|(version, _)| u64::try_from(version).ok());
    rules::check_version(put, present)?;
    conn.prepare_cached(
        "INSERT INTO key_values (owner, scope_kind, scope, key, version, at_ms, value_check, value) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8) \
         ON CONFLICT DO UPDATE SET version = ?5, at_ms = ?6, value_check = ?7, value = ?8",
    )?
    .execute(params![
        owner.as_str(),
        kind,
        scope,
        put.key,
        version + 1,
        put.at_ms,
        put.value.as_deref().map(check),
        put.value.as_deref()
    ])?;
    Ok(u64::try_from(version + 1).unwrap_or(0))
}
