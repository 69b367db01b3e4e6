//! Conversations: creates, loads, lists and updates their records.

use contexture_ir::{BranchName, ConversationId, Owner, Raw};
use contexture_store::{
    Conversation, ConversationCursor, ConversationPage, ConversationUpdate, EntityKind, Error,
    EventKind, Limits, ListConversations, Metadata, NewConversation, TitleChange, rules,
};
use futures_util::future::try_join;
use tokio_postgres::Row;

use self::filter::ListCondition;
use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{Bytea, get_column, get_count, params};
use crate::connection::transaction::Tx;
use crate::maintenance::deletion::{self, PendingDeletion};
use crate::refs::branch;
use crate::rows::conversation_row::{ConversationKey, ConversationRow, next_number};
use crate::rows::event;
use crate::rows::path::Tip;
use crate::search::index;

pub(crate) mod filter;
pub(crate) mod list_index;

/// The columns that [`decode_record`] reads.
macro_rules! columns {
    () => {
        "c.id, d.title, d.resource, d.metadata, b.name, c.version, c.nodes, c.branches, \
         b.messages, c.created_ms, c.updated_ms, c.next_event"
    };
}

macro_rules! joined {
    () => {
        "JOIN contexture.branches b \
         ON b.conversation = c.conversation AND b.branch = c.active_branch \
         JOIN contexture.details d ON d.conversation = c.conversation"
    };
}

/// Creates a conversation with its branch `main`, or returns the unfinished deletion of an earlier
/// one with this id, which has to be finished first.
pub(crate) async fn create_conversation(
    tx: &mut Tx<'_>,
    owner: &Owner,
    new: &NewConversation,
) -> Result<Result<Conversation, PendingDeletion>, RowError> {
    let key = ConversationKey::of(owner, &new.id).into_bytes();
    let existing = tx.query_row(
        "SELECT FROM contexture.conversations WHERE conversation = $1",
        params![key],
    );
    // Checked before anything is written: the id may be in use, or rows of a deleted conversation
    // may be left, which the new one would inherit.
    let (existing, pending) =
        try_join(existing, deletion::find_pending_by_id(tx, owner, &new.id)).await?;
    if existing.is_some() {
        return Err(Error::already_exists(EntityKind::Conversation, &new.id).into());
    }
    // The caller removes these rows in transactions of their own and tries again; removing them
    // here would hold locks for long.
    if let Some(pending) = pending {
        return Ok(Err(pending));
    }
    let at_ms = new.created_ms;
    insert_rows(tx, key, owner, new)?;
    filter::save_attributes(tx, owner, key, &new.metadata);
    branch::insert_branch(tx, key, 1, &BranchName::main(), &Tip::default(), at_ms);
    let mut conv = first_row(key, owner, new);
    event::record_event(tx, &mut conv, at_ms, &EventKind::Created);
    conv.save(tx);
    Ok(Ok(first_record(owner, new)))
}

/// Returns the row of a conversation that has only its branch `main`.
fn first_row(key: [u8; 16], owner: &Owner, new: &NewConversation) -> ConversationRow {
    ConversationRow {
        key,
        owner: owner.clone(),
        id: new.id.clone(),
        active_branch: 1,
        version: 1,
        nodes: 0,
        branches: 1,
        next_segment: 1,
        next_branch: 2,
        next_root: 1,
        next_event: 1,
        updated_ms: new.created_ms,
    }
}

/// Returns the record of a conversation that was just created.
fn first_record(owner: &Owner, new: &NewConversation) -> Conversation {
    Conversation {
        owner: owner.clone(),
        id: new.id.clone(),
        title: new.title.clone(),
        resource: new.resource.clone(),
        metadata: new.metadata.clone(),
        active: BranchName::main(),
        version: 1,
        nodes: 0,
        branches: 1,
        messages: 0,
        events: 1,
        created_ms: new.created_ms,
        updated_ms: new.created_ms,
    }
}

/// Inserts the rows of a conversation: its counters, its details and its listing.
fn insert_rows(
    tx: &mut Tx<'_>,
    key: [u8; 16],
    owner: &Owner,
    new: &NewConversation,
) -> Result<(), RowError> {
    let at_ms = new.created_ms;
    // Concurrent inserts of one id collide on the primary key, and one of the transactions is
    // retried.
    tx.execute_on_commit(
        "INSERT INTO contexture.conversations (conversation, owner, id, version, active_branch, \
         nodes, branches, next_segment, next_branch, next_root, next_event, writes, created_ms, \
         updated_ms) VALUES ($1, $2, $3, 1, 1, 0, 1, 1, 2, 1, 1, 0, $4, $4)",
        params![key, owner.as_str(), new.id.as_str(), at_ms],
    );
    tx.execute_on_commit(
        "INSERT INTO contexture.details (conversation, title, resource, metadata, title_terms) \
         VALUES ($1, $2, $3, $4, array_to_tsvector(string_to_array($5, ' ')))",
        params![
            key,
            text_column(new.title.as_deref()),
            text_column(new.resource.as_deref()),
            metadata_json(&new.metadata)?,
            new.title
                .as_deref()
                .map(|title| rules::title_terms(owner, title))
        ],
    );
    tx.execute_on_commit(
        // Listings are keyed by owner, the tree's tables by conversation: a list is one range of an
        // index even where conversations are spread over machines.
        "INSERT INTO contexture.listings (owner, id, conversation, resource, updated_ms, \
         terms_version) VALUES ($1, $2, $3, $4, $5, $6)",
        params![
            owner.as_str(),
            new.id.as_str(),
            key,
            text_column(new.resource.as_deref()),
            at_ms,
            index::TERMS_COLUMN_VERSION
        ],
    );
    Ok(())
}

