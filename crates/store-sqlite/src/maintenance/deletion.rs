//! Deletes conversations and erases owners in bounded steps.
//!
//! A deleted conversation leaves `conversations` at once, so nothing finds it any more; its number
//! stays in `deletions` until all its rows are removed. Each step is a short transaction of its
//! own, so other writers run in between and an interrupted deletion continues later.

use contexture_ir::{ConversationId, Owner};
use contexture_store::{EraseScope, Erased};
use rusqlite::{Connection, OptionalExtension, ToSql, params};

use crate::calls;
use crate::error::{RowError, corrupt_error};
use crate::rows::conversation_row::ConversationRow;
use crate::rows::path::key_range;

/// Largest number of rows that one step removes, and approximate number of bytes.
const STEP_ROWS: usize = 1000;
const STEP_BYTES: i64 = 8 << 20;
/// Largest number of conversations that one step hides.
const STEP_CONVERSATIONS: u32 = 100;

/// Tables whose keys begin with the conversation's number, with the size of a row's content.
const BY_KEY: [(&str, &str); 8] = [
    ("nodes", "length(item)"),
    ("segments", "0"),
    ("branches", "0"),
    ("roots", "length(body)"),
    ("events", "0"),
    ("responses", "length(inputs)"),
    ("runs", "length(body)"),
    ("streams", "0"),
];

/// Tables with the conversation's number in a column, with their key and the size of a row's
/// content.
const BY_COLUMN: [(&str, &str, &str); 8] = [
    ("metadata", "conversation_no", "0"),
    ("attributes", "conversation_no, key", "0"),
    ("checkpoints", "conversation_no, name", "0"),
    ("state_values", "conversation_no, hash", "length(value)"),
    ("blobs", "no", "size"),
    (
        "stream_chunks",
        "conversation_no, epoch, seq",
        "length(chunk)",
    ),
    ("exchanges", "owner, path_hash, process, number", "0"),
    (
        "path_index",
        "owner, version, path_hash, conversation_no, segment, depth",
        "0",
    ),
];

/// Result of one step of a deletion.
pub(crate) struct DeletionStep {
    /// Number of values outside the tree that the step removed.
    pub(crate) entries: u64,
    /// Whether rows are left.
    pub(crate) more: bool,
}

/// Hides a conversation from readers; returns its number.
pub(crate) fn mark_deleted(
    conn: &Connection,
    owner: &Owner,
    id: &ConversationId,
) -> Result<u32, RowError> {
    let conv = ConversationRow::load(conn, owner, id)?;
    mark_row(conn, owner, conv.no, id.as_str())?;
    Ok(conv.no)
}

fn mark_row(conn: &Connection, owner: &Owner, no: u32, id: &str) -> Result<(), RowError> {
    // In one transaction with the removal of the row, so that a crash leaves no rows that nothing
    // finds.
    conn.prepare_cached("INSERT INTO deletions VALUES (?, ?, ?)")?
        .execute(params![no, owner.as_str(), id])?;
    conn.prepare_cached("DELETE FROM conversations WHERE no = ?")?
        .execute([no])?;
    Ok(())
}

/// Takes one step of any unfinished deletion.
pub(crate) fn take_pending_step(conn: &Connection) -> Result<DeletionStep, RowError> {
    let pending: Option<u32> = conn
        .prepare_cached("SELECT conversation_no FROM deletions LIMIT 1")?
        .query_row([], |row| row.get(0))
        .optional()?;
    let Some(no) = pending else {
        return Ok(DeletionStep {
            entries: 0,
            more: false,
        });
    };
    delete_step(conn, no)?;
    Ok(DeletionStep {
        entries: 0,
        more: true,
    })
}

