//! The call record: one row for each exchange with a provider, and their sums.
//!
//! Rows hold figures and names, no texts. Each is written once: with the append that stores its answer
//! ([`AppendRequest::call`](crate::AppendRequest::call)), or alone where there is no answer to store. Sums are read from
//! *roll-ups*, one row an hour for all calls that share their names, and from the rows that are in none yet; a row is in
//! exactly one of the two, whatever step was interrupted. Rows are removed after some time, roll-ups stay.
//!
//! A call outlives its conversation: when that is deleted, the call names none any more, and loses the id of its response,
//! its body, the body's hash and its band. All calls of an owner go when the owner is erased. No export has them.
//!
//! Not here: prices, and when the maintenance runs ([`sweep_calls`](crate::sweep_calls) is its loop).

use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{CallId, ContentHash, ConversationId, Owner, ResponseId};
use serde::{Deserialize, Serialize};

use crate::contract::Error;

/// Milliseconds of an hour: the step of roll-ups, and of the times that bound a sum.
pub const CALL_HOUR_MS: i64 = 3_600_000;

/// How an exchange with a provider ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CallOutcome {
    /// A model answered to the end.
    #[default]
    Completed,
    /// The answer was cut off: the client left, the provider broke off, or a limit of the model was reached.
    Incomplete,
    /// The provider answered with an error.
    Refused,
    /// The provider could not be reached, or did not answer in time.
    Unreachable,
    /// The call was refused before it was sent.
    Blocked,
    /// The call was none to a model: a list of models, a file, an embedding. The provider answered it.
    Forwarded,
}

impl CallOutcome {
    /// All outcomes, in the order of their stored codes.
    pub const ALL: [Self; 6] = [
        Self::Completed,
        Self::Incomplete,
        Self::Refused,
        Self::Unreachable,
        Self::Blocked,
        Self::Forwarded,
    ];

    /// Returns the code that databases store for the outcome.
    #[must_use]
    pub const fn code(self) -> u8 {
        self as u8
    }

    /// Returns the outcome of a stored code; `None` for an unknown one.
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.get(usize::from(code)).copied()
    }

    /// Returns the lower-case word for the outcome.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Completed => "completed",
            Self::Incomplete => "incomplete",
            Self::Refused => "refused",
            Self::Unreachable => "unreachable",
            Self::Blocked => "blocked",
            Self::Forwarded => "forwarded",
        }
    }

    /// Returns the outcome of a word; `None` for an unknown one.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }

    /// Returns whether the caller got no answer.
    #[must_use]
    pub const fn is_failure(self) -> bool {
        matches!(self, Self::Refused | Self::Unreachable | Self::Blocked)
    }
}

/// An exchange with a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallRecord {
    /// Id of the call, unique within the owner. Its time is when the request came.
    pub id: CallId,
    /// How it ended.
    pub outcome: CallOutcome,
    /// What it is found and summed by.
    pub names: CallNames,
    /// Conversation that it belongs to; `None` if it has none, or it was deleted.
    pub conversation: Option<ConversationId>,
    /// Response that its answer is stored as; `None` if none is, or the conversation was deleted.
    pub response: Option<ResponseId>,
    /// Hash of the request's body as it came, keyed by the owner; `None` if none was made.
    pub body_hash: Option<ContentHash>,
    /// Everything that is known of it but not searched for.
    pub details: CallDetails,
    /// What the request was made of, in a form that the store does not read: at most
    /// [`Limits::call_band_bytes`](crate::Limits::call_band_bytes), never empty. `None` for a request that was forwarded
    /// as it came.
    pub band: Option<Arc<[u8]>>,
    /// The request's body as it came, as a difference to what is stored, in a form that the store does not read: at most
    /// [`Limits::call_body_bytes`](crate::Limits::call_body_bytes), never empty. It is written with the call and read by
    /// [`Calls::load_call_body`] alone: a call that was read has `None`.
    pub body: Option<Arc<[u8]>>,
}

