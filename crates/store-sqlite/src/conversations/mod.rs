//! Conversations: creates, loads, lists and updates their records.

use contexture_ir::{BranchName, ConversationId, Owner};
use contexture_store::{
    Conversation, ConversationCursor, ConversationPage, ConversationUpdate, EntityKind, Error,
    EventKind, Limits, ListConversations, Metadata, NewConversation, TitleChange, rules,
};
use rusqlite::{Connection, Row, params, params_from_iter};

use crate::conversations::filter::{ListCondition, parse_metadata, save_attributes};
use crate::conversations::list_index::index_title;
use crate::error::{RowError, corrupt_error};
use crate::refs::branch;
use crate::rows::conversation_row::{ConversationRow, next_number};
use crate::rows::event;

pub(crate) mod filter;
pub(crate) mod list_index;

/// Conversation numbers are the upper half of a positive 64-bit key.
const MAX_CONVERSATIONS: i64 = (1 << 31) - 1;

/// Creates a conversation with its branch `main`.
pub(crate) fn create_conversation(
    conn: &Connection,
    owner: &Owner,
    new: &NewConversation,
) -> Result<Conversation, RowError> {
    let exists = conn
        .prepare_cached("SELECT 1 FROM conversations WHERE owner = ? AND id = ?")?
        .exists([owner.as_str(), new.id.as_str()])?;
    if exists {
        return Err(Error::already_exists(EntityKind::Conversation, &new.id).into());
    }
    // Values in a conversation's scope are found by its id, so a new conversation would see those
    // of a deleted one until they are removed.
    check_free(conn, owner, new.id.as_str())?;
    conn.prepare_cached(
        "INSERT INTO conversations (owner, id, resource, title, version, active_branch, nodes, \
         branches, next_seq, next_segment, next_branch, next_root, next_event, created_ms, \
         updated_ms) VALUES (?, ?, ?, ?, 1, 1, 0, 1, 1, 1, 2, 1, 1, ?5, ?5)",
    )?
    .execute(params![
        owner.as_str(),
        new.id.as_str(),
        new.resource,
        new.title,
        new.created_ms
    ])?;
    // The number is the upper half of the keys of all rows. On an error the inserted row is rolled
    // back.
    if conn.last_insert_rowid() > MAX_CONVERSATIONS {
        return Err(Error::Limit {
            limit: "conversations",
            max: MAX_CONVERSATIONS as u64,
            actual: conn.last_insert_rowid() as u64,
        }
        .into());
    }
    let mut conv = ConversationRow::load(conn, owner, &new.id)?;
    branch::insert_main(conn, conv.no, new.created_ms)?;
    save_metadata(conn, owner, conv.no, &new.metadata)?;
    index_title(conn, owner, conv.no, new.title.as_deref())?;
    event::record_event(conn, &mut conv, new.created_ms, &EventKind::Created)?;
    conv.save(conn)?;
    load_conversation(conn, owner, &new.id)
}

const COLUMNS: &str = "SELECT c.id, c.title, c.resource, m.metadata, b.name, c.version, c.nodes, \
     c.branches, b.messages, c.created_ms, c.updated_ms, c.next_event";

/// What a record has besides the row of its conversation.
const JOINED: &str = "JOIN branches b ON b.id = (c.no << 32 | c.active_branch) \
     LEFT JOIN metadata m ON m.conversation_no = c.no ";