/// Takes one step of deleting the rows of a conversation.
pub(crate) fn delete_step(conn: &Connection, no: u32) -> Result<DeletionStep, RowError> {
    let names: Option<(String, String)> = conn
        .prepare_cached("SELECT owner, id FROM deletions WHERE conversation_no = ?")?
        .query_row([no], |row| Ok((row.get(0)?, row.get(1)?)))
        .optional()?;
    let Some((owner, id)) = names else {
        return Ok(DeletionStep {
            entries: 0,
            more: false,
        });
    };
    let mut budget = DeletionBudget::for_step();
    // First, because a new conversation with the same id would see them.
    let entries = budget.delete_rows(
        conn,
        "key_values",
        "no",
        "length(value)",
        "owner = ? AND scope_kind = 2 AND scope = ?",
        &[&owner, &id],
    )?;
    budget.forget_calls(conn, &owner, no)?;
    delete_conversation_rows(conn, no, &mut budget)?;
    // The entry is removed by the step that finishes within its budget.
    let more = budget.is_spent();
    if !more {
        conn.prepare_cached("DELETE FROM deletions WHERE conversation_no = ?")?
            .execute([no])?;
    }
    Ok(DeletionStep { entries, more })
}

/// Deletes rows of a conversation from all its tables, as far as the budget reaches.
fn delete_conversation_rows(
    conn: &Connection,
    no: u32,
    budget: &mut DeletionBudget,
) -> Result<(), RowError> {
    // Once the budget is spent, every further call returns at once; the next step does the rest.
    let (first, last) = key_range(no);
    for (table, size) in BY_KEY {
        budget.delete_rows(
            conn,
            table,
            "id",
            size,
            "id BETWEEN ? AND ?",
            &[&first, &last],
        )?;
    }
    for (table, key, size) in BY_COLUMN {
        budget.delete_rows(conn, table, key, size, "conversation_no = ?", &[&no])?;
    }
    Ok(())
}

/// Takes one step of erasing everything of an owner or a resource.
pub(crate) fn erase_step(
    conn: &Connection,
    owner: &Owner,
    scope: &EraseScope,
) -> Result<Erased, RowError> {
    let pending: Option<u32> = conn
        .prepare_cached("SELECT conversation_no FROM deletions WHERE owner = ? LIMIT 1")?
        .query_row([owner.as_str()], |row| row.get(0))
        .optional()?;
    if let Some(no) = pending {
        return Ok(Erased {
            conversations: 0,
            entries: delete_step(conn, no)?.entries,
            more: true,
        });
    }
    // All conversations are hidden before values are removed, so that they become unreadable early.
    let conversations = hide_conversations(conn, owner, scope)?;
    if conversations > 0 {
        return Ok(Erased {
            conversations,
            entries: 0,
            more: true,
        });
    }
    delete_entries(conn, owner, scope)
}

/// Deletes values of an owner or a resource, once it has no conversations left.
fn delete_entries(
    conn: &Connection,
    owner: &Owner,
    scope: &EraseScope,
) -> Result<Erased, RowError> {
    let mut budget = DeletionBudget::for_step();
    let owner = owner.as_str();
    let (condition, bound): (&str, Vec<&dyn ToSql>) = match scope {
        EraseScope::Owner => ("owner = ?", vec![&owner]),
        EraseScope::Resource(name) => (
            "owner = ? AND scope_kind = 1 AND scope = ?",
            vec![&owner, name],
        ),
    };
    let entries =
        budget.delete_rows(conn, "key_values", "no", "length(value)", condition, &bound)?;
    if *scope == EraseScope::Owner {
        // Those of a resource stay: deletion has taken its conversations' numbers from them.
        let key = "owner, id";
        budget.delete_rows(conn, "calls", key, "length(details)", condition, &bound)?;
        let key = "owner, hour, outcome, upstream, model, key_name, policy, conversation_no";
        budget.delete_rows(conn, "call_sums", key, "0", condition, &bound)?;
    }
    Ok(Erased {
        conversations: 0,
        entries,
        more: budget.is_spent(),
    })
}

