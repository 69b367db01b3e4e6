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
use tokio_postgres::Row;

use crate::connection::error::{RowError, corrupt_error};
use crate::connection::params::{Bytea, Param, get_bytes, get_bytes_or_null, get_column, params};
use crate::connection::transaction::Tx;
use crate::rows::conversation_row::ConversationKey;

/// Largest number of rows that one step puts into sums, removes or changes.
const STEP_ROWS: i64 = 1000;

/// The columns of a call that [`decode_call`] reads.
const CALL_COLUMNS: &str = "k.call, k.outcome, k.upstream, k.model, k.key_name, k.policy, c.id, \
     k.conversation <> '', k.response_id, k.body_hash, k.details, k.band";

/// What a filter asks of a call or of a roll-up, which have the same names for it. Parameters 1 to 3 are the owner and the
/// range.
const NAMED: &str = "AND ($4 IS NULL OR upstream = $4) AND ($5 IS NULL OR model = $5) \
     AND ($6 IS NULL OR key_name = $6) AND ($7 IS NULL OR policy = $7) \
     AND ($8 IS NULL OR outcome = $8)";

const INSERT: &str = "INSERT INTO contexture.calls (owner, call, open, outcome, conversation, \
     upstream, model, key_name, policy, response_id, body_hash, details, band, body) \
     SELECT $1, n.call, true, n.outcome, n.conversation, n.upstream, n.model, n.key_name, \
     n.policy, n.response_id, n.body_hash, n.details, n.band, n.body \
     FROM unnest($2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13) AS n (call, outcome, \
     conversation, upstream, model, key_name, policy, response_id, body_hash, details, band, \
     body) \
     ON CONFLICT DO NOTHING";

/// The query for calls of an owner, or of a conversation, by their ids.
fn list_sql(order: CallOrder, of_conversation: bool) -> String {
    let order = match order {
        CallOrder::NewestFirst => "DESC",
        CallOrder::OldestFirst => "ASC",
    };
    let condition = match of_conversation {
        true => "AND k.conversation = $10 AND k.conversation <> ''",
        false => "",
    };
    format!(
        "SELECT {CALL_COLUMNS} FROM contexture.calls k \
         LEFT JOIN contexture.conversations c ON c.conversation = k.conversation \
         WHERE k.owner = $1 AND k.call >= $2 AND k.call < $3 {NAMED} {condition} \
         ORDER BY k.call {order} LIMIT $9"
    )
}

/// Reads the calls that are in no sum yet.
static OPEN: LazyLock<String> = LazyLock::new(|| {
    format!(
        "SELECT {CALL_COLUMNS} FROM contexture.calls k \
         LEFT JOIN contexture.conversations c ON c.conversation = k.conversation \
         WHERE k.owner = $1 AND k.open AND k.call >= $2 AND k.call < $3 {NAMED} \
         AND ($9 IS NULL OR k.conversation = $9)"
    )
});

/// The names of a sum, which are its key with the owner.
const SUM_KEYS: &str = "hour, outcome, upstream, model, key_name, policy, conversation";

/// Adds to sums that are there. Sums stop at the end of their type.
static ADD_ON_CONFLICT: LazyLock<String> = LazyLock::new(|| {
    let added = SUM_COLUMNS.map(|column| {
        format!(
            "{column} = LEAST({}, s.{column}::numeric + excluded.{column})::bigint",
            i64::MAX
        )
    });
    format!(
        "ON CONFLICT (owner, {SUM_KEYS}) DO UPDATE SET {}",
        added.join(", ")
    )
});

/// Adds to the sums of an owner's hours.
static ADD_TO_SUMS: LazyLock<String> = LazyLock::new(|| {
    let columns = SUM_COLUMNS.join(", ");
    let arrays: Vec<String> = (2..9 + SUM_COLUMNS.len())
        .map(|n| format!("${n}"))
        .collect();
    format!(
        "INSERT INTO contexture.call_sums AS s (owner, {SUM_KEYS}, {columns}) \
         SELECT $1, n.* FROM unnest({}) AS n {}",
        arrays.join(", "),
        *ADD_ON_CONFLICT
    )
});

