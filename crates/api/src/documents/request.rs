//! Proxied requests: what was forwarded to a provider, and what became of it here.

use contexture::catalogue::Cost;
use contexture::engine::{Ingested, Recorded, Withdrawal};
use contexture::ir::ConversationId;
use contexture::store::CallRecord;
use serde::Serialize;
use utoipa::ToSchema;

use crate::documents::CacheUseDocument;
use crate::documents::calls::format_call_id;

/// A request that was forwarded to a provider, and its outcome in Contexture.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RequestDocument {
    /// Id of the request, as in the header `x-contexture-request`.
    pub id: String,
    /// Name of the upstream that it was forwarded to.
    pub upstream: String,
    /// Id of its conversation; `null` if it has none or none is known yet.
    pub conversation: Option<String>,
    /// Name of the branch that it is on; `null` unless it is stored, or if it was taken back because no model answered.
    pub branch: Option<String>,
    /// How its conversation was found: `explicit`, `prefix`, `retry` or `new`; `null` unless it was stored.
    pub matched: Option<String>,
    /// Id of the node of its last item; `null` unless it is stored.
    pub node: Option<String>,
    /// Number of its items that were not stored before.
    pub appended: usize,
    /// Milliseconds that it waited, before it was matched, for earlier answers to be stored; `null` until it was matched.
    pub waited_ms: Option<u64>,
    /// Whether it was matched before an answer that it may hold was stored, because that took too long: it may be on a
    /// branch or in a conversation of its own.
    pub raced: bool,
    /// Name of the policy that applied; `null` if none did.
    pub policy: Option<String>,
    /// Tokens that the rewrite saved, negative if it added some; `null` if the request was not rewritten.
    pub tokens_saved: Option<i64>,
    /// Expected cache use of the request that was sent; `null` without a policy that may rewrite it.
    pub predicted: Option<CacheUseDocument>,
    /// The answer; `null` until it is stored.
    pub answer: Option<AnswerDocument>,
    /// Step that failed in Contexture while the request was forwarded: `request`, `answer`, `store`, `rewrite`,
    /// `timeout`, `refused`, `signed`, `overload` or `fault`, or `damaged` for an answer that is stored though
    /// bytes of it are not UTF-8; `null` if none did.
    pub failed: Option<String>,
    /// Reason for the failure; `null` if nothing failed.
    pub why: Option<String>,
    /// Whether this outcome is final.
    pub done: bool,
}

/// An answer that was stored, with its usage.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AnswerDocument {
    /// Id under which the answer is stored.
    pub response: String,
    /// Id of the head of its branch after the answer.
    pub head: Option<String>,
    /// Name of the branch that the answer is on; `null` if only the record of calls is left of it.
    pub branch: Option<String>,
    /// Tokens of the request, as the provider reported them; `null` if it did not.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer, as the provider reported them; `null` if it did not.
    pub output_tokens: Option<u64>,
    /// Tokens of the request that came from the provider's cache, as it reported them; `null` if it did not.
    pub cache_read_tokens: Option<u64>,
    /// Cost of request and answer in 10⁻¹² dollars, as far as prices are known; `null` if unknown.
    pub pico_dollars: Option<u128>,
}

impl From<&CallRecord> for RequestDocument {
    /// What the record of calls has of a request.
    fn from(call: &CallRecord) -> Self {
        let details = &call.details;
        let tokens = details.tokens;
        let answer = call.response.map(|response| AnswerDocument {
            response: response.to_string(),
            head: None,
            branch: None,
            input_tokens: tokens.map(|tokens| tokens.input),
            output_tokens: tokens.map(|tokens| tokens.output),
            cache_read_tokens: tokens.map(|tokens| tokens.cache_read),
            pico_dollars: details.pico_dollars.map(u128::from),
        });
        Self {
            id: format_call_id(call.id),
            upstream: call.names.upstream.clone(),
            conversation: call.conversation.as_ref().map(ToString::to_string),
            policy: Some(call.names.policy.clone()).filter(|policy| !policy.is_empty()),
            predicted: details.prediction.map(|predicted| predicted.sent.into()),
            answer,
            done: true,
            ..Self::default()
        }
    }
}

impl RequestDocument {
    /// Records a failure, in place of an earlier one.
    pub fn set_failure(&mut self, what: &str, why: &str) {
        // A later failure replaces an earlier one, because `x-contexture-failed` has room for one
        // word.
        self.failed = Some(what.to_owned());
        self.why = Some(why.to_owned());
    }

    /// Creates the document of a request that has just arrived.
    #[must_use]
    pub fn for_upstream(upstream: &str, conversation: Option<&ConversationId>) -> Self {
        Self {
            upstream: upstream.to_owned(),
            // Only if the client named it. In all other cases it is known once the request is
            // stored.
            conversation: conversation.map(ToString::to_string),
            ..Self::default()
        }
    }

    /// Returns whether the request is stored, or will never be.
    #[must_use]
    pub fn is_stored(&self) -> bool {
        // `done` without a match means that storing failed: nobody should wait on.
        self.matched.is_some() || self.done
    }

    /// Returns the predicted cache use in a word, with tokens read and tokens in all: `hit=1024/1200`.
    #[must_use]
    pub fn cache_prediction(&self) -> Option<String> {
        let CacheUseDocument { read, .. } = self.predicted?;
        let word = if read > 0 { "hit" } else { "miss" };
        Some(format!("{word}={read}/{}", self.predicted?.tokens()))
    }

    /// Records the conversation and the nodes that the request was stored as.
    pub fn set_ingested(&mut self, ingested: &Ingested) {
        self.conversation = Some(ingested.chat.id().to_string());
        self.branch = Some(ingested.chat.branch().to_string());
        self.matched = Some(ingested.matched.as_str().to_owned());
        self.node = ingested.head.map(|head| head.to_string());
        self.appended = ingested.appended.len();
    }

    /// Records how long it waited for earlier answers.
    pub fn set_wait(&mut self, ingested: &Ingested) {
        self.waited_ms = u64::try_from(ingested.waited.as_millis()).ok();
        self.raced = ingested.raced;
    }

    /// Records what is left of it, because no model answered.
    pub fn set_withdrawal(&mut self, withdrawal: Withdrawal) {
        // `matched` stays: it says how the request was recognised, and that waiting for it is over.
        match withdrawal {
            Withdrawal::ConversationDeleted => {
                self.conversation = None;
                self.branch = None;
                self.node = None;
                self.appended = 0;
            }
            // Its nodes are stored, on no branch.
            Withdrawal::BranchRestored => self.branch = None,
            _ => {}
        }
    }

    /// Records the stored answer and what it cost, as far as prices are known.
    pub fn set_answer(&mut self, recorded: &Recorded, cost: Option<Cost>) {
        let usage = recorded.usage.as_ref();
        self.answer = Some(AnswerDocument {
            response: recorded.response.to_string(),
            head: recorded.head.map(|head| head.to_string()),
            branch: Some(recorded.branch.to_string()),
            input_tokens: usage.and_then(|usage| usage.input_tokens),
            output_tokens: usage.and_then(|usage| usage.output_tokens),
            cache_read_tokens: usage.and_then(|usage| usage.cache_read_tokens),
            pico_dollars: cost.map(|cost| cost.pico_dollars),
        });
    }
}
