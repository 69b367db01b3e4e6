//! The record of calls: what was asked of providers, and what it used and cost.

use axum::Extension;
use axum::extract::State;
use contexture::ir::{CallId, Cancel};
use contexture::store::{
    CallFilter, CallGroup, CallGrouping, CallOutcome, CallSum, Calls, Error as StoreError,
    ListCalls, SumCalls,
};
use contexture::{EngineError, Owner};
use jiff::Timestamp;
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::access::Principal;
use crate::api::conventions::conversation_path::{conversation_id, open_conversation};
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::api::conventions::page;
use crate::config::AccessScope;
use crate::http::extractors::{Json, Path, Query, ReadAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use crate::state::call_log::RequestId;
use contexture_api::operations::{self, CallPart};
use contexture_api::{
    CallDocument, CallItemsDocument, CallsDocument, CompileDocument, DiffDocument,
    DifferenceDocument, UsageDocument, WhatIfDocument, parse_time,
};

/// The name of the list, for cursors.
const LIST: &str = "calls";

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_calls))
        .routes(routes!(show_call))
        .routes(routes!(list_call_items))
        .routes(routes!(compile_call_what_if))
        .routes(routes!(diff_requests))
        .routes(routes!(show_usage))
}

/// The calls that are meant, and the page of them.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CallParams {
    /// Only those that came at or after this time: a day in UTC (`2026-11-20`), a time (`2026-11-20T12:00:00Z`), how long ago
    /// (`12h`, `7d`), or milliseconds since the Unix epoch.
    since: Option<String>,
    /// Only those that came before this time, written in the same way.
    until: Option<String>,
    /// Only those of this conversation.
    conversation: Option<String>,
    /// With `conversation`, only those whose answers are on the path of this branch; the answer then has their number, `total`.
    branch: Option<String>,
    /// Only those to this upstream.
    upstream: Option<String>,
    /// Only those of this model.
    model: Option<String>,
    /// Only those of the key with this name; empty: those of none.
    key: Option<String>,
    /// Only those under this policy; empty: those under none.
    policy: Option<String>,
    /// Only those that ended so: `completed`, `incomplete`, `refused`, `unreachable`, `blocked` or `forwarded`.
    outcome: Option<String>,
    /// What each call has beside its figures: `band`, what its request was made of. Default: nothing.
    #[param(inline)]
    include: Option<CallInclude>,
    /// Maximum number of calls. Default 100.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// What calls of a list have beside their figures.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum CallInclude {
    /// What their requests were made of.
    Band,
}

/// The calls to sum, and what to group them by.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct UsageParams {
    /// What to group by, with commas between: `day`, `upstream`, `model`, `key`, `policy`, `conversation`, `outcome`; with the
    /// scope `admin` also `owner`, which sums up the calls of all owners. Default: `day`.
    by: Option<String>,
    /// Only calls that came in or after the hour of this time: a day in UTC (`2026-11-20`), a time (`2026-11-20T12:00:00Z`), how
    /// long ago (`12h`, `7d`), or milliseconds since the Unix epoch.
    since: Option<String>,
    /// Only calls that came before the hour of this time ends, written in the same way.
    until: Option<String>,
    /// Only those of this conversation.
    conversation: Option<String>,
    /// Only those to this upstream.
    upstream: Option<String>,
    /// Only those of this model.
    model: Option<String>,
    /// Only those of the key with this name; empty: those of none.
    key: Option<String>,
    /// Only those under this policy; empty: those under none.
    policy: Option<String>,
    /// Only those that ended so; see the list of calls.
    outcome: Option<String>,
}

/// Returns the record of calls.
///
/// # Errors
/// The store keeps none.
pub(crate) fn call_record(app: &App) -> Result<&dyn Calls, Problem> {
    let none = || Problem::new(Code::NotFound, "this database keeps no record of calls");
    app.engine().store().calls().ok_or_else(none)
}

