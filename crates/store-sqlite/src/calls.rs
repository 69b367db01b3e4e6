//! The record of calls as rows, and their sums.
//!
//! Not here: the calls of the contract (`store`), what a call adds to a sum (`contexture_store::rules`).

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use contexture_ir::{CallId, ContentHash, ConversationId, Owner, ResponseId};
use contexture_store::rules::{self, CallKey, CallTotals, SUM_COLUMNS};
use contexture_store::{
    CallFilter, CallGroup, CallGrouping, CallNames, CallOrder, CallOutcome, CallPage, CallRecord,
    CallSum, ConversationCalls, Limits, ListCalls, SumCalls, SweepCalls, SweptCalls,
};
use rusqlite::{Connection, OptionalExtension as _, Row, ToSql, params};

use crate::error::{RowError, corrupt_error};

/// Largest number of rows that one step puts into sums, removes or changes.
const STEP_ROWS: u32 = 1000;

/// The columns of a call that [`decode_call`] reads.
const CALL_COLUMNS: &str = "k.id, k.outcome, k.upstream, k.model, k.key_name, k.policy, c.id, \
     k.conversation_no, k.response_id, k.body_hash, k.details, k.band";

/// What a filter asks of a call or of a roll-up, which have the same names for it. Parameters 1 to 3 are the owner and the
/// range.
const NAMED: &str = "AND (?4 IS NULL OR upstream = ?4) AND (?5 IS NULL OR model = ?5) \
     AND (?6 IS NULL OR key_name = ?6) AND (?7 IS NULL OR policy = ?7) \
     AND (?8 IS NULL OR outcome = ?8)";

/// Number of a conversation among the owner's.
const CONVERSATION_NO: &str = "SELECT no FROM conversations WHERE owner = ? AND id = ?";

/// The query for calls of an owner, or of a conversation, by their ids.
pub(crate) fn list_sql(order: CallOrder, of_conversation: bool) -> String {
    let order = match order {
        CallOrder::NewestFirst => "DESC",
        CallOrder::OldestFirst => "ASC",
    };
    // The plus keeps SQLite from going through all calls of the owner.
    let (plus, condition) = match of_conversation {
        true => (
            "+",
            "AND k.conversation_no = ?10 AND k.conversation_no <> 0",
        ),
        false => ("", ""),
    };
    format!(
        "SELECT {CALL_COLUMNS} FROM calls k LEFT JOIN conversations c ON c.no = k.conversation_no \
         WHERE {plus}k.owner = ?1 AND k.id >= ?2 AND k.id < ?3 {NAMED} {condition} \
         ORDER BY k.id {order} LIMIT ?9"
    )
}

/// Reads the calls that are in no sum yet.
pub(crate) static OPEN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {CALL_COLUMNS} FROM calls k INDEXED BY calls_open \
         LEFT JOIN conversations c ON c.no = k.conversation_no \
         WHERE k.owner = ?1 AND k.open = 1 AND k.id >= ?2 AND k.id < ?3 {NAMED} \
         AND (?9 IS NULL OR k.conversation_no = ?9)"
    )
});

/// Adds to the sum of an hour. Sums stop at the end of their type.
static ADD_TO_SUM: LazyLock<String> = LazyLock::new(|| {
    let added = SUM_COLUMNS.map(|column| {
        format!(
            "{column} = CASE WHEN excluded.{column} > {0} - {column} THEN {0} \
             ELSE {column} + excluded.{column} END",
            i64::MAX
        )
    });
    let values = ", ?".repeat(7 + SUM_COLUMNS.len());
    format!(
        "INSERT INTO call_sums VALUES (?{values}) ON CONFLICT DO UPDATE SET {}",
        added.join(", ")
    )
});

/// Stores a call, unless its id is taken. `conversation_no` is 0 for none.
pub(crate) fn insert_call(
    conn: &Connection,
    owner: &Owner,
    conversation_no: u32,
    call: &CallRecord,
) -> Result<(), RowError> {
    let names = &call.names;
    conn.prepare_cached(
        "INSERT OR IGNORE INTO calls VALUES (?, ?, 1, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)",
    )?
    .execute(params![
        owner.as_str(),
        call.id.as_bytes(),
        call.outcome.code(),
        conversation_no,
        names.upstream,
        names.model,
        names.key,
        names.policy,
        call.response.as_ref().map(ResponseId::as_bytes),
        call.body_hash.as_ref().map(ContentHash::as_bytes),
        rules::encode_details(&call.details),
        call.band.as_deref(),
        // One of no conversation would go with no deletion.
        call.body.as_deref().filter(|_| conversation_no != 0),
    ])?;
    Ok(())
}