/// Adds some sums of a conversation to those of no conversation.
static MERGE_SUMS: LazyLock<String> = LazyLock::new(|| {
    let columns = SUM_COLUMNS.join(", ");
    format!(
        "WITH gone AS (DELETE FROM contexture.call_sums WHERE conversation = $1 \
         AND conversation <> '' AND (owner, {SUM_KEYS}) IN (SELECT owner, {SUM_KEYS} FROM contexture.call_sums \
         WHERE conversation = $1 AND conversation <> '' LIMIT $2) RETURNING *) \
         INSERT INTO contexture.call_sums AS s (owner, {SUM_KEYS}, {columns}) \
         SELECT owner, hour, outcome, upstream, model, key_name, policy, ''::bytea, {columns} \
         FROM gone {}",
        *ADD_ON_CONFLICT
    )
});

/// The parameters of [`INSERT`]; a call's conversation is one of `known`, else it has none.
fn insert_parameters(owner: &Owner, known: &[[u8; 16]], calls: &[CallRecord]) -> Vec<Param> {
    let names = |name: fn(&CallNames) -> &String| -> Vec<String> {
        calls.iter().map(|call| name(&call.names).clone()).collect()
    };
    let conversation = |call: &CallRecord| {
        let key = call.conversation.as_ref();
        let key = key.map(|id| ConversationKey::of(owner, id).into_bytes());
        let key = key.filter(|key| known.contains(key));
        key.map_or_else(Vec::new, |key| key.to_vec())
    };
    let ids: Vec<[u8; 16]> = calls.iter().map(|call| *call.id.as_bytes()).collect();
    let outcomes: Vec<i16> = calls
        .iter()
        .map(|call| call.outcome.code().into())
        .collect();
    let conversations: Vec<Vec<u8>> = calls.iter().map(conversation).collect();
    let responses: Vec<Option<ResponseId>> = calls.iter().map(|call| call.response).collect();
    let hashes: Vec<Option<ContentHash>> = calls.iter().map(|call| call.body_hash).collect();
    let details = calls
        .iter()
        .map(|call| rules::encode_details(&call.details));
    let details: Vec<Bytea> = details.map(Bytea::Own).collect();
    let bands: Vec<Option<Arc<[u8]>>> = calls.iter().map(|call| call.band.clone()).collect();
    // One of no conversation would go with no deletion.
    let bodies: Vec<Option<Arc<[u8]>>> = calls
        .iter()
        .zip(&conversations)
        .map(|(call, conversation)| call.body.clone().filter(|_| !conversation.is_empty()))
        .collect();
    params![
        owner.as_str(),
        ids,
        outcomes,
        conversations
            .into_iter()
            .map(Bytea::Own)
            .collect::<Vec<_>>(),
        names(|names| &names.upstream),
        names(|names| &names.model),
        names(|names| &names.key),
        names(|names| &names.policy),
        responses,
        hashes,
        details,
        bands,
        bodies
    ]
}

/// Stores the call of an append to a conversation, which is locked.
pub(crate) fn insert_call(tx: &mut Tx<'_>, owner: &Owner, key: [u8; 16], call: &CallRecord) {
    let call = std::slice::from_ref(call);
    tx.execute_on_commit(INSERT, insert_parameters(owner, &[key], call));
}

/// Stores calls that come with no append.
pub(crate) async fn record_calls(
    tx: &mut Tx<'_>,
    owner: &Owner,
    calls: &[CallRecord],
) -> Result<(), RowError> {
    let ids = calls.iter().filter_map(|call| call.conversation.as_ref());
    let keys: Vec<[u8; 16]> = ids
        .map(|id| ConversationKey::of(owner, id).into_bytes())
        .collect();
    let mut known = Vec::new();
    if !keys.is_empty() {
        // The lock keeps a deletion from ending before these calls are stored: they would name a conversation for ever.
        let rows = tx.query_rows(
            "SELECT conversation FROM contexture.conversations WHERE conversation = ANY ($1) \
             ORDER BY conversation FOR KEY SHARE",
            params![keys],
        );
        for row in rows.await? {
            known.push(get_bytes(&row, 0)?);
        }
    }
    tx.execute_on_commit(INSERT, insert_parameters(owner, &known, calls));
    Ok(())
}