fn hide_conversations(
    conn: &Connection,
    owner: &Owner,
    scope: &EraseScope,
) -> Result<u64, RowError> {
    let (condition, resource) = match scope {
        EraseScope::Owner => ("", None),
        EraseScope::Resource(name) => ("AND resource = ?3", Some(name)),
    };
    let sql = format!("SELECT no, id FROM conversations WHERE owner = ?1 {condition} LIMIT ?2");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut bound: Vec<&dyn ToSql> = Vec::new();
    let text = owner.as_str();
    bound.extend([&text as &dyn ToSql, &STEP_CONVERSATIONS]);
    bound.extend(resource.map(|name| name as &dyn ToSql));
    let found = statement
        .query_map(bound.as_slice(), |row| Ok((row.get(0)?, row.get(1)?)))?
        .collect::<Result<Vec<(u32, String)>, _>>()?;
    for (no, id) in &found {
        mark_row(conn, owner, *no, id)?;
    }
    Ok(found.len() as u64)
}

/// Rows and bytes that a step may still remove.
struct DeletionBudget {
    rows: usize,
    bytes: i64,
}

impl DeletionBudget {
    fn for_step() -> Self {
        Self {
            rows: STEP_ROWS,
            bytes: STEP_BYTES,
        }
    }

    /// Returns whether rows may be left. After a step that ends exactly at its limit, the next one
    /// may find nothing.
    fn is_spent(&self) -> bool {
        self.rows == 0 || self.bytes <= 0
    }

    /// Takes a conversation's number from its calls and sums within the budget.
    fn forget_calls(&mut self, conn: &Connection, owner: &str, no: u32) -> Result<(), RowError> {
        let owner = Owner::new(owner).map_err(|error| corrupt_error(error.to_string()))?;
        while !self.is_spent() {
            let changed = calls::forget_conversation(conn, &owner, no, self.rows)?;
            self.rows = self.rows.saturating_sub(changed);
            if changed == 0 {
                break;
            }
        }
        Ok(())
    }

    /// Deletes rows of `table` within the budget; returns their number. The last row may exceed the
    /// byte budget, so that a row of any size can be deleted.
    fn delete_rows(
        &mut self,
        conn: &Connection,
        table: &str,
        key: &str,
        size: &str,
        condition: &str,
        bound: &[&dyn ToSql],
    ) -> Result<u64, RowError> {
        if self.is_spent() {
            return Ok(0);
        }
        // Sizes are read first, so that one step cannot write gigabytes to the log; a LIMIT alone
        // bounds only the rows.
        let sql = format!("SELECT {size} FROM {table} WHERE {condition} ORDER BY {key} LIMIT ?");
        let mut all: Vec<&dyn ToSql> = bound.to_vec();
        let limit = i64::try_from(self.rows).unwrap_or(i64::MAX);
        all.push(&limit);
        let count = self.spend_bytes(conn, &sql, &all)?;
        if count == 0 {
            return Ok(0);
        }
        all.pop();
        all.push(&count);
        let sql = format!(
            "DELETE FROM {table} WHERE ({key}) IN \
             (SELECT {key} FROM {table} WHERE {condition} ORDER BY {key} LIMIT ?)"
        );
        let deleted = conn.prepare_cached(&sql)?.execute(all.as_slice())?;
        self.rows = self.rows.saturating_sub(deleted);
        Ok(deleted as u64)
    }

    /// Subtracts the sizes that `sql` reads from the budget; returns the number of rows read.
    fn spend_bytes(
        &mut self,
        conn: &Connection,
        sql: &str,
        bound: &[&dyn ToSql],
    ) -> Result<i64, RowError> {
        let mut statement = conn.prepare_cached(sql)?;
        let mut rows = statement.query(bound)?;
        let mut count = 0;
        while self.bytes > 0
            && let Some(row) = rows.next()?
        {
            count += 1;
            self.bytes -= row.get::<_, Option<i64>>(0)?.unwrap_or(0);
        }
        Ok(count)
    }
}