/// Stores calls that come with no append.
pub(crate) fn record_calls(
    conn: &Connection,
    owner: &Owner,
    calls: &[CallRecord],
) -> Result<(), RowError> {
    for call in calls {
        let no = match &call.conversation {
            Some(id) => find_conversation(conn, owner, id)?.unwrap_or(0),
            None => 0,
        };
        insert_call(conn, owner, no, call)?;
    }
    Ok(())
}

fn find_conversation(
    conn: &Connection,
    owner: &Owner,
    id: &ConversationId,
) -> Result<Option<u32>, RowError> {
    let mut statement = conn.prepare_cached(CONVERSATION_NO)?;
    let no = statement.query_row([owner.as_str(), id.as_str()], |row| row.get(0));
    Ok(no.optional()?)
}

/// Reads a call.
pub(crate) fn load_call(
    conn: &Connection,
    owner: &Owner,
    id: CallId,
) -> Result<Option<CallRecord>, RowError> {
    let mut statement = conn.prepare_cached(&format!(
        "SELECT {CALL_COLUMNS} FROM calls k LEFT JOIN conversations c ON c.no = k.conversation_no \
         WHERE k.owner = ?1 AND k.id = ?2"
    ))?;
    let mut rows = statement.query(params![owner.as_str(), id.as_bytes()])?;
    rows.next()?.map(decode_call).transpose()
}

/// Reads the body of a call. One whose conversation is being deleted has none any more.
pub(crate) fn load_body(
    conn: &Connection,
    owner: &Owner,
    id: CallId,
) -> Result<Option<Arc<[u8]>>, RowError> {
    let mut statement = conn.prepare_cached(
        "SELECT k.body FROM calls k JOIN conversations c ON c.no = k.conversation_no \
         WHERE k.owner = ?1 AND k.id = ?2 AND c.id IS NOT NULL",
    )?;
    let body: Option<Option<Vec<u8>>> = statement
        .query_row(params![owner.as_str(), id.as_bytes()], |row| row.get(0))
        .optional()?;
    Ok(body.flatten().map(Into::into))
}

/// Removes the bodies of a conversation's calls.
pub(crate) fn remove_bodies(conn: &Connection, conversation_no: u32) -> Result<(), RowError> {
    conn.prepare_cached(
        "UPDATE calls INDEXED BY bodies_by_conversation SET body = NULL \
         WHERE conversation_no = ? AND body IS NOT NULL",
    )?
    .execute([conversation_no])?;
    Ok(())
}

fn decode_call(row: &Row<'_>) -> Result<CallRecord, RowError> {
    let conversation: Option<String> = row.get(6)?;
    let conversation = conversation.map(ConversationId::new).transpose();
    let conversation = conversation.map_err(|error| corrupt_error(error.to_string()))?;
    // A conversation that is being deleted is hidden before its number is taken from all of its calls.
    let is_hidden = conversation.is_none() && row.get::<_, u32>(7)? != 0;
    let code = row.get(1)?;
    let outcome = CallOutcome::from_code(code);
    let details: Vec<u8> = row.get(10)?;
    let response: Option<[u8; 16]> = row.get(8)?;
    let body_hash: Option<[u8; 16]> = row.get(9)?;
    let band: Option<Vec<u8>> = row.get(11)?;
    Ok(CallRecord {
        id: CallId::from_bytes(row.get(0)?),
        outcome: outcome.ok_or_else(|| corrupt_error(format!("a call ended as {code}")))?,
        names: decode_names(row, 2)?,
        conversation,
        response: response.filter(|_| !is_hidden).map(ResponseId::from_bytes),
        body_hash: body_hash
            .filter(|_| !is_hidden)
            .map(ContentHash::from_bytes),
        details: rules::decode_details(&details).map_err(corrupt_error)?,
        band: band.filter(|_| !is_hidden).map(Into::into),
        body: None,
    })
}

fn decode_names(row: &Row<'_>, first: usize) -> rusqlite::Result<CallNames> {
    Ok(CallNames {
        upstream: row.get(first)?,
        model: row.get(first + 1)?,
        key: row.get(first + 2)?,
        policy: row.get(first + 3)?,
    })
}

