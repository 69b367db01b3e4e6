//! What a call would be with another model, window or policy: the next one of a branch, or a past one. Nothing is stored.

use contexture::compile::{CacheUsage, CallBand, Rates, Report};
use contexture::ir::{CallId, Cancel, NodeId, Owner, Raw};
use contexture::store::{CallFilter, ListCalls, PathEnd, ReadRequest, find_last_response};
use contexture::wire::replace_history;
use contexture::{Conversation, Engine, EngineError, Format};

use super::past_call::compare_requests;
use crate::documents::{CompileDocument, DifferenceDocument, WhatIfDocument, dollars};
use crate::operations::compile::compile_conversation_at;
use crate::operations::{CompilePurpose, Host, OperationError};

/// Newest calls of a conversation that are looked through for the one that gave an answer.
const NEWEST_CALLS: usize = 100;
/// Newest items of a path that are looked through for an answer.
const NEWEST_ITEMS: u64 = 256;

/// Compiles a call as it would be with another model, window or policy, and compares it with the last one that was sent on the branch.
/// Nothing is stored: a policy's compaction is not made, and what it would cover is cut instead. Without a model and a format both are
/// those of that last call.
///
/// # Errors
/// As those of [`compile_conversation`](crate::operations::compile_conversation).
pub async fn compile_what_if(
    chat: &Conversation,
    asked: &CompileDocument,
    host: &Host<'_>,
    cancel: &Cancel,
) -> Result<WhatIfDocument, OperationError> {
    let before = find_last_request(chat, PathEnd::Branch(chat.branch()), None).await?;
    let mut asked = asked.clone();
    // A call in another format has no prefix in common with the last one.
    if asked.model.is_none() && asked.to.is_none() {
        asked.to = before.as_ref().map(|before| before.format.to_string());
    }
    describe_what_if(chat, &asked, host, None, before, cancel).await
}

/// Compiles a past call as it would have been with another model, window or policy, and compares it with the call before it on its
/// path. Nothing is stored. Without a model, model and format are those of the call; without a policy there is none. `None` if the
/// owner has no call of this id.
///
/// # Errors
/// As those of [`compile_conversation`](crate::operations::compile_conversation), and one that says so for a call whose history is
/// not stored.
pub async fn compile_call_what_if(
    engine: &Engine,
    owner: &Owner,
    id: CallId,
    asked: &CompileDocument,
    host: &Host<'_>,
    cancel: &Cancel,
) -> Result<Option<WhatIfDocument>, OperationError> {
    let Some(past) = engine.past_call(owner, id).await? else {
        return Ok(None);
    };
    let no_history = |why: &str| OperationError::member("call", why);
    let base = past.base().await?;
    let base = base.map_err(|why| no_history(&why.to_string()))?;
    let (Some(chat), Some(base)) = (past.conversation(), base) else {
        return Err(no_history("nothing of its history is stored"));
    };
    let record = past.record();
    let mut asked = asked.clone();
    if asked.model.is_none() && !record.names.model.is_empty() {
        asked.model = Some(record.names.model.clone());
        let format = &record.details.format;
        asked.to = asked
            .to
            .or_else(|| (!format.is_empty()).then(|| format.clone()));
    }
    // The call itself too, since several may begin in one millisecond; its answer is not on the path to its base.
    let until_ms = Some(record.id.time_ms().saturating_add(1));
    let before = find_last_request(chat, PathEnd::Node(base), until_ms).await?;
    let told = describe_what_if(chat, &asked, host, Some(base), before, cancel).await?;
    Ok(Some(told))
}