fn parse_outcome(word: Option<&str>) -> Result<Option<CallOutcome>, Problem> {
    let parse = |word: &str| {
        CallOutcome::from_word(word).ok_or_else(|| {
            let words = CallOutcome::ALL.map(CallOutcome::as_str).join(", ");
            let detail = format!("`outcome` is {word:?}, expected one of {words}");
            Problem::new(Code::BadQuery, detail)
        })
    };
    word.map(parse).transpose()
}

/// Parses a time as people write it: RFC 3339, a day, how long ago, or milliseconds.
pub(super) fn parse_time_parameter(name: &str, text: Option<&str>) -> Result<Option<i64>, Problem> {
    let now_ms = Timestamp::now().as_millisecond();
    let parse = |text: &str| {
        parse_time(text, now_ms)
            .map_err(|why| Problem::new(Code::BadQuery, format!("`{name}` is {text:?}, {why}")))
    };
    text.map(parse).transpose()
}

/// The word for a sum of all owners.
const BY_OWNER: &str = "owner";

/// Whose calls are summed up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum SummedOwners {
    /// Those of the caller's owner.
    Own,
    /// Those of all owners, each for itself.
    All,
}

fn parse_groupings(words: Option<&str>) -> Result<(SummedOwners, Vec<CallGrouping>), Problem> {
    let parse = |word: &str| {
        CallGrouping::from_word(word).ok_or_else(|| {
            let words = CallGrouping::ALL.map(CallGrouping::as_str).join(", ");
            let detail =
                format!("`by` has {word:?}, expected some of {words}, {BY_OWNER}, with commas");
            Problem::new(Code::BadQuery, detail)
        })
    };
    let words = words.unwrap_or("day").split(',').map(str::trim);
    let (owners, others): (Vec<&str>, Vec<&str>) = words.partition(|word| *word == BY_OWNER);
    let owners = match owners.is_empty() {
        true => SummedOwners::Own,
        false => SummedOwners::All,
    };
    let by = others.into_iter().map(parse).collect::<Result<_, _>>()?;
    Ok((owners, by))
}

/// Owners of one page.
const OWNERS: usize = 100;

/// Sums up the calls of all owners, each for itself.
async fn sum_owners(
    calls: &dyn Calls,
    sum: &SumCalls,
    most: usize,
) -> Result<Vec<(Owner, Vec<(CallGroup, CallSum)>)>, Problem> {
    let mut found: Vec<(Owner, Vec<(CallGroup, CallSum)>)> = Vec::new();
    let mut groups = 0;
    loop {
        let after = found.last().map(|(owner, _)| owner);
        let owners = calls.list_call_owners(after, OWNERS).await;
        let owners = owners.map_err(EngineError::from)?;
        if owners.is_empty() {
            return Ok(found);
        }
        for owner in owners {
            let sums = calls.sum_calls(&owner, sum.clone()).await;
            let sums = sums.map_err(EngineError::from)?;
            groups += sums.len().max(1);
            if groups > most {
                let (limit, most) = ("call_groups", most as u64);
                let error = StoreError::Limit {
                    limit,
                    max: most,
                    actual: groups as u64,
                };
                return Err(error.into());
            }
            found.push((owner, sums));
        }
    }
}

