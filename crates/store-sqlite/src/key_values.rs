//! Values outside the tree as rows.

use contexture_ir::Owner;
use contexture_store::rules::PageBytes;
use contexture_store::{
    DERIVED_KEYS, EntryCursor, EntryPage, Error, KeyScope, KeyValueEntry, ListEntries, PutEntry,
    rules,
};
use rusqlite::{Connection, OptionalExtension, Row, params};

use crate::error::{RowError, corrupt_error};
use crate::rows::blob::row_checksum;
use crate::rows::conversation_row::ConversationRow;

/// Returns a scope's columns; [`Error::NotFound`] for an unknown conversation.
fn load_scope_columns<'a>(
    conn: &Connection,
    owner: &Owner,
    scope: &'a KeyScope,
) -> Result<(u8, &'a str), RowError> {
    if let KeyScope::Conversation(id) = scope {
        ConversationRow::load(conn, owner, id)?;
    }
    Ok(rules::scope_columns(scope))
}

const SELECT: &str = "SELECT key, version, at_ms, value_check, value FROM key_values \
     WHERE owner = ? AND scope_kind = ? AND scope = ?";

fn decode_entry(row: &Row<'_>) -> Result<Option<KeyValueEntry>, RowError> {
    let key: String = row.get(0)?;
    let Some(value) = row.get::<_, Option<Vec<u8>>>(4)? else {
        return Ok(None);
    };
    if row.get::<_, Option<[u8; 8]>>(3)? != Some(row_checksum(&value)) {
        return Err(corrupt_error(format!(
            "the value of {key:?} does not match its hash"
        )));
    }
    let version: i64 = row.get(1)?;
    Ok(Some(KeyValueEntry {
        key,
        value: value.into(),
        version: u64::try_from(version).unwrap_or(0),
        at_ms: row.get(2)?,
    }))
}

/// Reads the value of a key.
pub(crate) fn get_entry(
    conn: &Connection,
    owner: &Owner,
    scope: &KeyScope,
    key: &str,
) -> Result<Option<KeyValueEntry>, RowError> {
    let (kind, scope) = load_scope_columns(conn, owner, scope)?;
    let sql = format!("{SELECT} AND key = ?");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(params![owner.as_str(), kind, scope, key])?;
    match rows.next()? {
        Some(row) => decode_entry(row),
        None => Ok(None),
    }
}

/// Lists an owner's values from a key on, without those of conversations that are being deleted.
pub(crate) const LIST_ALL: &str = "SELECT key, version, at_ms, value_check, value, scope_kind, scope \
     FROM key_values AS e \
     WHERE owner = ?1 AND (scope_kind, scope, key) >= (?2, ?3, ?4) AND value IS NOT NULL \
     AND (scope_kind <> 2 OR EXISTS \
     (SELECT 1 FROM conversations c WHERE c.owner = e.owner AND c.id = e.scope)) \
     ORDER BY scope_kind, scope, key";

/// Range of the rows of [`LIST_ALL`] that a page takes.
struct ListRange<'a> {
    only: Option<ScopeColumns<'a>>,
    cursor: Option<(ScopeColumns<'a>, &'a str)>,
    prefix: &'a str,
}

/// A scope's columns; such pairs sort in the order of [`LIST_ALL`].
type ScopeColumns<'a> = (u8, &'a str);

/// What to do with a row of the list.
#[derive(PartialEq, Eq)]
enum RowAction {
    Take,
    Skip,
    /// Nothing after it belongs to the list either.
    Stop,
}

impl<'a> ListRange<'a> {
    fn new(conn: &Connection, owner: &Owner, list: &'a ListEntries) -> Result<Self, RowError> {
        let only = list.scope.as_ref();
        let only = only.map(|scope| load_scope_columns(conn, owner, scope));
        // The cursor's conversation may have been deleted: the cursor is only a position in the
        // order.
        let cursor = list.after.as_ref();
        Ok(Self {
            only: only.transpose()?,
            cursor: cursor.map(|after| (rules::scope_columns(&after.scope), after.key.as_str())),
            prefix: &list.prefix,
        })
    }

