//! What is stored of a call with its answer, so that the call can be compiled again.
//!
//! The path, the plan, pins and compactions in effect are on the tree; only what is not there is stored here.
//!
//! Not here: compiling it again (`replay`).

use contexture_catalogue::Encoding;
use contexture_compile::{COMPILER, store_call};
use contexture_ir::{FinishReason, Raw, ResponseId, ResponseInfo};
use contexture_store::{ResponseInputs, ResponseRecord, ResponseStatus};
use serde::de::IgnoredAny;
use serde::{Deserialize, Serialize};

use super::compile::CompiledCall;
use super::sent_call::SentCall;
use crate::handle::{Engine, RecordLevel};

/// The version of [`CallRecord`].
pub(crate) const CALL_RECORD_VERSION: u32 = 1;

/// What is stored as the inputs of an answer.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CallRecord {
    pub(crate) version: u32,
    /// Who compiled it.
    pub(crate) compiler: String,
    /// The key of its plan.
    pub(crate) plan: String,
    pub(crate) encoding: Encoding,
    /// The hash of the payload's bytes.
    pub(crate) hash: String,
    /// Length of the payload in bytes.
    pub(crate) bytes: usize,
    /// The tokens that were counted for it. Not there in older records.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) tokens: Option<u64>,
    /// The request and the contributions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) call: Option<Raw>,
    /// The payload, if it is stored whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(crate) payload: Option<String>,
}

/// Whether the stored inputs are those of a request that was passed on, of which `ingest` keeps other things.
pub(crate) fn is_passed_through(inputs: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Inputs {
        #[serde(rename = "relayed")]
        _relayed: IgnoredAny,
    }
    serde_json::from_slice::<Inputs>(inputs).is_ok()
}

/// How an answer came, by what it says of its end. One that says nothing of it broke off.
pub(crate) const fn response_status(info: &ResponseInfo) -> ResponseStatus {
    match info.finish {
        None | Some(FinishReason::Length | FinishReason::ContentFilter) => {
            ResponseStatus::Incomplete
        }
        Some(_) => ResponseStatus::Completed,
    }
}

/// The record of a call and its answer.
pub(crate) fn response_record(
    engine: &Engine,
    id: ResponseId,
    call: &SentCall,
    info: &ResponseInfo,
) -> ResponseRecord {
    let usage = info.usage.as_ref();
    let usage = usage.and_then(|usage| serde_json::to_string(usage).ok());
    ResponseRecord {
        status: response_status(info),
        model: Some(call.model.clone()),
        usage: usage.map(Into::into),
        inputs: ResponseInputs::Recorded(call.stored_inputs()),
        ..ResponseRecord::new(id, call.base, engine.now_ms())
    }
}

/// Returns what a call was compiled from, as it is stored. Never an error: what cannot be kept whole is kept as hashes.
pub(crate) fn encode_inputs(engine: &Engine, call: &CompiledCall) -> Raw {
    let mut record = CallRecord {
        version: CALL_RECORD_VERSION,
        compiler: COMPILER.to_owned(),
        plan: call.plan_key.clone(),
        encoding: call.inputs.encoding,
        hash: call.payload.content_hash().to_string(),
        bytes: call.payload.len(),
        tokens: Some(call.report.totals.tokens),
        call: None,
        payload: None,
    };
    // Encoded before the inputs are added: this is what is stored if the whole record may not be.
    let hashes = encode_record(&record);
    let level = engine.record_level();
    if level == RecordLevel::Hashes {
        return hashes;
    }
    if !call.inputs.passes.is_empty() {
        // Code is not kept, so the call could not be compiled again.
        return hashes;
    }
    record.call = store_call(&call.inputs.request, &call.inputs.contributions).ok();
    record.payload = (level == RecordLevel::Payload).then(|| call.payload.to_json());
    let full = encode_record(&record);
    // An answer that cost money is not refused for what is kept beside it, and no secret is kept.
    // Half of the limit, because the answer needs the rest of the record.
    let fits = full.get().len() <= engine.store().limits().response_bytes / 2;
    // Redacting the record would make a replay differ; dropping it keeps the secret out and says so.
    let secret = engine
        .secrets()
        .is_some_and(|secrets| secrets.redact(full.get()) != full.get());
    match fits && !secret {
        true => full,
        false => hashes,
    }
}

fn encode_record(record: &CallRecord) -> Raw {
    // Strings, numbers and JSON: nothing that could not be written.
    Raw::from_value(record).unwrap_or_else(|_| Raw::null())
}
