//! Rows of the record of calls for exchanges that the engine makes itself or is told of, and what an answer costs.
//!
//! Not here: rows of requests that a server passes on, which it fills in while they pass (`contexture-server`).

use contexture_catalogue::{Cost, Usage as Billed};
use contexture_compile::{CallBand, Report};
use contexture_ir::{
    CallId, ConversationId, FinishReason, NodeId, Owner, ResponseInfo, Transcript, Usage,
};
use contexture_models::ModelError;
use contexture_store::rules::{call_figure, call_money, call_name, call_tokens};
use contexture_store::{CallOutcome, CallRecord};
use contexture_telemetry::provider_of;
use contexture_wire::{Format, long_cache_write};
use uuid::Uuid;

use super::Engine;

/// How an exchange with a provider went, beside what its answer says.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CallTiming {
    /// Milliseconds from the request to the end of the answer. Default 0: not known.
    pub duration_ms: u64,
    /// Milliseconds from the request to the first part of the answer; `None` if none came or it is not known.
    pub first_byte_ms: Option<u64>,
    /// Times that the provider was asked. Default 1.
    pub attempts: u32,
    /// Whether the answer was cut off. Default: by its finish reason.
    pub is_cut_off: bool,
}

impl Default for CallTiming {
    fn default() -> Self {
        Self {
            duration_ms: 0,
            first_byte_ms: None,
            attempts: 1,
            is_cut_off: false,
        }
    }
}

/// Returns the id of an exchange that begins now.
pub(crate) fn new_call_id() -> CallId {
    // By the machine's clock, as servers make theirs: a clock for tests counts how often it is read.
    CallId::from_bytes(Uuid::now_v7().into_bytes())
}

/// Returns the id of an exchange that ended at this time and gave the answer with this key: the same for the same answer.
pub(crate) fn answered_call_id(ended_ms: i64, timing: CallTiming, key: NodeId) -> CallId {
    let duration_ms = i64::try_from(call_figure(timing.duration_ms)).unwrap_or(0);
    let [random @ .., _, _, _, _, _, _] = *key.as_bytes();
    CallId::from_time(ended_ms.saturating_sub(duration_ms), random)
}

/// Begins the row of an exchange with a model that was asked in a format.
pub(crate) fn begin_row(id: CallId, format: Format, model: &str, timing: CallTiming) -> CallRecord {
    let mut row = CallRecord::new(id, provider_of(format));
    row.names.model = call_name(model);
    format.as_str().clone_into(&mut row.details.format);
    row.details.duration_ms = call_figure(timing.duration_ms);
    row.details.first_byte_ms = timing.first_byte_ms.map(call_figure);
    row.details.attempts = timing.attempts;
    if timing.is_cut_off {
        row.outcome = CallOutcome::Incomplete;
    }
    row
}

/// Fills in what an answer says, and what it cost.
pub(crate) fn set_row_answer(engine: &Engine, row: &mut CallRecord, info: &ResponseInfo) {
    let finish = info.finish.as_ref();
    row.details.finish = finish.map(|finish| call_name(finish.as_str()));
    if matches!(finish, Some(FinishReason::Length)) {
        row.outcome = CallOutcome::Incomplete;
    }
    if let Some(usage) = &info.usage {
        row.details.tokens = Some(call_tokens(usage));
        let cost = usage_cost(engine, &row.names.model, usage);
        let known = cost.and_then(|cost| cost.known_pico_dollars());
        row.details.pico_dollars = known.map(call_money);
    }
}

/// Returns how an exchange ended that gave an error instead of an answer.
pub(crate) const fn failed_outcome(error: &ModelError) -> CallOutcome {
    match error {
        ModelError::Unreachable { .. }
        | ModelError::Untrusted { .. }
        | ModelError::Timeout { .. } => CallOutcome::Unreachable,
        // Something was answered, though nobody can read it.
        ModelError::Malformed { .. } => CallOutcome::Incomplete,
        _ => CallOutcome::Refused,
    }
}

/// Fills in what a compiled request was made of.
pub(crate) fn set_row_band(row: &mut CallRecord, report: &Report) {
    row.band = Some(CallBand::from_report(report).to_bytes().into());
}

/// Stores the row of an exchange that no append comes with. A row that is not stored changes nothing else, so a failure is
/// logged and no more.
pub(crate) async fn store_row(
    engine: &Engine,
    owner: &Owner,
    conversation: Option<&ConversationId>,
    row: CallRecord,
) {
    let Some(calls) = engine.store().calls() else {
        return;
    };
    let row = CallRecord {
        conversation: conversation.cloned(),
        ..row
    };
    if let Err(error) = calls.record_calls(owner, vec![row]).await {
        tracing::warn!(%error, "a call is not in the record");
    }
}

/// Returns what an answer with this usage costs, as far as the catalogue has prices.
pub(crate) fn answer_cost(engine: &Engine, answer: &Transcript) -> Option<Cost> {
    let usage = answer.response.as_ref()?.usage.as_ref()?;
    usage_cost(engine, answer.model.as_deref()?, usage)
}

/// Returns what this usage of a model costs, as far as the catalogue has prices; `None` for an unknown model.
fn usage_cost(engine: &Engine, model: &str, usage: &Usage) -> Option<Cost> {
    let model = engine.catalogue().resolve(model);
    Some(model.ok()?.prices.cost(&billed_usage(usage)))
}

/// Usage as it is billed: each token on one meter.
fn billed_usage(usage: &Usage) -> Billed {
    let (read, write) = (usage.cache_read_tokens, usage.cache_write_tokens);
    let cached = read.unwrap_or(0).saturating_add(write.unwrap_or(0));
    let hour = one_hour_write_tokens(usage);
    let mut billed = Billed::default();
    // Input is reported with what the cache read and wrote, which are billed at other prices.
    billed.input = usage.input_tokens.map(|input| input.saturating_sub(cached));
    billed.output = usage.output_tokens;
    billed.cache_read = read;
    billed.cache_write = write.map(|write| write.saturating_sub(hour.unwrap_or(0)));
    billed.cache_write_1h = hour;
    billed
}

/// The tokens that were written to the cache for an hour: some of those that were written.
fn one_hour_write_tokens(usage: &Usage) -> Option<u64> {
    // What is said can exceed the count of all writes only by mistake.
    long_cache_write(usage).map(|hour| hour.min(usage.cache_write_tokens.unwrap_or(0)))
}