impl CallRecord {
    /// Returns a completed call of which nothing else is known.
    #[must_use]
    pub fn new(id: CallId, upstream: &str) -> Self {
        Self {
            id,
            outcome: CallOutcome::default(),
            names: CallNames {
                upstream: upstream.to_owned(),
                ..CallNames::default()
            },
            conversation: None,
            response: None,
            body_hash: None,
            details: CallDetails::default(),
            band: None,
            body: None,
        }
    }
}

/// What calls are found and summed by. An empty name stands for none; each has at most 255 bytes and no control characters
/// ([`rules::call_name`](crate::rules::call_name) makes one of any text).
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallNames {
    /// Name of the upstream.
    pub upstream: String,
    /// Name of the model as the provider knows it.
    pub model: String,
    /// Name of the key that the caller showed.
    pub key: String,
    /// Name of the policy that applied.
    pub policy: String,
}

/// What is known of a call but not searched for. Every number is at most 2^53.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallDetails {
    /// Format of the call, such as `openai-chat`, at most 255 bytes; empty for a call to no model.
    #[serde(rename = "f", skip_serializing_if = "String::is_empty")]
    pub format: String,
    /// Milliseconds from the request to the end of the answer.
    #[serde(rename = "ms")]
    pub duration_ms: u64,
    /// Milliseconds from the request to the first byte of the answer's body; `None` if none came.
    #[serde(rename = "b", skip_serializing_if = "Option::is_none")]
    pub first_byte_ms: Option<u64>,
    /// HTTP status of the answer; `None` if there is none.
    #[serde(rename = "s", skip_serializing_if = "Option::is_none")]
    pub status: Option<u16>,
    /// Why the model stopped, at most 255 bytes; `None` if unknown.
    #[serde(rename = "e", skip_serializing_if = "Option::is_none")]
    pub finish: Option<String>,
    /// Tokens as the provider reported them; `None` if it did not.
    #[serde(rename = "t", skip_serializing_if = "Option::is_none")]
    pub tokens: Option<CallTokens>,
    /// Cost of request and answer by the reported tokens, in 10⁻¹² dollars; `None` if unknown.
    #[serde(rename = "c", skip_serializing_if = "Option::is_none")]
    pub pico_dollars: Option<u64>,
    /// Cost of the request as it was sent and as it came, by prediction; `None` where nothing was predicted.
    #[serde(rename = "p", skip_serializing_if = "Option::is_none")]
    pub prediction: Option<CallPrediction>,
    /// Times that the provider was asked.
    #[serde(rename = "n")]
    pub attempts: u32,
    /// Why its caller got a refusal and no answer, one word of at most 255 bytes; `None` if the provider answered.
    #[serde(rename = "x", skip_serializing_if = "Option::is_none")]
    pub refusal: Option<String>,
    /// Whether something else was sent than came.
    #[serde(rename = "rw", skip_serializing_if = "is_false")]
    pub is_rewritten: bool,
    /// Whether the tokens are an estimate, because the provider did not report them.
    #[serde(rename = "es", skip_serializing_if = "is_false")]
    pub is_estimated: bool,
    /// Whether bytes of the answer could not be read.
    #[serde(rename = "da", skip_serializing_if = "is_false")]
    pub is_damaged: bool,
    /// Whether no client made the call: a summary, say.
    #[serde(rename = "ow", skip_serializing_if = "is_false")]
    pub is_own: bool,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_false(flag: &bool) -> bool {
    !*flag
}

/// Tokens of a call as the provider reported them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallTokens {
    /// All that the model read, from its cache or not.
    #[serde(rename = "i")]
    pub input: u64,
    /// Of the input: read from the provider's cache.
    #[serde(rename = "r", skip_serializing_if = "is_zero")]
    pub cache_read: u64,
    /// Of the input: written to the cache.
    #[serde(rename = "w", skip_serializing_if = "is_zero")]
    pub cache_written: u64,
    /// All that the model wrote.
    #[serde(rename = "o")]
    pub output: u64,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde gives a reference")]
const fn is_zero(number: &u64) -> bool {
    *number == 0
}