fn text_column(text: Option<&str>) -> Option<Bytea> {
    text.map(|text| Bytea::Text(text.into()))
}

/// Reads the record of a conversation.
pub(crate) async fn load_conversation(
    tx: &Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Conversation, RowError> {
    let row = tx
        .query_row(
            concat!(
                "SELECT ",
                columns!(),
                " FROM contexture.conversations c ",
                joined!(),
                " WHERE c.conversation = $1"
            ),
            params![ConversationKey::of(owner, id).into_bytes()],
        )
        .await?;
    let row = row.ok_or_else(|| Error::not_found(EntityKind::Conversation, id))?;
    decode_record(owner, &row)
}

/// Number of rows to read at once when titles are compared.
const TITLE_PAGE: usize = 500;

/// Lists the owner's records, most recently updated first. Titles are compared here and not by the
/// server, whose lower case depends on its locale; so pages are read until enough rows match.
pub(crate) async fn list_conversations(
    tx: &Tx<'_>,
    owner: &Owner,
    list: &ListConversations,
    limits: &Limits,
) -> Result<ConversationPage, RowError> {
    let limit = list.limit.unwrap_or(100);
    let proposed = list_index::propose_conversations(tx, owner, list).await?;
    let stop = match proposed.is_none() && list.has_conditions() {
        true => find_scan_end(tx, owner, list, limits.list_scan).await?,
        false => None,
    };
    let range = ListedRange {
        proposed: proposed.as_deref(),
        stop: stop.as_ref(),
    };
    let found = collect_listed(tx, owner, list, &range, limit).await?;
    Ok(ConversationPage::new(found, limit, stop))
}

/// Reads pages of rows until more than `limit` satisfy the list, or all are read.
async fn collect_listed(
    tx: &Tx<'_>,
    owner: &Owner,
    list: &ListConversations,
    range: &ListedRange<'_>,
    limit: usize,
) -> Result<Vec<Conversation>, RowError> {
    // One extra row shows that there is a next page.
    let mut fetch = limit.saturating_add(1);
    if list.title.is_some() {
        // Many rows may be skipped; larger pages save round trips.
        fetch = fetch.max(TITLE_PAGE);
    }
    let mut after = list.after.clone();
    let mut found: Vec<Conversation> = Vec::new();
    loop {
        let rows = query_page(tx, owner, list, range, after.as_ref(), fetch).await?;
        for row in &rows {
            let record = decode_record(owner, row)?;
            after = ConversationCursor::after_last(std::slice::from_ref(&record));
            let title = list.title.as_deref();
            if title.is_none_or(|text| rules::title_contains(record.title.as_deref(), text)) {
                found.push(record);
            }
        }
        if rows.len() < fetch || found.len() > limit {
            break;
        }
    }
    Ok(found)
}

/// The conversations that a list chooses from.
struct ListedRange<'a> {
    /// Those that an index proposes; `None` for all of the owner's.
    proposed: Option<&'a [[u8; 16]]>,
    /// The last that is looked at; `None` for the last of all.
    stop: Option<&'a ConversationCursor>,
}

/// Returns the last conversation that a page looks at whose conditions no index knows; `None` if there are not so many. The
/// index by time has all that it needs.
async fn find_scan_end(
    tx: &Tx<'_>,
    owner: &Owner,
    list: &ListConversations,
    scan: usize,
) -> Result<Option<ConversationCursor>, RowError> {
    let mut condition = ListCondition::from_list(owner, &list.without_conditions());
    if let Some(after) = &list.after {
        condition.push_after(after);
    }
    condition.push_comparison(
        " ORDER BY l.updated_ms DESC, l.id LIMIT 2 OFFSET ",
        i64::try_from(scan.max(1)).unwrap_or(i64::MAX) - 1,
    );
    let sql = format!(
        "SELECT l.updated_ms, l.id FROM contexture.listings l WHERE l.owner = $1{}",
        condition.sql
    );
    let rows = tx.query_rows(&sql, condition.bound).await?;
    // The last of all is no stop.
    let [row, _] = rows.as_slice() else {
        return Ok(None);
    };
    let id = ConversationId::new(get_column::<&str>(row, 1)?);
    Ok(Some(ConversationCursor {
        updated_ms: get_column(row, 0)?,
        id: id.map_err(|error| corrupt_error(error.to_string()))?,
    }))
}