/// Reads a call.
pub(crate) async fn load_call(
    tx: &Tx<'_>,
    owner: &Owner,
    id: CallId,
) -> Result<Option<CallRecord>, RowError> {
    let sql = format!(
        "SELECT {CALL_COLUMNS} FROM contexture.calls k \
         LEFT JOIN contexture.conversations c ON c.conversation = k.conversation \
         WHERE k.owner = $1 AND k.call = $2"
    );
    let row = tx
        .query_row(&sql, params![owner.as_str(), *id.as_bytes()])
        .await?;
    row.map(|row| decode_call(&row)).transpose()
}

/// Reads the body of a call. One whose conversation is being deleted has none any more.
pub(crate) async fn load_body(
    tx: &Tx<'_>,
    owner: &Owner,
    id: CallId,
) -> Result<Option<Arc<[u8]>>, RowError> {
    let sql = "SELECT k.body FROM contexture.calls k \
         JOIN contexture.conversations c ON c.conversation = k.conversation \
         WHERE k.owner = $1 AND k.call = $2 AND c.id IS NOT NULL";
    let row = tx
        .query_row(sql, params![owner.as_str(), *id.as_bytes()])
        .await?;
    let Some(row) = row else { return Ok(None) };
    let body: Option<&[u8]> = get_column(&row, 0)?;
    Ok(body.map(Into::into))
}

/// Removes the bodies of a conversation's calls.
pub(crate) fn remove_bodies(tx: &mut Tx<'_>, key: [u8; 16]) {
    tx.execute_on_commit(
        "UPDATE contexture.calls SET body = NULL WHERE conversation = $1 AND body IS NOT NULL",
        params![key],
    );
}

fn decode_call(row: &Row) -> Result<CallRecord, RowError> {
    let conversation: Option<&str> = get_column(row, 6)?;
    let conversation = conversation.map(ConversationId::new).transpose();
    let conversation = conversation.map_err(|error| corrupt_error(error.to_string()))?;
    // A conversation that is being deleted is hidden before its key is taken from all of its calls.
    let is_hidden = conversation.is_none() && get_column(row, 7)?;
    let response = get_bytes_or_null(row, 8)?.filter(|_| !is_hidden);
    let body_hash = get_bytes_or_null(row, 9)?.filter(|_| !is_hidden);
    let band: Option<&[u8]> = get_column(row, 11)?;
    Ok(CallRecord {
        id: CallId::from_bytes(get_bytes(row, 0)?),
        outcome: decode_outcome(row, 1)?,
        names: decode_names(row, 2)?,
        conversation,
        response: response.map(ResponseId::from_bytes),
        body_hash: body_hash.map(ContentHash::from_bytes),
        details: rules::decode_details(get_column(row, 10)?).map_err(corrupt_error)?,
        band: band.filter(|_| !is_hidden).map(Into::into),
        body: None,
    })
}

fn decode_outcome(row: &Row, index: usize) -> Result<CallOutcome, RowError> {
    let code: i16 = get_column(row, index)?;
    let outcome = u8::try_from(code).ok().and_then(CallOutcome::from_code);
    outcome.ok_or_else(|| corrupt_error(format!("a call ended as {code}")))
}

fn decode_names(row: &Row, first: usize) -> Result<CallNames, RowError> {
    Ok(CallNames {
        upstream: get_column(row, first)?,
        model: get_column(row, first + 1)?,
        key: get_column(row, first + 2)?,
        policy: get_column(row, first + 3)?,
    })
}

/// The parameters of what a filter asks, behind the owner and the range.
fn named_parameters(filter: &CallFilter) -> Vec<Param> {
    params![
        filter.upstream.clone(),
        filter.model.clone(),
        filter.key.clone(),
        filter.policy.clone(),
        filter.outcome.map(|outcome| i16::from(outcome.code()))
    ]
}

fn conversation_key(owner: &Owner, filter: &CallFilter) -> Option<[u8; 16]> {
    let id = filter.conversation.as_ref()?;
    Some(ConversationKey::of(owner, id).into_bytes())
}