/// Lists calls, newest first: each exchange with a provider, failures and calls of no model included.
#[utoipa::path(
    get, path = "/calls", tag = "requests", params(CallParams),
    responses((status = 200, description = "A page of calls", body = CallsDocument), ReadRefusals)
)]
async fn list_calls(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Query(asked): Query<CallParams>,
) -> Result<Json<CallsDocument>, Problem> {
    let after = asked.after.as_deref();
    let after: Option<String> = after
        .map(|after| page::decode_cursor(&owner, LIST, after))
        .transpose()?;
    let id = asked
        .conversation
        .as_deref()
        .map(conversation_id)
        .transpose()?;
    let filter = CallFilter {
        since_ms: parse_time_parameter("since", asked.since.as_deref())?,
        until_ms: parse_time_parameter("until", asked.until.as_deref())?,
        conversation: id,
        upstream: asked.upstream,
        model: asked.model,
        key: asked.key,
        policy: asked.policy,
        outcome: parse_outcome(asked.outcome.as_deref())?,
    };
    let after: Option<CallId> = after.and_then(|after| after.parse().ok());
    let limit = page::page_length(asked.limit, 100)?;
    let record = call_record(&app)?;
    let found = match (&asked.branch, &asked.conversation) {
        (None, _) => {
            let list = ListCalls {
                filter,
                after,
                limit: Some(limit),
                ..ListCalls::default()
            };
            let page = record.list_calls(&owner, list).await;
            let page = page.map_err(EngineError::from)?;
            (page.calls, page.next, None)
        }
        (Some(branch), Some(conversation)) => {
            let chat = open_conversation(&app, &owner, conversation, Some(branch)).await?;
            let page = operations::list_branch_calls(&chat, record, filter, after, limit).await?;
            (page.calls, page.next, Some(page.total))
        }
        (Some(_), None) => {
            let detail = "`branch` is of a `conversation`: name that too";
            return Err(Problem::new(Code::BadQuery, detail));
        }
    };
    let (calls, next, total) = found;
    let encode = |next: CallId| page::encode_cursor(&owner, LIST, &next.to_string());
    let document = |call| match asked.include {
        Some(CallInclude::Band) => CallDocument::with_band(call),
        None => CallDocument::from(call),
    };
    Ok(Json(CallsDocument {
        calls: calls.iter().map(document).collect(),
        next: next.map(encode),
        total,
    }))
}

/// The parts of a call that are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ShownCallParams {
    /// What to show beside the figures, with commas between: `sent` (the request as the provider got it), `came` (as its client sent
    /// it), `report`, `answer`. Default: nothing.
    include: Option<String>,
}

fn parse_parts(words: Option<&str>) -> Result<Vec<CallPart>, Problem> {
    let parse = |word: &str| {
        CallPart::from_word(word.trim()).ok_or_else(|| {
            let words = CallPart::ALL.map(CallPart::as_str).join(", ");
            let detail = format!("`include` has {word:?}, expected some of {words}, with commas");
            Problem::new(Code::BadQuery, detail)
        })
    };
    let words = words.into_iter().flat_map(|words| words.split(','));
    words.map(parse).collect()
}

/// Returns a call by its id, which is that of the request: the value of `x-contexture-request`. What its request was made of is
/// shown as it was stored then; requests, report and answer are made again of what the conversation has, and say whether they
/// are exact.
#[utoipa::path(
    get, path = "/calls/{call}", tag = "requests",
    params(("call" = String, Path, description = "The call's id"), ShownCallParams),
    responses((status = 200, description = "The call", body = CallDocument), ReadRefusals)
)]
async fn show_call(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(asked): Query<ShownCallParams>,
) -> Result<Json<CallDocument>, Problem> {
    let parts = parse_parts(asked.include.as_deref())?;
    call_record(&app)?;
    let call = parse_id(&id)?;
    let found = operations::describe_call(app.engine(), &owner, call, &parts).await?;
    found.map(Json).ok_or_else(|| call_not_found(&id))
}

fn parse_id(id: &str) -> Result<CallId, Problem> {
    let RequestId(call) = id.parse().map_err(|()| call_not_found(id))?;
    Ok(call)
}

fn call_not_found(id: &str) -> Problem {
    Problem::new(Code::NotFound, format!("call {id:?} not found"))
}

/// The items that are wanted.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct CallItemsParams {
    /// Index of the first item, from 0. Default: 0.
    first: Option<usize>,
    /// Maximum number of items. Default 100.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
}

/// Returns items of the history of a call, each with its text as it is stored, what was sent in its place, and the rule that
/// decided. The request is made again of what the conversation has, and says whether it is exact.
#[utoipa::path(
    get, path = "/calls/{call}/items", tag = "requests",
    params(("call" = String, Path, description = "The call's id"), CallItemsParams),
    responses((status = 200, description = "The items", body = CallItemsDocument), ReadRefusals)
)]
async fn list_call_items(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(asked): Query<CallItemsParams>,
) -> Result<Json<CallItemsDocument>, Problem> {
    let call = parse_id(&id)?;
    let first = asked.first.unwrap_or_default();
    let limit = page::page_length(asked.limit, 100)?;
    call_record(&app)?;
    let indexes = first..first.saturating_add(limit);
    let found = operations::explain_call_items(app.engine(), &owner, call, indexes).await?;
    found.map(Json).ok_or_else(|| call_not_found(&id))
}

