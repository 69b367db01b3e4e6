//! The ledger: what calls cost, and what they would have cost as clients sent them.

use contexture::compile::CacheUsage;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

/// What calls under policies cost, and what they would have cost as clients sent them.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct LedgerDocument {
    /// The conversation, if one was asked for.
    pub conversation: Option<String>,
    /// All of its calls together, or all of the owner's.
    pub total: LedgerSumDocument,
    /// Of a conversation: its calls, oldest first.
    pub entries: Vec<LedgerEntryDocument>,
    /// Of an owner: the days there were calls on, oldest first.
    pub days: Vec<LedgerDayDocument>,
    /// Where to go on, if there is more.
    pub next: Option<String>,
}

/// Some calls together. Money is in 10⁻¹² dollars, for input alone, as far as prices are known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(default)]
pub struct LedgerSumDocument {
    /// How many.
    pub calls: u64,
    /// In how many of them something else was sent than came.
    pub rewritten: u64,
    /// The tokens that were sent.
    pub sent_tokens: u64,
    /// The tokens that came.
    pub passed_tokens: u64,
    /// What was sent, in money.
    pub sent_pico_dollars: i64,
    /// What came, in money.
    pub passed_pico_dollars: i64,
    /// What that saved; less than nothing where it cost more.
    pub saved_pico_dollars: i64,
}

/// The calls of a day.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct LedgerDayDocument {
    /// The day, in UTC: `2026-11-20`.
    pub day: String,
    /// Its calls.
    #[serde(flatten)]
    pub sum: LedgerSumDocument,
}

/// One call.
#[derive(Clone, Debug, Serialize, Deserialize, ToSchema)]
pub struct LedgerEntryDocument {
    /// The id its answer is kept under.
    pub response: String,
    /// When: RFC 3339.
    pub at: String,
    /// The model.
    pub model: String,
    /// The policy.
    pub policy: String,
    /// Whether something else was sent than came.
    pub rewritten: bool,
    /// What was sent, as the provider's cache is expected to take it.
    pub sent: CacheUseDocument,
    /// What came, as the cache would have taken it had all calls been passed on as they came.
    pub passed: CacheUseDocument,
    /// What was sent, in 10⁻¹² dollars.
    pub sent_pico_dollars: i64,
    /// What came, in 10⁻¹² dollars.
    pub passed_pico_dollars: i64,
    /// What that saved; less than nothing where it cost more.
    pub saved_pico_dollars: i64,
    /// What the call cost with its answer, by the usage that the provider reported.
    pub reported_pico_dollars: Option<i64>,
    /// What was read from the cache, as the provider reported it; `sent` says what was expected.
    #[serde(default)]
    pub reported_read_tokens: Option<u64>,
}

/// Input tokens by what is paid for them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
pub struct CacheUseDocument {
    /// Read from the cache.
    pub read: u64,
    /// Written to it, for the usual time or longer.
    pub written: u64,
    /// Neither.
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
    /// All of them.
    #[must_use]
    pub const fn tokens(self) -> u64 {
        self.read
            .saturating_add(self.written)
            .saturating_add(self.fresh)
    }
}

impl LedgerSumDocument {
    /// The same with one call more.
    #[must_use]
    pub const fn with_entry(mut self, entry: &LedgerEntryDocument) -> Self {
        self.calls += 1;
        // A cast, because `u64::from` cannot be called in a `const fn`.
        self.rewritten += entry.rewritten as u64;
        self.sent_tokens = self.sent_tokens.saturating_add(entry.sent.tokens());
        self.passed_tokens = self.passed_tokens.saturating_add(entry.passed.tokens());
        self.sent_pico_dollars = self
            .sent_pico_dollars
            .saturating_add(entry.sent_pico_dollars);
        self.passed_pico_dollars = self
            .passed_pico_dollars
            .saturating_add(entry.passed_pico_dollars);
        self.saved_pico_dollars = self
            .saved_pico_dollars
            .saturating_add(entry.saved_pico_dollars);
        self
    }

    /// Both together.
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