/// Lists a page of an owner's calls.
pub(crate) async fn list_calls(
    tx: &Tx<'_>,
    owner: &Owner,
    list: &ListCalls,
) -> Result<CallPage, RowError> {
    let limit = list.limit.unwrap_or(100);
    let (low, high) = rules::page_range(list);
    let mut bound = params![owner.as_str(), *low.as_bytes(), *high.as_bytes()];
    bound.extend(named_parameters(&list.filter));
    // One more than the page has room for, to know whether there is a next one.
    bound.push(Param::new(
        i64::try_from(limit.saturating_add(1)).unwrap_or(i64::MAX),
    ));
    let key = conversation_key(owner, &list.filter);
    let sql = list_sql(list.order, key.is_some());
    bound.extend(key.map(Param::new));
    let rows = tx.query_rows(&sql, bound).await?;
    let mut calls = rows
        .iter()
        .map(decode_call)
        .collect::<Result<Vec<_>, RowError>>()?;
    // A conversation that is being deleted has no calls any more.
    if list.filter.conversation.is_some() {
        calls.retain(|call| call.conversation.is_some());
    }
    let more = calls.len() > limit;
    calls.truncate(limit);
    let next = calls.last().filter(|_| more).map(|call| call.id);
    Ok(CallPage { calls, next })
}

/// The query for sums of roll-ups, which reads of their names only what they are grouped by.
fn sum_sql(by: &[CallGrouping], of_conversation: bool) -> String {
    let key = |grouping, column: &'static str, none: &'static str| match by.contains(&grouping) {
        true => column,
        false => none,
    };
    let keys = [
        key(CallGrouping::Day, "hour / 24 * 24", "0::bigint"),
        key(CallGrouping::Outcome, "outcome", "0::smallint"),
        key(CallGrouping::Upstream, "upstream", "''::text"),
        key(CallGrouping::Model, "model", "''::text"),
        key(CallGrouping::Key, "key_name", "''::text"),
        key(CallGrouping::Policy, "policy", "''::text"),
        key(CallGrouping::Conversation, "coalesce(c.id, '')", "''::text"),
    ];
    // In two parts, because a sum beyond 2^63 would be an error.
    let sums = SUM_COLUMNS
        .map(|column| format!("sum({column} / 1000000)::bigint, sum({column} % 1000000)::bigint"));
    let (keys, sums) = (keys.join(", "), sums.join(", "));
    let condition = match of_conversation {
        // One that is being deleted is hidden.
        true => "AND s.conversation = $9 AND s.conversation <> '' AND c.id IS NOT NULL",
        false => "",
    };
    format!(
        "SELECT {keys}, {sums} FROM contexture.call_sums s \
         LEFT JOIN contexture.conversations c ON c.conversation = s.conversation \
         WHERE s.owner = $1 AND s.hour >= $2 AND s.hour < $3 {NAMED} {condition} \
         GROUP BY 1, 2, 3, 4, 5, 6, 7"
    )
}

/// Sums calls: those in roll-ups, and those in none yet.
pub(crate) async fn sum_calls(
    tx: &Tx<'_>,
    owner: &Owner,
    sum: &SumCalls,
    limits: &Limits,
) -> Result<Vec<(CallGroup, CallSum)>, RowError> {
    let mut totals = CallTotals::new(&sum.by, limits);
    add_roll_ups(tx, owner, sum, &mut totals).await?;
    add_open_calls(tx, owner, sum, &mut totals).await?;
    Ok(totals.into_groups())
}

async fn add_roll_ups(
    tx: &Tx<'_>,
    owner: &Owner,
    sum: &SumCalls,
    totals: &mut CallTotals<'_>,
) -> Result<(), RowError> {
    let (first, last) = rules::hour_range(&sum.filter);
    let key = conversation_key(owner, &sum.filter);
    let sql = sum_sql(&sum.by, key.is_some());
    let mut bound = params![owner.as_str(), first, last];
    bound.extend(named_parameters(&sum.filter));
    bound.extend(key.map(Param::new));
    for row in tx.query_rows(&sql, bound).await? {
        let halves = (0..SUM_COLUMNS.len())
            .map(|n| Ok((get_column(&row, 7 + 2 * n)?, get_column(&row, 8 + 2 * n)?)));
        let halves = halves.collect::<Result<Vec<(i64, i64)>, RowError>>()?;
        let key = CallKey {
            hour: get_column(&row, 0)?,
            outcome: decode_outcome(&row, 1)?,
            names: decode_names(&row, 2)?,
            conversation: get_column(&row, 6)?,
        };
        totals.add_sum(key, &rules::sum_from_halves(&halves))?;
    }
    Ok(())
}