    /// Returns the scope and key to read from: the later of the cursor and the beginning of the
    /// scope.
    fn start(&self) -> (ScopeColumns<'a>, &'a str) {
        let first = self.only.map(|only| (only, self.prefix));
        let start = [first, self.cursor].into_iter().flatten().max();
        start.unwrap_or(((0, ""), ""))
    }

    fn action(&self, scope: ScopeColumns<'_>, key: &str) -> RowAction {
        if self.only.is_some_and(|only| only != scope) {
            return RowAction::Stop;
        }
        // The range includes the cursor's own row, which ended the page before.
        if self.cursor.is_some_and(|cursor| cursor == (scope, key)) {
            return RowAction::Skip;
        }
        if key.starts_with(self.prefix) {
            return RowAction::Take;
        }
        // Keys with a common prefix are adjacent within one scope, but not across scopes.
        match self.only {
            Some(_) => RowAction::Stop,
            None => RowAction::Skip,
        }
    }
}

/// Lists values by scope and then by key.
pub(crate) fn list_entries(
    conn: &Connection,
    owner: &Owner,
    list: &ListEntries,
    page_bytes: usize,
) -> Result<EntryPage, RowError> {
    let range = ListRange::new(conn, owner, list)?;
    let ((kind, scope), key) = range.start();
    let limit = list.limit.unwrap_or(ListEntries::DEFAULT_LIMIT);
    let mut statement = conn.prepare_cached(LIST_ALL)?;
    let mut rows = statement.query(params![owner.as_str(), kind, scope, key])?;
    let (mut page, mut bytes) = (EntryPage::default(), PageBytes::new(page_bytes));
    while let Some(row) = rows.next()? {
        let (kind, scope): (u8, String) = (row.get(5)?, row.get(6)?);
        let key: String = row.get(0)?;
        match range.action((kind, &scope), &key) {
            RowAction::Stop => break,
            RowAction::Skip => continue,
            RowAction::Take => {}
        }
        // One extra row shows that there is a next page.
        if page.entries.len() == limit {
            page.next = EntryCursor::after_last(&page.entries);
            break;
        }
        if let Some(entry) = decode_entry(row)? {
            if !bytes.take(entry.value.len()) {
                page.next = EntryCursor::after_last(&page.entries);
                break;
            }
            page.entries
                .push((decode_scope(kind.into(), &scope)?, entry));
        }
    }
    Ok(page)
}

fn decode_scope(kind: i64, name: &str) -> Result<KeyScope, RowError> {
    rules::scope_from_columns(kind, name).map_err(|error| corrupt_error(error.to_string()))
}

/// The columns [`verify_entry`] looks at.
const VERIFY: &str = "SELECT no, key, version, value_check, value, scope_kind FROM key_values";

/// Reads a conversation's values between two row numbers, for a check.
pub(crate) fn verify_sql(conversation: u32) -> String {
    format!(
        "{VERIFY} WHERE (owner, scope) = (SELECT owner, id FROM conversations WHERE no = {conversation}) \
         AND scope_kind = 2 AND no > ? AND no <= ? ORDER BY no LIMIT ?"
    )
}

/// Checks a row of [`verify_sql`].
pub(crate) fn verify_entry(
    row: &Row<'_>,
    damaged: impl Fn(&str, &str) -> Error,
) -> Result<(), RowError> {
    let key: String = row.get(1)?;
    let wrong = |why| Err(damaged(&key, why).into());
    if key.is_empty() || key.len() > 255 {
        return wrong("its key is none");
    }
    if row.get::<_, i64>(2)? < 1 {
        return wrong("its version is none");
    }
    let value = row.get_ref(4)?.as_blob_or_null();
    let value = value.map_err(rusqlite::Error::from)?;
    if row.get::<_, Option<[u8; 8]>>(3)? != value.map(row_checksum) {
        return wrong("its bytes do not match their check");
    }
    Ok(())
}

