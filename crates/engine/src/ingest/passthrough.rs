//! What is stored with an answer whose request was passed through, not compiled.

use std::sync::Arc;

use contexture_ir::{FinishReason, PathHash, Raw};
use contexture_store::ResponseInputs;
use serde::{Deserialize, Serialize};

/// What is stored as the inputs of the answer.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RelayedInputs {
    pub(super) relayed: RelayedCall,
}

/// A call that was passed on.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RelayedCall {
    /// The hash of the history with the answer, by which a request goes on that only names it.
    pub(super) path: String,
    /// The version of that hash.
    pub(super) version: u32,
    /// The provider's id of the answer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) response: Option<String>,
    /// Why it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) finish: Option<String>,
    /// What it cost, in 10⁻¹² dollars, as far as prices are known.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) pico_dollars: Option<u64>,
    /// Model, tools and options, as a document of our own items.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) request: Option<Raw>,
}

impl RelayedCall {
    /// What was kept of an answer; `None` if it was compiled, or is gone.
    pub(super) fn from_inputs(inputs: &ResponseInputs) -> Option<Self> {
        let relayed: RelayedInputs = serde_json::from_slice(inputs.recorded_bytes()?).ok()?;
        Some(relayed.relayed)
    }

    /// The hash of the history with the answer.
    pub(super) fn history_hash(&self, version: u32) -> Option<PathHash> {
        self.path.parse().ok().filter(|_| self.version == version)
    }

    /// As it is stored: without the request where that is too much.
    pub(super) fn into_inputs(mut self, most: usize) -> ResponseInputs {
        // An answer that was paid for is not refused for the request beside it.
        let too_much = |raw: &Raw| raw.get().len() > most;
        self.request = self.request.filter(|request| !too_much(request));
        let bytes = serde_json::to_vec(&RelayedInputs { relayed: self });
        // Strings and numbers: nothing that could not be written.
        let bytes = bytes.ok().filter(|bytes| !bytes.is_empty());
        bytes.map_or(ResponseInputs::None, |bytes| {
            ResponseInputs::Recorded(Arc::from(bytes))
        })
    }

    pub(super) fn finish_text(reason: Option<&FinishReason>) -> Option<String> {
        reason.map(|reason| reason.as_str().to_owned())
    }
}