async fn add_open_calls(
    tx: &Tx<'_>,
    owner: &Owner,
    sum: &SumCalls,
    totals: &mut CallTotals<'_>,
) -> Result<(), RowError> {
    let (low, high) = rules::call_range(&sum.filter);
    let mut bound = params![owner.as_str(), *low.as_bytes(), *high.as_bytes()];
    bound.extend(named_parameters(&sum.filter));
    bound.push(Param::new(conversation_key(owner, &sum.filter)));
    for row in tx.query_rows(&OPEN, bound).await? {
        let call = decode_call(&row)?;
        if sum.filter.conversation.is_some() && call.conversation.is_none() {
            continue;
        }
        let id = call.conversation.as_ref();
        let id = id.map_or("", ConversationId::as_str);
        let key = CallKey::of_call(call.id, call.outcome, call.names, id);
        totals.add_sum(key, &CallSum::of_call(call.outcome, &call.details))?;
    }
    Ok(())
}

/// Sums the roll-ups of conversations, in two parts as all sums.
static SUM_CONVERSATIONS: LazyLock<String> = LazyLock::new(|| {
    let sums = SUM_COLUMNS
        .map(|column| format!("sum({column} / 1000000)::bigint, sum({column} % 1000000)::bigint"));
    format!(
        "SELECT conversation, {} FROM contexture.call_sums \
         WHERE conversation = ANY ($1) AND conversation <> '' GROUP BY conversation",
        sums.join(", ")
    )
});

/// Reads the calls of conversations that are in no sum yet. Of the others none is read, unless it is newer than one of these.
const OPEN_OF_CONVERSATIONS: &str = "SELECT conversation, outcome, details FROM contexture.calls \
     WHERE conversation = ANY ($1) AND conversation <> '' AND call >= (SELECT call \
     FROM contexture.calls WHERE owner = $2 AND open ORDER BY call LIMIT 1) AND open";

/// Reads the model of the newest call of each conversation that has one.
const LAST_MODELS: &str = "SELECT n.conversation, m.model FROM unnest($1) AS n (conversation) \
     CROSS JOIN LATERAL (SELECT k.model FROM contexture.calls k WHERE k.conversation = n.conversation \
     AND k.conversation <> '' AND k.model <> '' ORDER BY k.call DESC LIMIT 1) m";

/// Sums the calls of conversations.
pub(crate) async fn sum_conversations(
    tx: &Tx<'_>,
    owner: &Owner,
    conversations: &[ConversationId],
) -> Result<Vec<ConversationCalls>, RowError> {
    let keys = conversations.iter();
    let keys = keys.map(|id| ConversationKey::of(owner, id).into_bytes());
    let keys: Vec<[u8; 16]> = keys.collect();
    let mut found: BTreeMap<[u8; 16], ConversationCalls> = BTreeMap::new();
    // One that is being deleted is hidden, and has no calls any more.
    let known = "SELECT conversation FROM contexture.conversations WHERE conversation = ANY ($1)";
    for row in tx.query_rows(known, params![keys.clone()]).await? {
        found.insert(get_bytes(&row, 0)?, ConversationCalls::default());
    }
    for row in tx
        .query_rows(&SUM_CONVERSATIONS, params![keys.clone()])
        .await?
    {
        let halves = (0..SUM_COLUMNS.len())
            .map(|n| Ok((get_column(&row, 1 + 2 * n)?, get_column(&row, 2 + 2 * n)?)));
        let halves = halves.collect::<Result<Vec<(i64, i64)>, RowError>>()?;
        if let Some(calls) = found.get_mut(&get_bytes(&row, 0)?) {
            calls.sum.add_sum(&rules::sum_from_halves(&halves));
        }
    }
    let bound = params![keys.clone(), owner.as_str()];
    for row in tx.query_rows(OPEN_OF_CONVERSATIONS, bound).await? {
        let details = rules::decode_details(get_column(&row, 2)?).map_err(corrupt_error)?;
        if let Some(calls) = found.get_mut(&get_bytes(&row, 0)?) {
            let sum = CallSum::of_call(decode_outcome(&row, 1)?, &details);
            calls.sum.add_sum(&sum);
        }
    }
    for row in tx.query_rows(LAST_MODELS, params![keys.clone()]).await? {
        if let Some(calls) = found.get_mut(&get_bytes(&row, 0)?) {
            calls.last_model = Some(get_column(&row, 1)?);
        }
    }
    let calls = keys
        .iter()
        .map(|key| found.get(key).cloned().unwrap_or_default());
    Ok(calls.collect())
}

