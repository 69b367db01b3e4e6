//! Proxied requests: what was forwarded to a provider, and what became of it here.

use contexture::catalogue::Cost;
use contexture::ir::ConversationId;
use contexture::{Ingested, Recorded};
use serde::Serialize;
use utoipa::ToSchema;

use crate::documents::CacheUseDocument;

/// A request that was passed on to a provider, and what became of it here.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct RequestDocument {
    /// Its id, as in `x-contexture-request`.
    pub id: String,
    /// The upstream it went to.
    pub upstream: String,
    /// The conversation it belongs to.
    pub conversation: Option<String>,
    /// The branch it is on.
    pub branch: Option<String>,
    /// How it was matched: `explicit`, `prefix`, `retry` or `new`.
    pub matched: Option<String>,
    /// The last node of what it said.
    pub node: Option<String>,
    /// How many items were new.
    pub appended: usize,
    /// The policy that it got.
    pub policy: Option<String>,
    /// How many tokens less were sent than came, if something else was sent; less than nothing if more.
    pub tokens_saved: Option<i64>,
    /// What of the request that was sent is expected to come from the provider's cache, under a policy that may change
    /// it; the answer says what did.
    pub predicted: Option<CacheUseDocument>,
    /// The answer, once it is stored.
    pub answer: Option<AnswerDocument>,
    /// What failed here, while the request went on: `request`, `answer`, `store`, `rewrite`, `timeout`, `refused`,
    /// `ledger`, `overload` or `fault`.
    pub failed: Option<String>,
    /// Why.
    pub why: Option<String>,
    /// Whether nothing more is going to happen.
    pub done: bool,
}

/// A stored answer.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct AnswerDocument {
    /// The id it is kept under.
    pub response: String,
    /// The head behind it.
    pub head: Option<String>,
    /// Its branch.
    pub branch: String,
    /// Tokens of the request, as the provider counted them.
    pub input_tokens: Option<u64>,
    /// Tokens of the answer.
    pub output_tokens: Option<u64>,
    /// Tokens of the request that came from the provider's cache.
    pub cache_read_tokens: Option<u64>,
    /// What it cost, in 10⁻¹² dollars, as far as prices are known.
    pub pico_dollars: Option<u128>,
}

impl RequestDocument {
    /// Records that something failed here.
    pub fn set_failure(&mut self, what: &str, why: &str) {
        // A later failure replaces an earlier one, because `x-contexture-failed` has room for one
        // word.
        self.failed = Some(what.to_owned());
        self.why = Some(why.to_owned());
    }

    /// Describes a request that has just come.
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

    /// Whether it is stored, or will not be.
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

    /// Records that the conversation it began was deleted again, because no model answered.
    pub fn clear_conversation(&mut self) {
        // `matched` stays: it says how the request was recognised, and that waiting for it is over.
        self.conversation = None;
        self.branch = None;
        self.node = None;
        self.appended = 0;
    }

    /// Records the stored answer and what it cost, as far as prices are known.
    pub fn set_answer(&mut self, recorded: &Recorded, cost: Option<Cost>) {
        let usage = recorded.usage.as_ref();
        self.answer = Some(AnswerDocument {
            response: recorded.response.to_string(),
            head: recorded.head.map(|head| head.to_string()),
            branch: recorded.branch.to_string(),
            input_tokens: usage.and_then(|usage| usage.input_tokens),
            output_tokens: usage.and_then(|usage| usage.output_tokens),
            cache_read_tokens: usage.and_then(|usage| usage.cache_read_tokens),
            pico_dollars: cost.map(|cost| cost.pico_dollars),
        });
    }
}
