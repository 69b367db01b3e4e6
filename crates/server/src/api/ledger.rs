//! The savings ledger: what calls under policies cost, beside what they would have cost as clients sent them.
//!
//! It is read from the record of calls. Sums that earlier versions kept as values of the store are added: an entry for each
//! day of an owner, and a sum for each conversation.

use std::collections::BTreeMap;

use axum::extract::State;
use contexture::ir::{CallId, ConversationId};
use contexture::store::{
    CallFilter, CallGrouping, CallOrder, CallSum, Calls, Error as StoreError, KeyScope, ListCalls,
    ListEntries, SumCalls, list_all_entries,
};
use contexture::{Engine, EngineError, Owner};
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::calls::call_record;
use crate::api::conventions::conversation_path::open_conversation;
use crate::api::conventions::error_responses::ReadRefusals;
use crate::api::conventions::page;
use crate::http::extractors::{Json, Query, ReadAccess};
use crate::problem::Problem;
use crate::state::App;
use contexture_api::{
    LedgerDayDocument, LedgerDocument, LedgerEntryDocument, LedgerSumDocument, UsageDocument,
};

/// The name of the list, for cursors.
const LIST: &str = "ledger";
/// Where earlier versions kept the sum of a conversation, and those of an owner's days.
const EARLIER_SUM: &str = "ledger/sum";
const EARLIER_DAYS: &str = "ledger/day/";

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(show_ledger))
}

/// The calls of the ledger to return.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct LedgerParams {
    /// Id of the conversation. Default: the sums of all conversations, day by day.
    conversation: Option<String>,
    /// Maximum number of calls, from 1 to 500. Default: 100.
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// Returns the ledger: what was sent beside what came, call by call or day by day, losses included.
#[utoipa::path(
    get, path = "/ledger", tag = "requests", params(LedgerParams),
    responses((status = 200, description = "The ledger", body = LedgerDocument), ReadRefusals)
)]
async fn show_ledger(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Query(whose): Query<LedgerParams>,
) -> Result<Json<LedgerDocument>, Problem> {
    let limit = page::page_length(whose.limit, 100)?;
    let after = whose.after.as_deref();
    let after: Option<String> = after
        .map(|after| page::decode_cursor(&owner, LIST, after))
        .transpose()?;
    let calls = call_record(&app)?;
    let Some(id) = &whose.conversation else {
        let document = load_owner_ledger(app.engine(), calls, &owner).await;
        return Ok(Json(document.map_err(EngineError::from)?));
    };
    let chat = open_conversation(&app, &owner, id, None).await?;
    let list = ListCalls {
        filter: CallFilter {
            conversation: Some(chat.id().clone()),
            ..CallFilter::default()
        },
        order: CallOrder::OldestFirst,
        after: after.and_then(|after| after.parse().ok()),
        limit: Some(limit),
    };
    let found = load_conversation_ledger(app.engine(), calls, &owner, chat.id(), list).await;
    let (document, next) = found.map_err(EngineError::from)?;
    let next = next.map(|next| page::encode_cursor(&owner, LIST, &next.to_string()));
    Ok(Json(LedgerDocument { next, ..document }))
}

/// Loads calls of a conversation with their total, and the last of them if there are more.
async fn load_conversation_ledger(
    engine: &Engine,
    calls: &dyn Calls,
    owner: &Owner,
    conversation: &ConversationId,
    list: ListCalls,
) -> Result<(LedgerDocument, Option<CallId>), StoreError> {
    let sum = SumCalls {
        filter: list.filter.clone(),
        by: Vec::new(),
    };
    let sums = calls.sum_calls(owner, sum).await?;
    let scope = KeyScope::Conversation(conversation.clone());
    let earlier = engine.store().get_entry(owner, &scope, EARLIER_SUM).await?;
    let earlier = earlier.map_or_else(LedgerSumDocument::default, |entry| {
        parse_earlier_sum(&entry.value)
    });
    let total = sums
        .iter()
        .fold(earlier, |total, (_, sum)| total.combined_with(&sum.into()));
    let page = calls.list_calls(owner, list).await?;
    let document = LedgerDocument {
        conversation: Some(conversation.to_string()),
        total,
        entries: page
            .calls
            .iter()
            .filter_map(LedgerEntryDocument::from_call)
            .collect(),
        ..LedgerDocument::default()
    };
    Ok((document, page.next))
}

/// A damaged sum must not hide the others.
fn parse_earlier_sum(value: &[u8]) -> LedgerSumDocument {
    serde_json::from_slice(value).unwrap_or_default()
}

/// Loads the days of an owner, with their total.
async fn load_owner_ledger(
    engine: &Engine,
    calls: &dyn Calls,
    owner: &Owner,
) -> Result<LedgerDocument, StoreError> {
    let mut days: BTreeMap<String, LedgerSumDocument> = BTreeMap::new();
    let mut add = |day: String, sum: LedgerSumDocument| {
        let known = days.entry(day).or_default();
        *known = known.combined_with(&sum);
    };
    // All of them at once: there is one entry a day, and the total needs every day.
    let list = ListEntries::in_scope(KeyScope::Owner, EARLIER_DAYS);
    for (_, entry) in list_all_entries(&**engine.store(), owner, list).await? {
        let day = entry.key.strip_prefix(EARLIER_DAYS).unwrap_or_default();
        add(day.to_owned(), parse_earlier_sum(&entry.value));
    }
    let by = vec![CallGrouping::Day];
    let sum = SumCalls {
        filter: CallFilter::default(),
        by: by.clone(),
    };
    let sums = calls.sum_calls(owner, sum).await?;
    let sums: Vec<_> = sums
        .into_iter()
        .filter(|(_, sum): &(_, CallSum)| sum.predicted > 0)
        .collect();
    let usage = UsageDocument::from_sums(&by, &sums);
    for (group, (_, sum)) in usage.groups.into_iter().zip(&sums) {
        add(group.day.unwrap_or_default(), sum.into());
    }
    let mut document = LedgerDocument::default();
    for (day, sum) in days {
        document.total = document.total.combined_with(&sum);
        document.days.push(LedgerDayDocument { day, sum });
    }
    Ok(document)
}