/// Finds the next owner in both tables.
const NEXT_OWNER: &str = "SELECT n.owner FROM (\
     (SELECT owner FROM contexture.calls WHERE owner > $1 ORDER BY owner LIMIT 1) UNION ALL \
     (SELECT owner FROM contexture.call_sums WHERE owner > $1 ORDER BY owner LIMIT 1)) n \
     ORDER BY n.owner LIMIT 1";

/// Lists owners that have calls, or sums of calls. Each is a look-up in the index, whatever number of calls it has.
pub(crate) async fn list_owners(
    tx: &Tx<'_>,
    after: Option<&Owner>,
    limit: usize,
) -> Result<Vec<Owner>, RowError> {
    // No owner has an empty name.
    let mut last = after.map_or("", Owner::as_str).to_owned();
    let mut owners = Vec::new();
    while owners.len() < limit {
        let next = tx.query_row(NEXT_OWNER, params![last.as_str()]).await?;
        let Some(next) = next else { break };
        last = get_column(&next, 0)?;
        let owner = Owner::new(last.as_str());
        owners.push(owner.map_err(|error| corrupt_error(error.to_string()))?);
    }
    Ok(owners)
}

/// Takes one step of putting an owner's calls into sums and removing old ones.
pub(crate) async fn sweep_calls(
    tx: &mut Tx<'_>,
    owner: &Owner,
    sweep: SweepCalls,
) -> Result<SweptCalls, RowError> {
    let before = CallId::first_at(sweep.remove_before_ms);
    let removed = tx
        .execute(
            "DELETE FROM contexture.calls WHERE owner = $1 AND call IN \
             (SELECT call FROM contexture.calls WHERE owner = $1 AND call < $2 AND NOT open \
             ORDER BY call LIMIT $3)",
            params![owner.as_str(), *before.as_bytes(), STEP_ROWS],
        )
        .await?;
    let before = CallId::first_at(sweep.remove_bodies_before_ms);
    let removed_bodies = tx
        .execute(
            "UPDATE contexture.calls SET body = NULL WHERE owner = $1 AND call IN \
             (SELECT call FROM contexture.calls WHERE owner = $1 AND call < $2 \
             AND body IS NOT NULL ORDER BY call LIMIT $3)",
            params![owner.as_str(), *before.as_bytes(), STEP_ROWS],
        )
        .await?;
    let rolled_up = roll_up_calls(tx, owner, CallId::first_at(sweep.roll_up_before_ms)).await?;
    let most = STEP_ROWS.unsigned_abs();
    Ok(SweptCalls {
        rolled_up,
        removed,
        removed_bodies,
        // What was put into sums now is removed by the next step, if it is old enough.
        more: rolled_up > 0 || removed == most || removed_bodies == most,
    })
}