/// Checks the values that belong to no conversation; returns a line for each fault, at most `most`.
pub(crate) fn verify_others(conn: &Connection, most: u32) -> rusqlite::Result<Vec<String>> {
    let mut statement = conn.prepare(VERIFY)?;
    let mut rows = statement.query([])?;
    let mut lines = Vec::new();
    while lines.len() < most as usize {
        let row = match rows.next() {
            Ok(Some(row)) => row,
            Ok(None) => break,
            // Later rows cannot be reached.
            Err(error) => {
                lines.push(format!("key_values: {error}"));
                break;
            }
        };
        let number: i64 = row.get(0)?;
        let wrong = |why: String| format!("row {number} of key_values: {why}");
        match row
            .get(5)
            .map_err(RowError::from)
            .and_then(|kind| match kind {
                0 | 1 => verify_entry(row, |key, why| {
                    Error::invalid_argument("value", format!("{key:?}, {why}"))
                }),
                2 => Ok(()),
                other => Err(Error::invalid_argument("value", format!("scope {other}")).into()),
            }) {
            Ok(()) => {}
            Err(RowError::Store(error)) => lines.push(wrong(error.to_string())),
            Err(RowError::Sql(error)) => lines.push(wrong(error.to_string())),
        }
    }
    Ok(lines)
}

/// Writes or deletes a value; returns its new version.
pub(crate) fn put_entry(
    conn: &Connection,
    owner: &Owner,
    scope: &KeyScope,
    put: &PutEntry,
) -> Result<u64, RowError> {
    let (kind, scope) = load_scope_columns(conn, owner, scope)?;
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
        put.value.as_deref().map(row_checksum),
        put.value.as_deref()
    ])?;
    Ok(u64::try_from(version + 1).unwrap_or(0))
}

/// Counts the writes of a conversation's values: each of them raises the sum of their versions, also one that deletes.
pub(crate) fn count_writes(conn: &Connection, conv: &ConversationRow) -> Result<i64, RowError> {
    let scope = KeyScope::Conversation(conv.id.clone());
    let (kind, name) = rules::scope_columns(&scope);
    let sum = conn
        .prepare_cached(
            "SELECT coalesce(sum(version), 0) FROM key_values \
             WHERE owner = ? AND scope_kind = ? AND scope = ?",
        )?
        .query_row(params![conv.owner.as_str(), kind, name], |row| row.get(0))?;
    Ok(sum)
}

/// Reads the values of a conversation one after the other.
pub(crate) fn read_values(
    conn: &Connection,
    conv: &ConversationRow,
    mut read: impl FnMut(&[u8]),
) -> Result<(), RowError> {
    let scope = KeyScope::Conversation(conv.id.clone());
    let (kind, name) = rules::scope_columns(&scope);
    let mut statement = conn.prepare_cached(SELECT)?;
    let mut rows = statement.query(params![conv.owner.as_str(), kind, name])?;
    while let Some(row) = rows.next()? {
        // A deleted value has a row and nothing to read.
        if let Some(entry) = decode_entry(row)? {
            read(&entry.value);
        }
    }
    Ok(())
}

/// Removes the values of a conversation that repeat what its items say. The rows stay for their versions.
pub(crate) fn remove_derived(
    conn: &Connection,
    conv: &ConversationRow,
    at_ms: i64,
) -> Result<(), RowError> {
    let scope = KeyScope::Conversation(conv.id.clone());
    let (kind, name) = rules::scope_columns(&scope);
    conn.prepare_cached(
        "UPDATE key_values SET version = version + 1, at_ms = ?, value_check = NULL, value = NULL \
         WHERE owner = ? AND scope_kind = ? AND scope = ? AND value IS NOT NULL \
         AND substr(key, 1, length(?5)) = ?5",
    )?
    .execute(params![
        at_ms,
        conv.owner.as_str(),
        kind,
        name,
        DERIVED_KEYS
    ])?;
    Ok(())
}