/// Compiles a call as it would have been with another model, window or policy, and compares it with the call before it. Without a
/// model it is that of the call, in its format; without a policy there is none. Nothing is stored: what a policy would compact is
/// cut instead.
#[utoipa::path(
    post, path = "/calls/{call}/what-if", tag = "requests",
    request_body(content = CompileDocument, example = json!({"window": 32000, "policy": {"clear": {"keep_recent": 3}}})),
    params(("call" = String, Path, description = "The call's id")),
    responses((status = 200, description = "The call as it would have been", body = WhatIfDocument), WriteRefusals)
)]
async fn compile_call_what_if(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Extension(cancel): Extension<Cancel>,
    Json(asked): Json<CompileDocument>,
) -> Result<Json<WhatIfDocument>, Problem> {
    let call = parse_id(&id)?;
    call_record(&app)?;
    let (engine, host) = (app.engine(), app.host());
    let told =
        operations::compile_call_what_if(engine, &owner, call, &asked, &host, &cancel).await?;
    told.map(Json).ok_or_else(|| call_not_found(&id))
}

/// Compares two requests as the provider's prompt cache does: those of two calls, or any two. Shows the first place where they differ,
/// and what it costs.
#[utoipa::path(
    post, path = "/diff", tag = "requests",
    request_body(content = DiffDocument, example = json!({
        "first": {"request": {"model": "gpt-5.4", "messages": [{"role": "user", "content": "Hello"}]}},
        "second": {"request": {"model": "gpt-5.4", "messages": [{"role": "user", "content": "Hello!"}]}},
    })),
    responses((status = 200, description = "Where they differ", body = DifferenceDocument), WriteRefusals)
)]
async fn diff_requests(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Json(asked): Json<DiffDocument>,
) -> Result<Json<DifferenceDocument>, Problem> {
    let found = operations::diff_requests(app.engine(), &owner, &asked).await?;
    Ok(Json(found))
}

/// Returns what calls used and cost, in groups. A sum by owners needs the scope `admin`.
#[utoipa::path(
    get, path = "/usage", tag = "requests", params(UsageParams),
    responses((status = 200, description = "The sums", body = UsageDocument), ReadRefusals)
)]
async fn show_usage(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Extension(caller): Extension<Principal>,
    Query(asked): Query<UsageParams>,
) -> Result<Json<UsageDocument>, Problem> {
    let (owners, by) = parse_groupings(asked.by.as_deref())?;
    if owners == SummedOwners::All {
        caller.require_scope(AccessScope::Admin)?;
    }
    let id = asked
        .conversation
        .as_deref()
        .map(conversation_id)
        .transpose()?;
    let since = parse_time_parameter("since", asked.since.as_deref())?;
    let until = parse_time_parameter("until", asked.until.as_deref())?;
    let sum = SumCalls {
        filter: CallFilter {
            since_ms: since,
            until_ms: until,
            conversation: id,
            upstream: asked.upstream,
            model: asked.model,
            key: asked.key,
            policy: asked.policy,
            outcome: parse_outcome(asked.outcome.as_deref())?,
        }
        .in_whole_hours(),
        by: by.clone(),
    };
    let calls = call_record(&app)?;
    if owners == SummedOwners::All {
        let most = app.engine().store().limits().call_groups;
        let sums = sum_owners(calls, &sum, most).await?;
        return Ok(Json(UsageDocument::from_owners(&by, &sums)));
    }
    let sums = calls.sum_calls(&owner, sum).await;
    let sums = sums.map_err(EngineError::from)?;
    Ok(Json(UsageDocument::from_sums(&by, &sums)))
}