/// Reads the record of a conversation.
pub(crate) fn load_conversation(
    conn: &Connection,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Conversation, RowError> {
    let sql = format!("{COLUMNS} FROM conversations c {JOINED} WHERE c.owner = ? AND c.id = ?");
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query([owner.as_str(), id.as_str()])?;
    match rows.next()? {
        Some(row) => decode_record(owner, row),
        None => Err(Error::not_found(EntityKind::Conversation, id).into()),
    }
}

/// Returns the statement that lists the conversations of a condition, most recently updated first: all of the owner's, or
/// those of a query for their numbers.
pub(crate) fn list_sql(condition: &ListCondition, proposed: Option<&ListCondition>) -> String {
    let from = match proposed {
        // A cross join is read from left to right; otherwise each of the owner's conversations might
        // be looked up in the query.
        Some(query) => format!(
            "({}) p CROSS JOIN conversations c ON c.no = p.no",
            query.sql
        ),
        None => "conversations c".to_owned(),
    };
    format!(
        "{COLUMNS} FROM {from} {JOINED} WHERE {} ORDER BY c.updated_ms DESC, c.id",
        condition.sql
    )
}

/// Lists the owner's records, most recently updated first. Rows are read one by one until the page
/// is full, and titles are compared here, because SQLite ignores case in ASCII only.
pub(crate) fn list_conversations(
    conn: &Connection,
    owner: &Owner,
    list: &ListConversations,
    limits: &Limits,
) -> Result<ConversationPage, RowError> {
    let limit = list.limit.unwrap_or(100);
    let mut condition = ListCondition::from_list(owner, list);
    let proposed = list_index::propose_conversations(conn, owner, list)?;
    let stop = match proposed.is_none() && list.has_conditions() {
        true => find_scan_end(conn, owner, list, limits.list_scan)?,
        false => None,
    };
    if let Some(stop) = &stop {
        condition.push_end(stop);
    }
    let mut statement = conn.prepare_cached(&list_sql(&condition, proposed.as_ref()))?;
    let bound = proposed.iter().flat_map(|query| &query.bound);
    let mut rows = statement.query(params_from_iter(bound.chain(&condition.bound)))?;
    let mut conversations = Vec::new();
    while let Some(row) = rows.next()? {
        if let Some(text) = &list.title {
            let title: Option<String> = row.get(1)?;
            // Compared before the record is decoded: most rows of a filtered list are skipped.
            if !rules::title_contains(title.as_deref(), text) {
                continue;
            }
        }
        conversations.push(decode_record(owner, row)?);
        // One extra row shows that there is a next page, without counting.
        if conversations.len() > limit {
            break;
        }
    }
    Ok(ConversationPage::new(conversations, limit, stop))
}

/// Returns the last conversation that one page looks at when no index narrows the conditions; `None` if the list ends before
/// that. Only the index by time is read.
fn find_scan_end(
    conn: &Connection,
    owner: &Owner,
    list: &ListConversations,
    scan: usize,
) -> Result<Option<ConversationCursor>, RowError> {
    let mut condition = ListCondition::from_list(owner, &list.without_conditions());
    let scan = scan.max(1);
    let read = i64::try_from(scan).unwrap_or(i64::MAX - 1) + 1;
    condition.push_sql("", [read.into()]);
    let mut statement = conn.prepare_cached(&scan_end_sql(&condition))?;
    let mut rows = statement.query(params_from_iter(&condition.bound))?;
    for _ in 1..scan {
        if rows.next()?.is_none() {
            return Ok(None);
        }
    }
    let Some(row) = rows.next()? else {
        return Ok(None);
    };
    let id: String = row.get(1)?;
    let end = ConversationCursor {
        updated_ms: row.get(0)?,
        id: ConversationId::new(&id).map_err(|error| corrupt_error(error.to_string()))?,
    };
    // The last of all is no stop.
    Ok(rows.next()?.map(|_| end))
}

/// Returns the statement for the times and ids of so many conversations.
pub(crate) fn scan_end_sql(condition: &ListCondition) -> String {
    format!(
        "SELECT c.updated_ms, c.id FROM conversations c WHERE {} \
         ORDER BY c.updated_ms DESC, c.id LIMIT ?",
        condition.sql
    )
}

fn decode_record(owner: &Owner, row: &Row<'_>) -> Result<Conversation, RowError> {
    let id: String = row.get(0)?;
    let id = ConversationId::new(&id).map_err(|error| corrupt_error(error.to_string()))?;
    let damaged = |what, why: String| Error::damaged(&id, what, "its record", why);
    let metadata: Option<Vec<u8>> = row.get(3)?;
    let name: String = row.get(4)?;
    Ok(Conversation {
        owner: owner.clone(),
        title: row.get(1)?,
        resource: row.get(2)?,
        metadata: parse_metadata(metadata.as_deref()).map_err(|why| damaged("metadata", why))?,
        active: BranchName::new(name).map_err(|error| damaged("branch", error.to_string()))?,
        version: u64::from(row.get::<_, u32>(5)?),
        nodes: u64::from(row.get::<_, u32>(6)?),
        branches: u64::from(row.get::<_, u32>(7)?),
        messages: u64::from(row.get::<_, u32>(8)?),
        created_ms: row.get(9)?,
        updated_ms: row.get(10)?,
        events: u64::from(row.get::<_, u32>(11)?).saturating_sub(1),
        id,
    })
}

/// Applies an update.
pub(crate) fn update_conversation(
    conn: &Connection,
    owner: &Owner,
    id: &ConversationId,
    update: ConversationUpdate,
    limits: &Limits,
) -> Result<Conversation, RowError> {
    let mut conv = ConversationRow::load(conn, owner, id)?;
    rules::check_update(id, u64::from(conv.version), &update, limits)?;
    let at_ms = update.at_ms;
    let stored = load_conversation(conn, owner, id)?.metadata;
    let metadata = rules::merge_metadata(&stored, update.metadata, limits)?;
    // Writing equal metadata would rewrite all its attributes, which are rows of their own.
    if metadata != stored {
        save_metadata(conn, owner, conv.no, &metadata)?;
    }
    if let TitleChange::Set(title) = update.title {
        conn.prepare_cached("UPDATE conversations SET title = ? WHERE no = ?")?
            .execute(params![title, conv.no])?;
        index_title(conn, owner, conv.no, title.as_deref())?;
    }
    next_number(&mut conv.version, 1, "updates")?;
    event::record_event(conn, &mut conv, at_ms, &EventKind::Updated)?;
    conv.save(conn)?;
    load_conversation(conn, owner, id)
}

fn save_metadata(
    conn: &Connection,
    owner: &Owner,
    no: u32,
    metadata: &Metadata,
) -> Result<(), RowError> {
    // Attributes are the metadata fields that filters can test, one row each, so that a filter need
    // not parse the JSON of every conversation.
    save_attributes(conn, owner, no, metadata)?;
    if metadata.is_empty() {
        conn.prepare_cached("DELETE FROM metadata WHERE conversation_no = ?")?
            .execute([no])?;
        return Ok(());
    }
    let json = serde_json::to_vec(metadata)
        .map_err(|error| Error::invalid_argument("metadata", error.to_string()))?;
    conn.prepare_cached("INSERT OR REPLACE INTO metadata VALUES (?, ?)")?
        .execute(params![no, json])?;
    Ok(())
}

/// Refuses to create a conversation while the rows of a deleted one with the same id are being
/// removed.
fn check_free(conn: &Connection, owner: &Owner, id: &str) -> Result<(), RowError> {
    let pending = conn
        .prepare_cached("SELECT 1 FROM deletions WHERE owner = ? AND id = ?")?
        .exists([owner.as_str(), id])?;
    if pending {
        return Err(Error::Busy {
            why: format!("an earlier conversation {id:?} is still being deleted"),
        }
        .into());
    }
    Ok(())
}