/// What a request was expected to cost as it was sent, and as it came: for input alone. A request that was compiled of a
/// conversation came as none: there it is the same request with all of its history.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CallPrediction {
    /// Tokens of the request that was sent.
    #[serde(rename = "s")]
    pub sent: CacheTokens,
    /// Tokens of the request as it came, had every request been sent as it came.
    #[serde(rename = "p")]
    pub passed: CacheTokens,
    /// Cost of the request that was sent, in 10⁻¹² dollars; `None` without prices.
    #[serde(rename = "sc", skip_serializing_if = "Option::is_none")]
    pub sent_pico_dollars: Option<u64>,
    /// Cost of the request as it came, in 10⁻¹² dollars; `None` without prices.
    #[serde(rename = "pc", skip_serializing_if = "Option::is_none")]
    pub passed_pico_dollars: Option<u64>,
}

/// Input tokens by the price that applies to them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct CacheTokens {
    /// Tokens read from the provider's cache.
    #[serde(rename = "r", skip_serializing_if = "is_zero")]
    pub read: u64,
    /// Tokens written to the cache.
    #[serde(rename = "w", skip_serializing_if = "is_zero")]
    pub written: u64,
    /// Tokens neither read from the cache nor written to it.
    #[serde(rename = "f", skip_serializing_if = "is_zero")]
    pub fresh: u64,
}

impl CacheTokens {
    /// Returns the number of tokens.
    #[must_use]
    pub const fn total(self) -> u64 {
        self.read
            .saturating_add(self.written)
            .saturating_add(self.fresh)
    }
}

/// Which calls are meant. The default is all of the owner's.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallFilter {
    /// Those that began at or after this time, in milliseconds since the Unix epoch.
    pub since_ms: Option<i64>,
    /// Those that began before this time, in milliseconds since the Unix epoch.
    pub until_ms: Option<i64>,
    /// Those of this conversation. An unknown one has no calls.
    pub conversation: Option<ConversationId>,
    /// Those of this upstream.
    pub upstream: Option<String>,
    /// Those of this model.
    pub model: Option<String>,
    /// Those of this key; the empty text for those of none.
    pub key: Option<String>,
    /// Those of this policy; the empty text for those of none.
    pub policy: Option<String>,
    /// Those that ended so.
    pub outcome: Option<CallOutcome>,
}

impl CallFilter {
    /// Widens the times to whole hours, which sums need: older calls are kept by the hour.
    ///
    /// ```
    /// use contexture_store::{CALL_HOUR_MS, CallFilter};
    ///
    /// let filter = CallFilter { since_ms: Some(CALL_HOUR_MS + 1), until_ms: Some(1), ..CallFilter::default() };
    /// let filter = filter.in_whole_hours();
    /// assert_eq!((filter.since_ms, filter.until_ms), (Some(CALL_HOUR_MS), Some(CALL_HOUR_MS)));
    /// ```
    #[must_use]
    pub fn in_whole_hours(self) -> Self {
        let begin = |time: i64| time.saturating_sub(time.rem_euclid(CALL_HOUR_MS));
        let end = |time: i64| begin(time.saturating_add(CALL_HOUR_MS - 1));
        Self {
            since_ms: self.since_ms.map(begin),
            until_ms: self.until_ms.map(end),
            ..self
        }
    }
}

/// A list of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ListCalls {
    /// Which calls it has.
    pub filter: CallFilter,
    /// Which of them come first. Default: the newest.
    pub order: CallOrder,
    /// Last call of the previous page; `None` for the first page.
    pub after: Option<CallId>,
    /// Largest number of calls of the page. Default 100.
    pub limit: Option<usize>,
}

/// Order of a list of calls, by the time at which they began.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CallOrder {
    /// The newest first.
    #[default]
    NewestFirst,
    /// The oldest first.
    OldestFirst,
}

/// A page of a list of calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct CallPage {
    /// Calls of the page, in the order that was asked for.
    pub calls: Vec<CallRecord>,
    /// Value of [`ListCalls::after`] for the next page; `None` on the last.
    pub next: Option<CallId>,
}