/// The parameters of what a filter asks, behind the owner and the range.
fn named_parameters(filter: &CallFilter) -> [Box<dyn ToSql>; 5] {
    [
        Box::new(filter.upstream.clone()),
        Box::new(filter.model.clone()),
        Box::new(filter.key.clone()),
        Box::new(filter.policy.clone()),
        Box::new(filter.outcome.map(CallOutcome::code)),
    ]
}

/// The number of the conversation that a filter names; `Err` with nothing to find for an unknown one.
fn named_conversation(
    conn: &Connection,
    owner: &Owner,
    filter: &CallFilter,
) -> Result<Result<Option<u32>, ()>, RowError> {
    let Some(id) = &filter.conversation else {
        return Ok(Ok(None));
    };
    Ok(find_conversation(conn, owner, id)?.map(Some).ok_or(()))
}

/// Lists a page of an owner's calls.
pub(crate) fn list_calls(
    conn: &Connection,
    owner: &Owner,
    list: &ListCalls,
) -> Result<CallPage, RowError> {
    let Ok(conversation) = named_conversation(conn, owner, &list.filter)? else {
        return Ok(CallPage::default());
    };
    let limit = list.limit.unwrap_or(100);
    let (low, high) = rules::page_range(list);
    let (low, high) = (*low.as_bytes(), *high.as_bytes());
    let owner = owner.as_str();
    let named = named_parameters(&list.filter);
    // One more than the page has room for, to know whether there is a next one.
    let most = i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX);
    let mut bound: Vec<&dyn ToSql> = vec![&owner, &low, &high];
    bound.extend(named.iter().map(|parameter| &**parameter));
    bound.push(&most);
    bound.extend(conversation.as_ref().map(|no| no as &dyn ToSql));
    let sql = list_sql(list.order, conversation.is_some());
    let mut statement = conn.prepare_cached(&sql)?;
    let mut rows = statement.query(bound.as_slice())?;
    let mut calls = Vec::new();
    while let Some(row) = rows.next()? {
        calls.push(decode_call(row)?);
    }
    let more = calls.len() > limit;
    calls.truncate(limit);
    let next = calls.last().filter(|_| more).map(|call| call.id);
    Ok(CallPage { calls, next })
}

/// The query for sums of roll-ups, which reads of their names only what they are grouped by.
pub(crate) fn sum_sql(by: &[CallGrouping], of_conversation: bool) -> String {
    let key = |grouping, column: &'static str, none: &'static str| match by.contains(&grouping) {
        true => column,
        false => none,
    };
    let keys = [
        key(CallGrouping::Day, "hour / 24 * 24", "0"),
        key(CallGrouping::Outcome, "outcome", "0"),
        key(CallGrouping::Upstream, "upstream", "''"),
        key(CallGrouping::Model, "model", "''"),
        key(CallGrouping::Key, "key_name", "''"),
        key(CallGrouping::Policy, "policy", "''"),
        key(CallGrouping::Conversation, "coalesce(c.id, '')", "''"),
    ];
    // In two parts, because a sum beyond 2^63 would be an error.
    let sums = SUM_COLUMNS.map(|column| {
        format!("coalesce(sum({column} / 1000000), 0), coalesce(sum({column} % 1000000), 0)")
    });
    let (keys, sums) = (keys.join(", "), sums.join(", "));
    // The plus keeps SQLite from going through all sums of the owner.
    let (plus, condition) = match of_conversation {
        true => ("+", "AND s.conversation_no = ?9 AND s.conversation_no <> 0"),
        false => ("", ""),
    };
    format!(
        "SELECT {keys}, {sums} FROM call_sums s \
         LEFT JOIN conversations c ON c.no = s.conversation_no \
         WHERE {plus}s.owner = ?1 AND {plus}s.hour >= ?2 AND {plus}s.hour < ?3 {NAMED} {condition} \
         GROUP BY 1, 2, 3, 4, 5, 6, 7"
    )
}

/// Sums calls: those in roll-ups, and those in none yet.
pub(crate) fn sum_calls(
    conn: &Connection,
    owner: &Owner,
    sum: &SumCalls,
    limits: &Limits,
) -> Result<Vec<(CallGroup, CallSum)>, RowError> {
    let mut totals = CallTotals::new(&sum.by, limits);
    if let Ok(conversation) = named_conversation(conn, owner, &sum.filter)? {
        add_roll_ups(conn, owner, sum, conversation, &mut totals)?;
        add_open_calls(conn, owner, sum, conversation, &mut totals)?;
    }
    Ok(totals.into_groups())
}

