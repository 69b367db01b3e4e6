//! The ledger: what calls cost, and what they would have cost as clients sent them.

use contexture::compile::CacheUsage;
use contexture::store::{CallRecord, CallSum};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use crate::time::format_timestamp;

/// The cost of calls under policies, beside their cost if every request had been forwarded unchanged.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct LedgerDocument {
    /// Id of the conversation, if one was asked for; else `null`.
    pub conversation: Option<String>,
    /// Sum over all calls of the conversation, or of the owner if no conversation was asked for.
    pub total: LedgerSumDocument,
    /// Calls of the conversation, oldest first; empty if none was asked for.
    pub entries: Vec<LedgerEntryDocument>,
    /// Days on which the owner made calls, oldest first; empty if a conversation was asked for.
    pub days: Vec<LedgerDayDocument>,
    /// Value of `after` for the next page; `null` on the last.
    pub next: Option<String>,
}

/// The sum of several calls. Money is in 10⁻¹² dollars, for input alone, as far as prices are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct LedgerSumDocument {
    /// Number of calls in the sum.
    pub calls: u64,
    /// Number of calls whose request was rewritten.
    pub rewritten: u64,
    /// Input tokens of the requests that were sent.
    pub sent_tokens: u64,
    /// Input tokens of the requests as clients wrote them.
    pub passed_tokens: u64,
    /// Cost of the requests that were sent, in 10⁻¹² dollars.
    pub sent_pico_dollars: i64,
    /// Cost of the requests as clients wrote them, in 10⁻¹² dollars.
    pub passed_pico_dollars: i64,
    /// Cost that rewriting saved, in 10⁻¹² dollars; negative if it cost more.
    pub saved_pico_dollars: i64,
}

/// The sum of the calls of one day.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LedgerDayDocument {
    /// Date of the day in UTC, such as `2026-11-20`.
    pub day: String,
    /// Sum over the calls of that day.
    #[serde(flatten)]
    pub sum: LedgerSumDocument,
}

/// One call that was made under a policy, with its cost.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LedgerEntryDocument {
    /// Id under which its answer is stored.
    pub response: String,
    /// Time at which its answer was stored (RFC 3339).
    pub at: String,
    /// Name of the model that was called.
    pub model: String,
    /// Name of the policy that applied.
    pub policy: String,
    /// Whether a rewritten request was sent.
    pub rewritten: bool,
    /// Input tokens of the request that was sent, by its expected use of the provider's cache.
    pub sent: CacheUseDocument,
    /// Input tokens of the client's request, by its cache use if all calls had been forwarded unchanged.
    pub passed: CacheUseDocument,
    /// Cost of the request that was sent, in 10⁻¹² dollars.
    pub sent_pico_dollars: i64,
    /// Cost of the request as the client wrote it, in 10⁻¹² dollars.
    pub passed_pico_dollars: i64,
    /// Cost that rewriting saved, in 10⁻¹² dollars; negative if it cost more.
    pub saved_pico_dollars: i64,
    /// Cost of the call and its answer in 10⁻¹² dollars, by the usage that the provider reported; `null` if unknown.
    pub reported_pico_dollars: Option<i64>,
    /// Tokens read from the cache, as the provider reported them; `null` if it did not.
    #[serde(default)]
    pub reported_read_tokens: Option<u64>,
}

/// Input tokens by the price that applies to them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheUseDocument {
    /// Tokens read from the provider's cache.
    pub read: u64,
    /// Tokens written to the cache, for either lifetime.
    pub written: u64,
    /// Tokens neither read from the cache nor written to it.
    pub fresh: u64,
}

impl From<CacheUsage> for CacheUseDocument {
    fn from(used: CacheUsage) -> Self {
        Self {
            read: used.read,
            // Both cache lifetimes together: the split matters for prices only, which are summed beside it.
            written: used.write.saturating_add(used.write_long),
            fresh: used.fresh,
        }
    }
}

impl CacheUseDocument {
    /// Returns the number of input tokens.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.read
            .saturating_add(self.written)
            .saturating_add(self.fresh)
    }
}

impl From<&CallSum> for LedgerSumDocument {
    fn from(sum: &CallSum) -> Self {
        // The document has 64 bits for money, more than nine million dollars.
        let money = |pico: u128| i64::try_from(pico).unwrap_or(i64::MAX);
        let (sent, passed) = (money(sum.sent_pico_dollars), money(sum.passed_pico_dollars));
        Self {
            calls: sum.predicted,
            rewritten: sum.rewritten,
            sent_tokens: sum.sent_tokens,
            passed_tokens: sum.passed_tokens,
            sent_pico_dollars: sent,
            passed_pico_dollars: passed,
            saved_pico_dollars: passed.saturating_sub(sent),
        }
    }
}

impl LedgerEntryDocument {
    /// Creates the entry of a call; `None` for one whose cost was not predicted.
    #[must_use]
    pub fn from_call(call: &CallRecord) -> Option<Self> {
        let (names, details) = (&call.names, &call.details);
        let prediction = details.prediction?;
        let money = |pico: u64| i64::try_from(pico).unwrap_or(i64::MAX);
        // The ledger is what `usage` replaced: its documents have no word for an unknown price.
        let sent = money(prediction.sent_pico_dollars.unwrap_or(0));
        let passed = money(prediction.passed_pico_dollars.unwrap_or(0));
        let duration = i64::try_from(details.duration_ms).unwrap_or(i64::MAX);
        let ended = call.id.time_ms().saturating_add(duration);
        let response = call.response.map(|response| response.to_string());
        Some(Self {
            response: response.unwrap_or_default(),
            at: format_timestamp(ended),
            model: names.model.clone(),
            policy: names.policy.clone(),
            rewritten: details.is_rewritten,
            sent: prediction.sent.into(),
            passed: prediction.passed.into(),
            sent_pico_dollars: sent,
            passed_pico_dollars: passed,
            saved_pico_dollars: passed.saturating_sub(sent),
            reported_pico_dollars: details.pico_dollars.map(money),
            reported_read_tokens: details.tokens.map(|tokens| tokens.cache_read),
        })
    }
}

impl LedgerSumDocument {
    /// Returns the sum of both; numbers stop at their limits instead of overflowing.
    #[must_use]
    pub const fn combined_with(self, other: &Self) -> Self {
        Self {
            // Stored sums are read back from values that may be damaged: at their limit they stay,
            // instead of wrapping around or ending the request.
            calls: self.calls.saturating_add(other.calls),
            rewritten: self.rewritten.saturating_add(other.rewritten),
            sent_tokens: self.sent_tokens.saturating_add(other.sent_tokens),
            passed_tokens: self.passed_tokens.saturating_add(other.passed_tokens),
            sent_pico_dollars: self
                .sent_pico_dollars
                .saturating_add(other.sent_pico_dollars),
            passed_pico_dollars: self
                .passed_pico_dollars
                .saturating_add(other.passed_pico_dollars),
            saved_pico_dollars: self
                .saved_pico_dollars
                .saturating_add(other.saved_pico_dollars),
        }
    }
}