/// Puts some calls before an id into sums; returns how many.
async fn roll_up_calls(tx: &mut Tx<'_>, owner: &Owner, before: CallId) -> Result<u64, RowError> {
    let rows = tx
        .query_rows(
            // Those of another server that does the same are its own.
            "SELECT call, outcome, upstream, model, key_name, policy, conversation, details \
             FROM contexture.calls WHERE owner = $1 AND open AND call < $2 \
             ORDER BY call LIMIT $3 FOR UPDATE SKIP LOCKED",
            params![owner.as_str(), *before.as_bytes(), STEP_ROWS],
        )
        .await?;
    if rows.is_empty() {
        return Ok(0);
    }
    let mut sums: BTreeMap<CallKey<Vec<u8>>, CallSum> = BTreeMap::new();
    let mut ids = Vec::new();
    for row in &rows {
        let id = CallId::from_bytes(get_bytes(row, 0)?);
        let outcome = decode_outcome(row, 1).unwrap_or_default();
        // A damaged call counts as one without figures: it must not keep all others from their sums.
        let details = rules::decode_details(get_column(row, 7)?).unwrap_or_default();
        let key = CallKey::of_call(id, outcome, decode_names(row, 2)?, get_column(row, 6)?);
        let sum = sums.entry(key).or_default();
        sum.add_sum(&CallSum::of_call(outcome, &details));
        ids.push(*id.as_bytes());
    }
    let count = ids.len() as u64;
    // In the order of their keys, so that two servers cannot wait for each other.
    tx.execute_on_commit(&ADD_TO_SUMS, sum_parameters(owner, &sums));
    tx.execute_on_commit(
        "UPDATE contexture.calls SET open = false WHERE owner = $1 AND call = ANY ($2)",
        params![owner.as_str(), ids],
    );
    Ok(count)
}

fn sum_parameters(owner: &Owner, sums: &BTreeMap<CallKey<Vec<u8>>, CallSum>) -> Vec<Param> {
    let names = |name: fn(&CallNames) -> &String| -> Vec<String> {
        sums.keys().map(|key| name(&key.names).clone()).collect()
    };
    let hours: Vec<i64> = sums.keys().map(|key| key.hour).collect();
    let outcomes: Vec<i16> = sums.keys().map(|key| key.outcome.code().into()).collect();
    let conversations = sums.keys().map(|key| Bytea::Own(key.conversation.clone()));
    let mut bound = params![
        owner.as_str(),
        hours,
        outcomes,
        names(|names| &names.upstream),
        names(|names| &names.model),
        names(|names| &names.key),
        names(|names| &names.policy),
        conversations.collect::<Vec<_>>()
    ];
    let rows: Vec<_> = sums.values().map(rules::sum_columns).collect();
    for column in 0..SUM_COLUMNS.len() {
        let values = rows.iter().filter_map(|row| row.get(column).copied());
        bound.push(Param::new(values.collect::<Vec<i64>>()));
    }
    bound
}

/// Takes a deleted conversation's key, and what is about its content, from some of its calls and sums; returns whether rows
/// may be left.
pub(crate) async fn forget_conversation(
    tx: &mut Tx<'_>,
    owner: &Owner,
    key: [u8; 16],
) -> Result<bool, RowError> {
    let most = STEP_ROWS.unsigned_abs();
    let changed = tx
        .execute(
            "UPDATE contexture.calls SET conversation = '', response_id = NULL, \
             body_hash = NULL, band = NULL, body = NULL WHERE owner = $1 AND call IN \
             (SELECT call FROM contexture.calls WHERE conversation = $2 AND conversation <> '' \
             ORDER BY call LIMIT $3)",
            params![owner.as_str(), key, STEP_ROWS],
        )
        .await?;
    if changed >= most {
        return Ok(true);
    }
    Ok(tx.execute(&MERGE_SUMS, params![key, STEP_ROWS]).await? >= most)
}

/// Removes some calls and sums of an owner; returns whether rows may be left.
pub(crate) async fn erase_calls(tx: &mut Tx<'_>, owner: &Owner) -> Result<bool, RowError> {
    let calls = tx
        .execute(
            "DELETE FROM contexture.calls WHERE owner = $1 AND call IN (SELECT call \
             FROM contexture.calls WHERE owner = $1 ORDER BY call LIMIT $2)",
            params![owner.as_str(), STEP_ROWS],
        )
        .await?;
    let sql = format!(
        "DELETE FROM contexture.call_sums WHERE owner = $1 AND ({SUM_KEYS}) IN \
         (SELECT {SUM_KEYS} FROM contexture.call_sums WHERE owner = $1 LIMIT $2)"
    );
    let sums = tx.execute(&sql, params![owner.as_str(), STEP_ROWS]).await?;
    Ok(calls.max(sums) >= STEP_ROWS.unsigned_abs())
}