async fn query_page(
    tx: &Tx<'_>,
    owner: &Owner,
    list: &ListConversations,
    range: &ListedRange<'_>,
    after: Option<&ConversationCursor>,
    fetch: usize,
) -> Result<Vec<Row>, RowError> {
    let mut condition = ListCondition::from_list(owner, list);
    if let Some(proposed) = range.proposed {
        condition.push_comparison(" AND c.conversation = ANY (", proposed.to_vec());
        condition.sql.push(')');
    }
    if let Some(stop) = range.stop {
        condition.push_end(stop);
    }
    if let Some(after) = after {
        condition.push_after(after);
    }
    condition.push_comparison(
        " ORDER BY l.updated_ms DESC, l.id LIMIT ",
        i64::try_from(fetch).unwrap_or(i64::MAX),
    );
    // A CASE, because the planner would take three comparisons for three conditions, expect next to no rows, and read all of
    // the owner's conversations for a page of them.
    let sql = format!(
        concat!(
            "SELECT ",
            columns!(),
            " FROM contexture.listings l \
             JOIN contexture.conversations c ON c.conversation = l.conversation \
             AND CASE WHEN c.owner = l.owner THEN c.id = l.id ELSE false END ",
            joined!(),
            " WHERE l.owner = $1{}"
        ),
        condition.sql
    );
    tx.query_rows(&sql, condition.bound).await
}

fn decode_record(owner: &Owner, row: &Row) -> Result<Conversation, RowError> {
    let id = ConversationId::new(get_column::<&str>(row, 0)?);
    let id = id.map_err(|error| corrupt_error(error.to_string()))?;
    let damaged = |what, why: String| Error::damaged(&id, what, "its record", why);
    let text = |index, what| -> Result<Option<String>, RowError> {
        let bytes: Option<&[u8]> = get_column(row, index)?;
        let text = bytes.map(std::str::from_utf8).transpose();
        let text = text.map_err(|error| damaged(what, error.to_string()))?;
        Ok(text.map(str::to_owned))
    };
    let metadata: std::collections::BTreeMap<String, Raw> =
        serde_json::from_slice(get_column(row, 3)?)
            .map_err(|error| damaged("metadata", error.to_string()))?;
    let active = BranchName::new(get_column::<&str>(row, 4)?);
    Ok(Conversation {
        owner: owner.clone(),
        title: text(1, "title")?,
        resource: text(2, "resource")?,
        metadata,
        active: active.map_err(|error| damaged("branch", error.to_string()))?,
        version: get_count(row, 5)?,
        nodes: get_count(row, 6)?,
        branches: get_count(row, 7)?,
        messages: get_count(row, 8)?,
        created_ms: get_column(row, 9)?,
        updated_ms: get_column(row, 10)?,
        events: get_count(row, 11)?.saturating_sub(1),
        id,
    })
}

/// Applies an update.
pub(crate) async fn update_conversation(
    tx: &mut Tx<'_>,
    owner: &Owner,
    id: &ConversationId,
    update: &ConversationUpdate,
    limits: &Limits,
) -> Result<Conversation, RowError> {
    let (mut conv, mut now) = try_join(
        ConversationRow::load_for_update(tx, owner, id),
        load_conversation(tx, owner, id),
    )
    .await?;
    rules::check_update(id, now.version, update, limits)?;
    let metadata = rules::merge_metadata(&now.metadata, update.metadata.clone(), limits)?;
    if metadata != now.metadata {
        filter::save_attributes(tx, owner, conv.key, &metadata);
        now.metadata = metadata;
    }
    if let TitleChange::Set(title) = &update.title {
        now.title.clone_from(title);
    }
    tx.execute_on_commit(
        "UPDATE contexture.details SET title = $2, metadata = $3, \
         title_terms = array_to_tsvector(string_to_array($4, ' ')) WHERE conversation = $1",
        params![
            conv.key,
            text_column(now.title.as_deref()),
            metadata_json(&now.metadata)?,
            now.title
                .as_deref()
                .map(|title| rules::title_terms(owner, title))
        ],
    );
    next_number(&mut conv.version, 1, "updates")?;
    event::record_event(tx, &mut conv, update.at_ms, &EventKind::Updated);
    conv.save(tx);
    now.version += 1;
    now.events += 1;
    now.updated_ms = update.at_ms;
    Ok(now)
}

fn metadata_json(metadata: &Metadata) -> Result<Bytea, Error> {
    let json = serde_json::to_vec(metadata);
    let json = json.map_err(|error| Error::invalid_argument("metadata", error.to_string()))?;
    Ok(Bytea::Own(json))
}