fn add_roll_ups(
    conn: &Connection,
    owner: &Owner,
    sum: &SumCalls,
    conversation: Option<u32>,
    totals: &mut CallTotals<'_>,
) -> Result<(), RowError> {
    let (owner, (first, last)) = (owner.as_str(), rules::hour_range(&sum.filter));
    let named = named_parameters(&sum.filter);
    let mut bound: Vec<&dyn ToSql> = vec![&owner, &first, &last];
    bound.extend(named.iter().map(|parameter| &**parameter));
    bound.extend(conversation.as_ref().map(|no| no as &dyn ToSql));
    let mut statement = conn.prepare_cached(&sum_sql(&sum.by, conversation.is_some()))?;
    let mut rows = statement.query(bound.as_slice())?;
    while let Some(row) = rows.next()? {
        let halves = (0..SUM_COLUMNS.len()).map(|n| Ok((row.get(7 + 2 * n)?, row.get(8 + 2 * n)?)));
        let halves = halves.collect::<rusqlite::Result<Vec<(i64, i64)>>>()?;
        let conversation: String = row.get(6)?;
        let key = CallKey {
            hour: row.get(0)?,
            outcome: CallOutcome::from_code(row.get(1)?).unwrap_or_default(),
            names: decode_names(row, 2)?,
            conversation: conversation.as_str(),
        };
        totals.add_sum(key, &rules::sum_from_halves(&halves))?;
    }
    Ok(())
}

fn add_open_calls(
    conn: &Connection,
    owner: &Owner,
    sum: &SumCalls,
    conversation: Option<u32>,
    totals: &mut CallTotals<'_>,
) -> Result<(), RowError> {
    let (low, high) = rules::call_range(&sum.filter);
    let (low, high) = (*low.as_bytes(), *high.as_bytes());
    let owner = owner.as_str();
    let named = named_parameters(&sum.filter);
    let mut bound: Vec<&dyn ToSql> = vec![&owner, &low, &high];
    bound.extend(named.iter().map(|parameter| &**parameter));
    bound.push(&conversation);
    let mut statement = conn.prepare_cached(&OPEN)?;
    let mut rows = statement.query(bound.as_slice())?;
    while let Some(row) = rows.next()? {
        let call = decode_call(row)?;
        let id = call.conversation.as_ref();
        let id = id.map_or("", ConversationId::as_str);
        let key = CallKey::of_call(call.id, call.outcome, call.names, id);
        totals.add_sum(key, &CallSum::of_call(call.outcome, &call.details))?;
    }
    Ok(())
}

/// Sums the calls of conversations, one by one.
pub(crate) fn sum_conversations(
    conn: &Connection,
    owner: &Owner,
    conversations: &[ConversationId],
    limits: &Limits,
) -> Result<Vec<ConversationCalls>, RowError> {
    let mut oldest_open = conn.prepare_cached(
        "SELECT id FROM calls INDEXED BY calls_open WHERE owner = ? AND open = 1 ORDER BY id LIMIT 1",
    )?;
    let oldest_open: Option<[u8; 16]> = oldest_open
        .query_row([owner.as_str()], |row| row.get(0))
        .optional()?;
    let mut found = Vec::new();
    for id in conversations {
        found.push(match find_conversation(conn, owner, id)? {
            Some(no) => sum_conversation(conn, owner, no, oldest_open, limits)?,
            None => ConversationCalls::default(),
        });
    }
    Ok(found)
}

/// Reads the calls of a conversation that are in no sum yet. Of the others none is read, unless it is newer than one of these.
pub(crate) const OPEN_OF_CONVERSATION: &str = "SELECT outcome, details FROM calls \
     WHERE conversation_no = ? AND conversation_no <> 0 AND id >= ? AND +open = 1";

/// Reads the model of the newest call of a conversation that has one.
pub(crate) const LAST_MODEL: &str = "SELECT model FROM calls \
     WHERE conversation_no = ? AND conversation_no <> 0 AND model <> '' ORDER BY id DESC LIMIT 1";