/// What calls are grouped by in a sum.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CallGrouping {
    /// The day in UTC on which they began.
    Day,
    /// The upstream that was asked.
    Upstream,
    /// The model that was asked.
    Model,
    /// The key that the caller showed.
    Key,
    /// The policy that applied.
    Policy,
    /// The conversation that they belong to.
    Conversation,
    /// How they ended.
    Outcome,
}

impl CallGrouping {
    /// All groupings, in the order of a group's members.
    pub const ALL: [Self; 7] = [
        Self::Day,
        Self::Upstream,
        Self::Model,
        Self::Key,
        Self::Policy,
        Self::Conversation,
        Self::Outcome,
    ];

    /// Returns the lower-case word for the grouping.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Day => "day",
            Self::Upstream => "upstream",
            Self::Model => "model",
            Self::Key => "key",
            Self::Policy => "policy",
            Self::Conversation => "conversation",
            Self::Outcome => "outcome",
        }
    }

    /// Returns the grouping of a word; `None` for an unknown one.
    #[must_use]
    pub fn from_word(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|one| one.as_str() == word)
    }
}

/// A sum over calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct SumCalls {
    /// Which calls are summed. Its times are whole hours ([`CALL_HOUR_MS`]), because older calls are kept by the hour.
    pub filter: CallFilter,
    /// What they are grouped by, in any order; none for one sum of all.
    pub by: Vec<CallGrouping>,
}

/// What the calls of a group have in common: `None` in what they are not grouped by.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallGroup {
    /// Begin of their day in UTC, in milliseconds since the Unix epoch.
    pub day_ms: Option<i64>,
    /// Name of their upstream.
    pub upstream: Option<String>,
    /// Name of their model, empty for none.
    pub model: Option<String>,
    /// Name of their key, empty for none.
    pub key: Option<String>,
    /// Name of their policy, empty for none.
    pub policy: Option<String>,
    /// Id of their conversation, empty for none and for all that were deleted.
    pub conversation: Option<String>,
    /// How they ended.
    pub outcome: Option<CallOutcome>,
}

/// The sum of some calls. Tokens and money that nobody reported count as 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallSum {
    /// Number of calls.
    pub calls: u64,
    /// Of these: calls whose caller got no answer.
    pub failed: u64,
    /// Of these: calls for which something else was sent than came.
    pub rewritten: u64,
    /// Of these: calls whose cost was predicted, those under policies or compiled of a conversation.
    pub predicted: u64,
    /// All that models read.
    pub input_tokens: u64,
    /// Of the input: read from caches.
    pub cache_read_tokens: u64,
    /// Of the input: written to caches.
    pub cache_written_tokens: u64,
    /// All that models wrote.
    pub output_tokens: u64,
    /// Cost of requests and answers, in 10⁻¹² dollars.
    pub pico_dollars: u128,
    /// Of predicted calls: cache reads that were expected.
    pub predicted_read_tokens: u64,
    /// Of predicted calls: input tokens of the requests that were sent.
    pub sent_tokens: u64,
    /// Of predicted calls: input tokens of the requests as they came.
    pub passed_tokens: u64,
    /// Of predicted calls: cost of the requests that were sent, in 10⁻¹² dollars.
    pub sent_pico_dollars: u128,
    /// Of predicted calls: cost of the requests as they came, in 10⁻¹² dollars.
    pub passed_pico_dollars: u128,
}

impl CallSum {
    /// Returns what policies saved of the cost of input, in 10⁻¹² dollars: negative if they cost more. `None` if calls were
    /// predicted, but the price of none is known.
    #[must_use]
    pub fn saved_pico_dollars(&self) -> Option<i128> {
        let (sent, passed) = (self.sent_pico_dollars, self.passed_pico_dollars);
        // A sum has no count of its priced calls. Input that costs nothing at all is of models whose price is not known.
        if self.sent_tokens > 0 && sent == 0 && passed == 0 {
            return None;
        }
        let signed = |pico: u128| i128::try_from(pico).unwrap_or(i128::MAX);
        Some(signed(passed).saturating_sub(signed(sent)))
    }
}

