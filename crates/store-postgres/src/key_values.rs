//! Values outside the tree as rows.

use contexture_ir::Owner;
use contexture_store::{
    DERIVED_KEYS, EntryCursor, EntryPage, KeyScope, KeyValueEntry, ListEntries, PutEntry, rules,
};
use futures_util::TryStreamExt as _;
use futures_util::future::{try_join, try_join_all};
use tokio_postgres::Row;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{Bytea, Param, get_bytes_or_null, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::blob::row_checksum;
use crate::rows::conversation_row::ConversationRow;

/// Returns a scope's columns.
fn scope_columns(scope: &KeyScope) -> (i16, Bytea) {
    let (kind, name) = rules::scope_columns(scope);
    (kind.into(), Bytea::Text(name.into()))
}

/// Locks the conversation of a scope, so that it is not deleted while its values are written.
async fn lock_scope(tx: &Tx<'_>, owner: &Owner, scope: &KeyScope) -> Result<(), RowError> {
    if let KeyScope::Conversation(id) = scope {
        ConversationRow::load_for_update(tx, owner, id).await?;
    }
    Ok(())
}

/// Checks that the conversation of a scope exists.
async fn check_scope_exists(tx: &Tx<'_>, owner: &Owner, scope: &KeyScope) -> Result<(), RowError> {
    if let KeyScope::Conversation(id) = scope {
        ConversationRow::load_for_read(tx, owner, id).await?;
    }
    Ok(())
}

fn decode_entry(row: &Row) -> Result<Option<KeyValueEntry>, RowError> {
    let key = std::str::from_utf8(get_column(row, 0)?);
    let key = key.map_err(|_| corrupt_error("a key is not UTF-8"))?;
    // A deleted value keeps its row without bytes: its version counts on, so that a writer with an
    // old version cannot overwrite a newer value.
    let Some(value) = get_column::<Option<&[u8]>>(row, 4)? else {
        return Ok(None);
    };
    // Values outside the tree are not addressed by their hash, so they have a checksum.
    if get_bytes_or_null(row, 3)? != Some(row_checksum(value)) {
        let why = format!("the value of {key:?} does not match its hash");
        return Err(corrupt_error(why));
    }
    let version: i64 = get_column(row, 1)?;
    Ok(Some(KeyValueEntry {
        key: key.to_owned(),
        value: value.into(),
        version: u64::try_from(version).unwrap_or(0),
        at_ms: get_column(row, 2)?,
    }))
}

/// Reads the values of a conversation, deleted ones included.
pub(crate) const ALL_OF_CONVERSATION: &str = "SELECT key, version, at_ms, value_check, value \
     FROM contexture.key_values WHERE owner = $1 AND scope_kind = 2 AND scope = $2 ORDER BY key";

/// Checks a row of [`ALL_OF_CONVERSATION`].
pub(crate) fn verify_entry(row: &Row) -> Result<(), RowError> {
    let (version, check): (i64, Option<&[u8]>) = (get_column(row, 1)?, get_column(row, 3)?);
    let value: Option<&[u8]> = get_column(row, 4)?;
    // The first write gives version 1, and versions only grow.
    if version < 1 {
        return Err(corrupt_error(format!("its version is {version}")));
    }
    if value.is_some() != check.is_some() {
        return Err(corrupt_error(
            "it has a value without its check, or the check alone",
        ));
    }
    decode_entry(row).map(drop)
}

/// Counts the writes of a conversation's values: each of them raises the sum of their versions, also one that deletes.
pub(crate) async fn count_writes(tx: &Tx<'_>, conv: &ConversationRow) -> Result<i64, RowError> {
    let scope = Bytea::Text(conv.id.as_str().into());
    let row = tx.query_row(
        "SELECT coalesce(sum(version), 0)::int8 FROM contexture.key_values \
         WHERE owner = $1 AND scope_kind = 2 AND scope = $2",
        params![conv.owner.as_str(), scope],
    );
    row.await?.map_or(Ok(0), |row| get_column(&row, 0))
}

/// Reads the values of a conversation one after the other.
pub(crate) async fn read_values(
    tx: &Tx<'_>,
    conv: &ConversationRow,
    mut read: impl FnMut(&[u8]),
) -> Result<(), RowError> {
    let scope = Bytea::Text(conv.id.as_str().into());
    let params = params![conv.owner.as_str(), scope];
    let mut rows = std::pin::pin!(tx.query_stream(ALL_OF_CONVERSATION, params).await?);
    while let Some(row) = rows.try_next().await? {
        if let Some(entry) = decode_entry(&row)? {
            read(&entry.value);
        }
    }
    Ok(())
}

/// Reads the value of a key.
pub(crate) async fn get_entry(
    tx: &Tx<'_>,
    owner: &Owner,
    scope: &KeyScope,
    key: &str,
) -> Result<Option<KeyValueEntry>, RowError> {
    let (kind, name) = scope_columns(scope);
    let row = tx.query_row(
        "SELECT key, version, at_ms, value_check, value FROM contexture.key_values \
         WHERE owner = $1 AND scope_kind = $2 AND scope = $3 AND key = $4",
        params![owner.as_str(), kind, name, Bytea::Text(key.into())],
    );
    let ((), row) = try_join(check_scope_exists(tx, owner, scope), row).await?;
    row.map_or(Ok(None), |row| decode_entry(&row))
}

// The size of a value is in its row, so the sum reads no value that is stored beside its row. Sums go through the rows in the
// order of the list.
const LIST: &str = "SELECT key, version, at_ms, value_check, value, scope_kind, scope, listed \
     FROM (SELECT e.*, sum(octet_length(value)) OVER (ROWS UNBOUNDED PRECEDING) AS bytes, \
     row_number() OVER () AS number, count(*) OVER () AS listed \
     FROM (SELECT key, version, at_ms, value_check, value, scope_kind, scope \
     FROM contexture.key_values e WHERE owner = $1 \
     AND ($2 IS NULL OR (scope_kind = $2 AND scope = $3)) \
     AND (scope_kind, scope, key) > ($4, $5, $6) \
     AND key >= $7 AND ($8 IS NULL OR key < $8) AND value IS NOT NULL \
     AND (scope_kind <> 2 OR EXISTS (SELECT FROM contexture.listings l \
     WHERE l.owner = e.owner AND l.id = convert_from(e.scope, 'UTF8'))) \
     ORDER BY scope_kind, scope, key LIMIT $9) AS e) AS e WHERE bytes <= $10 OR number = 1 \
     ORDER BY number";

/// Lists values by scope and then by key, without those of conversations that are being deleted.
pub(crate) async fn list_entries(
    tx: &Tx<'_>,
    owner: &Owner,
    list: &ListEntries,
    page_bytes: usize,
) -> Result<EntryPage, RowError> {
    let limit = list.limit.unwrap_or(ListEntries::DEFAULT_LIMIT);
    let rows = tx.query_rows(LIST, list_params(owner, list, limit, page_bytes));
    let scope = async {
        match &list.scope {
            Some(scope) => check_scope_exists(tx, owner, scope).await,
            None => Ok(()),
        }
    };
    let ((), rows) = try_join(scope, rows).await?;
    decode_page(&rows, limit)
}

/// Returns the parameters of [`LIST`].
fn list_params(owner: &Owner, list: &ListEntries, limit: usize, page_bytes: usize) -> Vec<Param> {
    // One extra row shows that there is a next page.
    let fetch = i64::try_from(limit).unwrap_or(i64::MAX).saturating_add(1);
    let (kind, name) = list.scope.as_ref().map(scope_columns).unzip();
    // Kinds begin at 0, so -1 sorts before all.
    let (after_kind, after_name, after_key) = match &list.after {
        Some(after) => {
            let (kind, name) = scope_columns(&after.scope);
            (kind, name, after.key.as_str())
        }
        None => (-1, Bytea::Text("".into()), ""),
    };
    params![
        owner.as_str(),
        kind,
        name,
        after_kind,
        after_name,
        Bytea::Text(after_key.into()),
        Bytea::Text(list.prefix.as_str().into()),
        after_prefix(&list.prefix),
        fetch,
        i64::try_from(page_bytes).unwrap_or(i64::MAX)
    ]
}

/// Decodes a page of at most `limit` values; that more are listed than shown means that there is a next page.
fn decode_page(rows: &[Row], limit: usize) -> Result<EntryPage, RowError> {
    let mut page = EntryPage::default();
    for row in rows.iter().take(limit) {
        if let Some(entry) = decode_entry(row)? {
            page.entries.push((decode_scope(row)?, entry));
        }
    }
    let listed = rows.first().map(|row| get_column::<i64>(row, 7));
    let shown = i64::try_from(rows.len().min(limit)).unwrap_or(i64::MAX);
    if listed.transpose()?.unwrap_or(0) > shown {
        page.next = EntryCursor::after_last(&page.entries);
    }
    Ok(page)
}

fn decode_scope(row: &Row) -> Result<KeyScope, RowError> {
    let name = std::str::from_utf8(get_column(row, 6)?);
    let name = name.map_err(|_| corrupt_error("a scope is not UTF-8"))?;
    let scope = rules::scope_from_columns(get_column::<i16>(row, 5)?.into(), name);
    scope.map_err(|error| corrupt_error(error.to_string()))
}

/// Returns an upper bound of the keys that begin with `prefix`; no byte of UTF-8 text is 255.
fn after_prefix(prefix: &str) -> Option<Bytea> {
    let mut bytes = prefix.as_bytes().to_vec();
    let last = bytes.last_mut()?;
    // An exclusive bound turns the prefix into a range of the primary key, without LIKE.
    *last = last.saturating_add(1);
    Some(Bytea::Own(bytes))
}

/// Writes or deletes a value; returns its new version.
pub(crate) async fn put_entry(
    tx: &mut Tx<'_>,
    owner: &Owner,
    scope: &KeyScope,
    put: &PutEntry,
) -> Result<u64, RowError> {
    let ((), stored) = try_join(
        lock_scope(tx, owner, scope),
        lock_entry(tx, owner, scope, put),
    )
    .await?;
    write_entry(tx, owner, scope, put, stored)
}

/// Writes or deletes values; returns their new versions. The caller has locked the conversation.
pub(crate) async fn put_all(
    tx: &mut Tx<'_>,
    owner: &Owner,
    puts: &[(KeyScope, PutEntry)],
) -> Result<Vec<u64>, RowError> {
    let mut sorted: Vec<(usize, &(KeyScope, PutEntry))> = puts.iter().enumerate().collect();
    // All writers lock in one order, so that they cannot deadlock.
    sorted.sort_by(|(_, (a, x)), (_, (b, y))| (a, &x.key).cmp(&(b, &y.key)));
    let locks = sorted
        .iter()
        .map(|(_, (scope, put))| lock_entry(tx, owner, scope, put));
    let stored = try_join_all(locks).await?;
    let mut versions = Vec::new();
    for ((at, (scope, put)), stored) in sorted.into_iter().zip(stored) {
        versions.push((at, write_entry(tx, owner, scope, put, stored)?));
    }
    // Back into the order of the request.
    versions.sort_unstable();
    Ok(versions.into_iter().map(|(_, version)| version).collect())
}

/// What is stored under a key: its version, and whether it has a value.
type StoredVersion = Option<(i64, bool)>;

/// Locks and reads the version that is stored under a key.
async fn lock_entry(
    tx: &Tx<'_>,
    owner: &Owner,
    scope: &KeyScope,
    put: &PutEntry,
) -> Result<StoredVersion, RowError> {
    let (kind, name) = scope_columns(scope);
    let key = Bytea::Text(put.key.as_str().into());
    let row = tx.query_row(
        "SELECT version, value IS NOT NULL FROM contexture.key_values \
         WHERE owner = $1 AND scope_kind = $2 AND scope = $3 AND key = $4 FOR UPDATE",
        params![owner.as_str(), kind, name, key],
    );
    let row = row.await?;
    row.map(|row| Ok((get_column(&row, 0)?, get_column(&row, 1)?)))
        .transpose()
}

/// Writes an entry that is locked.
fn write_entry(
    tx: &mut Tx<'_>,
    owner: &Owner,
    scope: &KeyScope,
    put: &PutEntry,
    stored: StoredVersion,
) -> Result<u64, RowError> {
    let (version, is_present) = stored.unwrap_or((0, false));
    // A deleted value does not count as present, but its version counts on.
    let present = u64::try_from(version).ok().filter(|_| is_present);
    rules::check_version(put, present)?;
    let next = version.saturating_add(1);
    let sql = match stored {
        Some(_) => {
            "UPDATE contexture.key_values \
             SET version = $5, at_ms = $6, value_check = $7, value = $8 \
             WHERE owner = $1 AND scope_kind = $2 AND scope = $3 AND key = $4"
        }
        // Concurrent inserts of one key collide on the primary key, and one of the transactions is
        // retried.
        None => {
            "INSERT INTO contexture.key_values \
             (owner, scope_kind, scope, key, version, at_ms, value_check, value) \
             VALUES ($1, $2, $3, $4, $5, $6, $7, $8)"
        }
    };
    let (kind, name) = scope_columns(scope);
    tx.execute_on_commit(
        sql,
        params![
            owner.as_str(),
            kind,
            name,
            Bytea::Text(put.key.as_str().into()),
            next,
            put.at_ms,
            put.value.as_deref().map(row_checksum),
            put.value.clone()
        ],
    );
    Ok(u64::try_from(next).unwrap_or(0))
}

/// Removes the values of a conversation that repeat what its items say. The rows stay for their versions.
pub(crate) fn remove_derived(tx: &mut Tx<'_>, conv: &ConversationRow, at_ms: i64) {
    let (kind, name) = scope_columns(&KeyScope::Conversation(conv.id.clone()));
    tx.execute_on_commit(
        "UPDATE contexture.key_values \
         SET version = version + 1, at_ms = $4, value_check = NULL, value = NULL \
         WHERE owner = $1 AND scope_kind = $2 AND scope = $3 AND value IS NOT NULL \
         AND substr(key, 1, length($5::bytea)) = $5::bytea",
        params![
            conv.owner.as_str(),
            kind,
            name,
            at_ms,
            Bytea::Text(DERIVED_KEYS.into())
        ],
    );
}