fn sum_conversation(
    conn: &Connection,
    owner: &Owner,
    no: u32,
    oldest_open: Option<[u8; 16]>,
    limits: &Limits,
) -> Result<ConversationCalls, RowError> {
    let mut totals = CallTotals::new(&[], limits);
    add_roll_ups(conn, owner, &SumCalls::default(), Some(no), &mut totals)?;
    let mut sum = CallSum::default();
    totals
        .into_groups()
        .iter()
        .for_each(|(_, part)| sum.add_sum(part));
    if let Some(oldest) = oldest_open {
        let mut statement = conn.prepare_cached(OPEN_OF_CONVERSATION)?;
        let mut rows = statement.query(params![no, oldest])?;
        while let Some(row) = rows.next()? {
            let details: Vec<u8> = row.get(1)?;
            let details = rules::decode_details(&details).map_err(corrupt_error)?;
            let outcome = CallOutcome::from_code(row.get(0)?).unwrap_or_default();
            sum.add_sum(&CallSum::of_call(outcome, &details));
        }
    }
    let mut last_model = conn.prepare_cached(LAST_MODEL)?;
    let last_model = last_model.query_row([no], |row| row.get(0)).optional()?;
    Ok(ConversationCalls { sum, last_model })
}

/// Finds the next owner in both tables; a null is passed over.
const NEXT_OWNER: &str = "SELECT min(owner) FROM (\
     SELECT (SELECT owner FROM calls WHERE owner > ?1 ORDER BY owner LIMIT 1) AS owner UNION ALL \
     SELECT (SELECT owner FROM call_sums WHERE owner > ?1 ORDER BY owner LIMIT 1))";

/// Lists owners that have calls, or sums of calls. Each is a look-up in the index, whatever number of calls it has.
pub(crate) fn list_owners(
    conn: &Connection,
    after: Option<&Owner>,
    limit: usize,
) -> Result<Vec<Owner>, RowError> {
    let mut statement = conn.prepare_cached(NEXT_OWNER)?;
    // No owner has an empty name.
    let mut last = after.map_or("", Owner::as_str).to_owned();
    let mut owners = Vec::new();
    while owners.len() < limit {
        let next: Option<String> = statement.query_row([&last], |row| row.get(0))?;
        let Some(next) = next else { break };
        let owner = Owner::new(next.as_str());
        owners.push(owner.map_err(|error| corrupt_error(error.to_string()))?);
        last = next;
    }
    Ok(owners)
}

/// Takes one step of putting an owner's calls into sums and removing old ones.
pub(crate) fn sweep_calls(
    conn: &Connection,
    owner: &Owner,
    sweep: SweepCalls,
) -> Result<SweptCalls, RowError> {
    let rolled_up = roll_up_calls(conn, owner, CallId::first_at(sweep.roll_up_before_ms))?;
    let before = CallId::first_at(sweep.remove_before_ms);
    let removed = conn
        .prepare_cached(
            "DELETE FROM calls WHERE owner = ?1 AND id IN (SELECT id FROM calls \
             WHERE owner = ?1 AND id < ?2 AND open = 0 ORDER BY id LIMIT ?3)",
        )?
        .execute(params![owner.as_str(), before.as_bytes(), STEP_ROWS])?;
    let removed = removed as u64;
    let removed_bodies = remove_old_bodies(conn, owner, sweep.remove_bodies_before_ms)?;
    let most = u64::from(STEP_ROWS);
    Ok(SweptCalls {
        rolled_up,
        removed,
        removed_bodies,
        more: [rolled_up, removed, removed_bodies].contains(&most),
    })
}

/// Removes some bodies of calls that began before a time; returns how many.
fn remove_old_bodies(conn: &Connection, owner: &Owner, before_ms: i64) -> Result<u64, RowError> {
    let before = CallId::first_at(before_ms);
    let removed = conn
        .prepare_cached(
            "UPDATE calls SET body = NULL WHERE owner = ?1 AND id IN (SELECT id FROM calls \
             INDEXED BY calls_with_body WHERE owner = ?1 AND id < ?2 AND body IS NOT NULL \
             ORDER BY id LIMIT ?3)",
        )?
        .execute(params![owner.as_str(), before.as_bytes(), STEP_ROWS])?;
    Ok(removed as u64)
}