/// What the calls of a conversation used and cost.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConversationCalls {
    /// The sum of all its calls, those included that were removed since.
    pub sum: CallSum,
    /// Model of its newest call that names one; `None` if there is none any more.
    pub last_model: Option<String>,
}

/// What one step of the maintenance of calls is to do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepCalls {
    /// Calls that began before this time are put into roll-ups, in milliseconds since the Unix epoch: the begin of the
    /// current hour.
    pub roll_up_before_ms: i64,
    /// Calls that began before this time and are in a roll-up are removed, in milliseconds since the Unix epoch.
    pub remove_before_ms: i64,
    /// Bodies of calls that began before this time are removed, in milliseconds since the Unix epoch.
    pub remove_bodies_before_ms: i64,
}

/// What one step of the maintenance of calls did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct SweptCalls {
    /// Number of calls that were put into roll-ups.
    pub rolled_up: u64,
    /// Number of calls that were removed.
    pub removed: u64,
    /// Number of bodies that were removed from calls that stay.
    pub removed_bodies: u64,
    /// Whether another step is needed.
    pub more: bool,
}

/// Record of calls of a store that keeps it.
#[async_trait]
pub trait Calls: Send + Sync {
    /// Stores calls that come with no append, all or none. One whose id is stored already changes nothing. A conversation
    /// that is not there any more is left out.
    ///
    /// # Errors
    /// [`Error::Limit`] `call_batch`, `call_band_bytes`, `call_body_bytes`, `call_name_bytes` or `call_figure`.
    async fn record_calls(&self, owner: &Owner, calls: Vec<CallRecord>) -> Result<(), Error>;

    /// Reads a call; `None` if the owner has none of this id, or it was removed since.
    async fn load_call(&self, owner: &Owner, id: CallId) -> Result<Option<CallRecord>, Error>;

    /// Reads the body that was stored with a call; `None` if none was, or it was removed since.
    ///
    /// A body is removed when its time is over ([`SweepCalls::remove_bodies_before_ms`]), with its conversation, and when
    /// anything of its conversation is redacted.
    async fn load_call_body(&self, owner: &Owner, id: CallId) -> Result<Option<Arc<[u8]>>, Error>;

    /// Lists calls by the time at which they began. Those that were removed are missing.
    ///
    /// It reads the calls of the time that the filter names, or those of the conversation, until the page is full.
    async fn list_calls(&self, owner: &Owner, list: ListCalls) -> Result<CallPage, Error>;

    /// Sums calls, read at one instant: the groups come in order.
    ///
    /// It reads the roll-ups of the time that the filter names, or those of the conversation, and the calls that are in
    /// none yet.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a time that is no whole hour, [`Error::Limit`] `call_groups` for too many groups.
    async fn sum_calls(
        &self,
        owner: &Owner,
        sum: SumCalls,
    ) -> Result<Vec<(CallGroup, CallSum)>, Error>;

    /// Sums the calls of each of these conversations, in their order. One that is not there has none.
    ///
    /// It reads the roll-ups of these conversations, their calls that are in none yet, and one call more of each: of no other
    /// conversation anything.
    ///
    /// # Errors
    /// [`Error::Limit`] `call_batch` for too many conversations.
    async fn sum_conversations(
        &self,
        owner: &Owner,
        conversations: &[ConversationId],
    ) -> Result<Vec<ConversationCalls>, Error>;

    /// Lists owners that have calls, or sums of calls that were removed, in order, at most `limit`, behind `after`.
    async fn list_call_owners(
        &self,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<Owner>, Error>;

    /// Takes one bounded step of putting an owner's calls into roll-ups and removing old ones.
    ///
    /// A call is put into its roll-up and marked in one transaction, so that no interruption loses or doubles it.
    async fn sweep_calls(&self, owner: &Owner, sweep: SweepCalls) -> Result<SweptCalls, Error>;
}