/// Compiles a call, and compares it with the request before it.
async fn describe_what_if(
    chat: &Conversation,
    asked: &CompileDocument,
    host: &Host<'_>,
    at: Option<NodeId>,
    before: Option<LastRequest>,
    cancel: &Cancel,
) -> Result<WhatIfDocument, OperationError> {
    let purpose = CompilePurpose::Explanation;
    let compiled = compile_conversation_at(chat, asked, host, purpose, at, cancel).await?;
    let call = compiled.call;
    let payload = match &before {
        // A proxy leaves all else of its client's request as it came.
        Some(before)
            if before.is_clients && call.report.target.format == before.format.as_str() =>
        {
            replace_history(before.format, &before.json, &call.payload.to_json())
                .map_err(EngineError::from)?
        }
        _ => call.payload.to_json(),
    };
    let report = &call.report;
    let (now, next) = call_costs(chat, report);
    let (mut against, mut difference) = (None, None);
    if let Some(before) = before {
        // Requests of two formats have nothing that a cache could have in common.
        if Some(before.format) == report.target.format.parse().ok() {
            let requests = [before.json.as_str(), payload.as_str()];
            let model = Some(report.target.model.as_str());
            let found = compare_requests(chat.engine(), before.format, model, requests)?;
            difference = Some(DifferenceDocument::new(&found, before.is_exact));
        }
        against = Some(before.call);
    }
    Ok(WhatIfDocument {
        report: Raw::from_value(report).map_err(EngineError::from)?,
        band: (&CallBand::from_report(report)).into(),
        payload: Raw::parse(payload).map_err(EngineError::from)?,
        dollars: now.map(|pico| dollars(pico.into())),
        next_dollars: next.map(dollars),
        against,
        difference,
    })
}

/// Returns what the input of a call costs, and what that of the next one costs that has nothing new, in 10⁻¹² dollars.
fn call_costs(chat: &Conversation, report: &Report) -> (Option<u64>, Option<u128>) {
    let cache = &report.cache;
    let spec = chat.engine().catalogue().resolve(&report.target.model).ok();
    let tokens = cache.predicted.total_tokens();
    let rates = spec.and_then(|spec| Rates::for_request(&spec.prices, cache.kind, tokens));
    let is_kept = cache.retention_seconds > 0;
    let next = rates.map(|rates| {
        let used = match is_kept {
            true => CacheUsage {
                read: tokens,
                ..CacheUsage::default()
            },
            false => CacheUsage {
                fresh: tokens,
                ..CacheUsage::default()
            },
        };
        used.input_cost(&rates)
    });
    (cache.cost, next)
}

/// The last request that was sent on a path.
struct LastRequest {
    call: String,
    format: Format,
    json: String,
    is_exact: bool,
    /// Whether a client sent it through the proxy.
    is_clients: bool,
}

/// Finds the last request whose answer is on a path, of the calls that came before a time.
async fn find_last_request(
    chat: &Conversation,
    end: PathEnd,
    until_ms: Option<i64>,
) -> Result<Option<LastRequest>, OperationError> {
    let engine = chat.engine();
    let request = ReadRequest::last_nodes(end, NEWEST_ITEMS);
    let response = find_last_response(&**engine.store(), chat.owner(), chat.id(), request);
    let response = response.await.map_err(EngineError::from)?;
    let (Some(response), Some(calls)) = (response, engine.store().calls()) else {
        return Ok(None);
    };
    let list = ListCalls {
        filter: CallFilter {
            conversation: Some(chat.id().clone()),
            until_ms,
            ..CallFilter::default()
        },
        limit: Some(NEWEST_CALLS),
        ..ListCalls::default()
    };
    let rows = calls.list_calls(chat.owner(), list).await;
    let rows = rows.map_err(EngineError::from)?.calls;
    let Some(row) = rows.iter().find(|row| row.response == Some(response)) else {
        return Ok(None);
    };
    let Some(past) = engine.past_call(chat.owner(), row.id).await? else {
        return Ok(None);
    };
    let sent = past.request_as_sent().await?;
    Ok(sent.ok().map(|sent| LastRequest {
        call: format!("req_{}", row.id),
        format: sent.format,
        json: sent.json,
        is_exact: sent.is_exact,
        is_clients: past.record().body_hash.is_some(),
    }))
}