/// Puts some calls before an id into sums; returns how many.
fn roll_up_calls(conn: &Connection, owner: &Owner, before: CallId) -> Result<u64, RowError> {
    let mut statement = conn.prepare_cached(
        "SELECT id, outcome, upstream, model, key_name, policy, conversation_no, details \
         FROM calls INDEXED BY calls_open \
         WHERE owner = ? AND open = 1 AND id < ? ORDER BY id LIMIT ?",
    )?;
    let mut rows = statement.query(params![owner.as_str(), before.as_bytes(), STEP_ROWS])?;
    let mut sums: BTreeMap<CallKey<u32>, CallSum> = BTreeMap::new();
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        let id = CallId::from_bytes(row.get(0)?);
        let outcome = CallOutcome::from_code(row.get(1)?).unwrap_or_default();
        let details: Vec<u8> = row.get(7)?;
        // A damaged call counts as one without figures: it must not keep all others from their sums.
        let details = rules::decode_details(&details).unwrap_or_default();
        let key = CallKey::of_call(id, outcome, decode_names(row, 2)?, row.get(6)?);
        let sum = sums.entry(key).or_default();
        sum.add_sum(&CallSum::of_call(outcome, &details));
        ids.push(id);
    }
    for (key, sum) in &sums {
        add_to_sum(conn, owner, key, &rules::sum_columns(sum))?;
    }
    let mut close = conn.prepare_cached("UPDATE calls SET open = 0 WHERE owner = ? AND id = ?")?;
    for id in &ids {
        close.execute(params![owner.as_str(), id.as_bytes()])?;
    }
    Ok(ids.len() as u64)
}

fn add_to_sum(
    conn: &Connection,
    owner: &Owner,
    key: &CallKey<u32>,
    columns: &[i64],
) -> Result<(), RowError> {
    let (owner, outcome, names) = (owner.as_str(), key.outcome.code(), &key.names);
    let mut bound: Vec<&dyn ToSql> = vec![
        &owner,
        &key.hour,
        &outcome,
        &names.upstream,
        &names.model,
        &names.key,
        &names.policy,
        &key.conversation,
    ];
    bound.extend(columns.iter().map(|column| column as &dyn ToSql));
    conn.prepare_cached(&ADD_TO_SUM)?
        .execute(bound.as_slice())?;
    Ok(())
}

/// Takes a deleted conversation's number, and what is about its content, from some of its calls and sums; returns how many
/// rows were changed.
pub(crate) fn forget_conversation(
    conn: &Connection,
    owner: &Owner,
    no: u32,
    most: usize,
) -> Result<usize, RowError> {
    let most = u32::try_from(most).unwrap_or(STEP_ROWS).min(STEP_ROWS);
    let changed = conn
        .prepare_cached(
            "UPDATE calls SET conversation_no = 0, response_id = NULL, body_hash = NULL, band = NULL, \
             body = NULL WHERE owner = ?1 AND id IN (SELECT id FROM calls \
             WHERE conversation_no = ?2 AND conversation_no <> 0 ORDER BY id LIMIT ?3)",
        )?
        .execute(params![owner.as_str(), no, most])?;
    if changed > 0 {
        return Ok(changed);
    }
    merge_sums(conn, owner, no, most)
}

/// Adds some sums of a conversation to those of no conversation.
fn merge_sums(conn: &Connection, owner: &Owner, no: u32, most: u32) -> Result<usize, RowError> {
    let mut statement = conn.prepare_cached(
        "SELECT * FROM call_sums WHERE conversation_no = ? AND conversation_no <> 0 LIMIT ?",
    )?;
    let mut rows = statement.query([no, most])?;
    let mut sums: Vec<(CallKey<u32>, Vec<i64>)> = Vec::new();
    while let Some(row) = rows.next()? {
        let key = CallKey {
            hour: row.get(1)?,
            outcome: CallOutcome::from_code(row.get(2)?).unwrap_or_default(),
            names: decode_names(row, 3)?,
            conversation: no,
        };
        let columns = (0..SUM_COLUMNS.len()).map(|n| row.get(8 + n));
        sums.push((key, columns.collect::<rusqlite::Result<_>>()?));
    }
    for (key, columns) in &sums {
        let names = &key.names;
        conn.prepare_cached(
            "DELETE FROM call_sums WHERE owner = ? AND hour = ? AND outcome = ? AND upstream = ? \
             AND model = ? AND key_name = ? AND policy = ? AND conversation_no = ?",
        )?
        .execute(params![
            owner.as_str(),
            key.hour,
            key.outcome.code(),
            names.upstream,
            names.model,
            names.key,
            names.policy,
            no
        ])?;
        let merged = CallKey {
            conversation: 0,
            ..key.clone()
        };
        add_to_sum(conn, owner, &merged, columns)?;
    }
    Ok(sums.len())
}
