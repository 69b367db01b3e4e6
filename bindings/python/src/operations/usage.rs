//! The record of calls: what was asked of providers, and what it used and cost.

use contexture::Owner;
use contexture::ir::CallId;
use contexture::store::{CallFilter, CallGrouping, CallOutcome, Calls, ListCalls, SumCalls};
use contexture_api::operations::{self, CallPart, parse_call_id};
use contexture_api::{CallDocument, CallsDocument, UsageDocument, parse_time};
use serde::Deserialize;

use super::{Reply, Scope};
use crate::failure::Failure;

/// The calls that are meant.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct CallsRequest {
    /// Time as people write it: a day, a time, or how long ago.
    since: Option<String>,
    until: Option<String>,
    model: Option<String>,
    policy: Option<String>,
    outcome: Option<String>,
    /// What sums are grouped by.
    #[serde(default)]
    by: Vec<String>,
    limit: Option<usize>,
    after: Option<String>,
}

impl CallsRequest {
    fn filter(&self, scope: &Scope<'_>) -> Result<CallFilter, Failure> {
        let now_ms = scope.engine.now_ms();
        let time = |name: &str, text: &Option<String>| {
            let text = text.as_deref();
            let parsed = text.map(|text| parse_time(text, now_ms)).transpose();
            parsed.map_err(|detail| Failure::argument(name, detail))
        };
        let conversation = scope.request.conversation.as_ref();
        let outcome = self.outcome.as_deref().map(|word| {
            let words = || CallOutcome::ALL.map(CallOutcome::as_str).join(", ");
            CallOutcome::from_word(word)
                .ok_or_else(|| Failure::argument("outcome", format!("expected one of {}", words())))
        });
        Ok(CallFilter {
            since_ms: time("since", &self.since)?,
            until_ms: time("until", &self.until)?,
            conversation: conversation.map(|_| scope.conversation_id()).transpose()?,
            model: self.model.clone(),
            policy: self.policy.clone(),
            outcome: outcome.transpose()?,
            ..CallFilter::default()
        })
    }
}

/// Returns the record of calls.
///
/// # Errors
/// The store keeps none.
fn call_record<'a>(scope: &Scope<'a>) -> Result<(&'a dyn Calls, Owner), Failure> {
    let none = || Failure::new("not_found", "this database keeps no record of calls");
    let calls = scope.engine.store().calls().ok_or_else(none)?;
    Ok((calls, scope.owner()?))
}

pub(super) async fn list_calls(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: CallsRequest = scope.parse()?;
    let after = asked.after.as_deref().map(parse_call).transpose()?;
    let list = ListCalls {
        filter: asked.filter(scope)?,
        after,
        limit: asked.limit,
        ..ListCalls::default()
    };
    let (calls, owner) = call_record(scope)?;
    let page = calls.list_calls(&owner, list).await?;
    Reply::new(&CallsDocument {
        calls: page.calls.iter().map(CallDocument::from).collect(),
        next: page.next.map(|next| next.to_string()),
        total: None,
    })
}

fn parse_call(text: &str) -> Result<CallId, Failure> {
    let wrong = || Failure::argument("call", format!("{text:?} is no id of a call"));
    parse_call_id(text).ok_or_else(wrong)
}

/// A past call.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PastCallRequest {
    id: String,
    /// Parts to show beside the figures: `sent`, `came`, `report`, `answer`.
    include: Vec<String>,
}

pub(super) async fn describe_call(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: PastCallRequest = scope.parse()?;
    let part = |word: &String| {
        CallPart::from_word(word).ok_or_else(|| {
            let words = CallPart::ALL.map(CallPart::as_str).join(", ");
            Failure::argument("include", format!("{word:?} is none of {words}"))
        })
    };
    let parts = asked
        .include
        .iter()
        .map(part)
        .collect::<Result<Vec<_>, _>>()?;
    let (_, owner) = call_record(scope)?;
    let call = parse_call(&asked.id)?;
    let found = operations::describe_call(scope.engine, &owner, call, &parts).await?;
    let none = || Failure::new("not_found", format!("call {:?} not found", asked.id));
    Reply::new(&found.ok_or_else(none)?)
}

pub(super) async fn sum(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: CallsRequest = scope.parse()?;
    let grouping = |word: &String| {
        CallGrouping::from_word(word).ok_or_else(|| {
            let words = CallGrouping::ALL.map(CallGrouping::as_str).join(", ");
            Failure::argument("by", format!("{word:?} is none of {words}"))
        })
    };
    let by = asked
        .by
        .iter()
        .map(grouping)
        .collect::<Result<Vec<_>, _>>()?;
    let filter = asked.filter(scope)?.in_whole_hours();
    let (calls, owner) = call_record(scope)?;
    let sum = SumCalls {
        filter,
        by: by.clone(),
    };
    let sums = calls.sum_calls(&owner, sum).await?;
    Reply::new(&UsageDocument::from_sums(&by, &sums))
}
