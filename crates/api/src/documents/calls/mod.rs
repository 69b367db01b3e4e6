//! The record of calls: exchanges with providers, and their sums.

mod ledger;
mod past_call;

use contexture::Owner;
use contexture::catalogue::Money;
use contexture::compile::{BandPart, CallBand, SegmentRule, SegmentVerdict};
use contexture::ir::CallId;
use contexture::store::{
    CacheTokens, CallGroup, CallGrouping, CallPrediction, CallRecord, CallSum,
};
use serde::Serialize;
use utoipa::ToSchema;

use crate::time::format_timestamp;

pub use ledger::{
    CacheUseDocument, LedgerDayDocument, LedgerDocument, LedgerEntryDocument, LedgerSumDocument,
};
pub use past_call::{
    CallAnswerDocument, CallItemsDocument, CallReportDocument, CallRequestDocument, DiffDocument,
    DiffSideDocument, DifferenceDocument, FirstDifferenceDocument, RequestView,
};

/// An exchange with a provider.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallDocument {
    /// Id of the call, as in the header `x-contexture-request`.
    pub id: String,
    /// Time at which the request came (RFC 3339).
    pub at: String,
    /// How it ended: `completed`, `incomplete` (cut off), `refused` (by the provider), `unreachable` (no answer), `blocked`
    /// (never sent) or `forwarded` (no call of a model).
    pub outcome: String,
    /// Name of the upstream.
    pub upstream: String,
    /// Format of the call, such as `openai-chat`; `null` for a call of no model.
    pub format: Option<String>,
    /// Name of the model; `null` if unknown.
    pub model: Option<String>,
    /// Name of the key that the caller showed; `null` for none.
    pub key: Option<String>,
    /// Name of the policy that applied; `null` if none did.
    pub policy: Option<String>,
    /// Id of its conversation; `null` if it has none, or it was deleted.
    pub conversation: Option<String>,
    /// Id under which its answer is stored; `null` if none is.
    pub response: Option<String>,
    /// HTTP status of the answer; `null` if there is none.
    pub status: Option<u16>,
    /// Why the caller got a refusal of this server and no answer, one word as in `x-contexture-failed`, such as `tool_denied`
    /// or `spend_limit`; `null` if the provider answered.
    pub refusal: Option<String>,
    /// Why the model stopped; `null` if unknown.
    pub finish: Option<String>,
    /// Milliseconds from the request to the end of the answer; `null` if unknown: for an answer that a program recorded, say.
    pub duration_ms: Option<u64>,
    /// Milliseconds from the request to the first byte of the answer; `null` if none came or it is unknown.
    pub first_byte_ms: Option<u64>,
    /// Times that the provider was asked.
    pub attempts: u32,
    /// Tokens as the provider reported them; `null` if it did not.
    pub tokens: Option<CallTokensDocument>,
    /// Cost of request and answer in dollars, a decimal; `null` if unknown.
    pub dollars: Option<String>,
    /// The same in 10⁻¹² dollars.
    pub pico_dollars: Option<u64>,
    /// Cost of the request as it was sent and as it came, by prediction; `null` for a request that was forwarded and that no
    /// policy may change.
    pub prediction: Option<CallPredictionDocument>,
    /// Whether something else was sent than came.
    pub rewritten: bool,
    /// Whether the tokens are an estimate.
    pub estimated: bool,
    /// Whether bytes of the answer could not be read.
    pub damaged: bool,
    /// Whether no client made the call: a further round of a server tool, say.
    pub own: bool,
    /// What the request was made of, as it was stored then. Absent for one that was sent as it came, and in lists that do not
    /// include it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub band: Option<CallBandDocument>,
    /// Request as it was sent to the provider. This and the next three are absent where they were not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sent: Option<CallRequestDocument>,
    /// Request as its client sent it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub came: Option<CallRequestDocument>,
    /// Report on the request that was sent, where it was compiled.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub report: Option<CallReportDocument>,
    /// Answer as it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<CallAnswerDocument>,
}

/// What the request of a call was made of.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallBandDocument {
    /// Tokens that the request might have: window minus reserve.
    pub limit: u64,
    /// Tokens of all parts in the request, as budgeted.
    pub tokens: u64,
    /// Tokens that were expected to be read from the provider's cache, from the front: where the cached prefix ends.
    pub cache_read: u64,
    /// Tokens behind them that were expected to be written to the cache.
    pub cache_written: u64,
    /// Why the prefix of the request before did not hold; `null` if it did, or there was none.
    pub prefix_break: Option<PrefixBreakDocument>,
    /// Items of the conversation up to the request.
    pub path_items: u64,
    /// Whether neighbouring parts are told as one, because the band would have been too long.
    pub joined: bool,
    /// Parts of the request in its order, with those that were left out.
    pub parts: Vec<BandPartDocument>,
}

/// A part of a request. What several joined parts do not have in common is `null`.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct BandPartDocument {
    /// Where it stands: `tools`, `system`, `anchor`, `history`, `live`, `tail` or `framing`.
    pub band: Option<&'static str>,
    /// What it is: `rounds`, `task`, `compaction`, `memory`, …; `contribution` for what a program named itself.
    pub source: Option<&'static str>,
    /// What became of it: `kept`, `required`, `shortened`, `cleared`, `trimmed` or `dropped`.
    #[schema(value_type = Option<String>)]
    pub verdict: Option<SegmentVerdict>,
    /// The rule that decided, such as `old_outputs` or `last_round`.
    pub rule: Option<&'static str>,
    /// Items of the conversation that it holds.
    pub items: u64,
    /// Index of the first item that it is about; `null` for what is no item.
    pub first: Option<u64>,
    /// Index of the last one.
    pub last: Option<u64>,
    /// Tokens in the request, as budgeted.
    pub tokens: u64,
    /// Tokens that it would have taken beside those.
    pub omitted_tokens: u64,
}

/// A prefix that the provider's cache held and that a request did not begin with any more.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct PrefixBreakDocument {
    /// Why it did not hold, such as `history_trimmed` or `tools_changed`.
    pub reason: &'static str,
    /// Tokens that were cached and had to be sent anew; 0 if the cache had expired.
    pub lost_tokens: u64,
    /// What these cost more than from the cache in dollars, a decimal; `null` without prices.
    pub dollars: Option<String>,
    /// The same in 10⁻¹² dollars.
    pub pico_dollars: Option<u64>,
}

/// Tokens of a call as the provider reported them.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
pub struct CallTokensDocument {
    /// All that the model read.
    pub input: u64,
    /// Of the input: read from the provider's cache.
    pub cache_read: u64,
    /// Of the input: written to the cache.
    pub cache_written: u64,
    /// All that the model wrote.
    pub output: u64,
}

/// What a request was expected to cost, for input alone. A request that was compiled of a conversation came as none: there it
/// is compared with the same request with all of its history.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub struct CallPredictionDocument {
    /// Tokens of the request that was sent.
    pub sent: CacheUseDocument,
    /// Tokens of the request as it came, had every request been sent as it came.
    pub passed: CacheUseDocument,
    /// Cost of the request that was sent in dollars, a decimal; `null` without prices.
    pub sent_dollars: Option<String>,
    /// The same in 10⁻¹² dollars.
    pub sent_pico_dollars: Option<u64>,
    /// Cost of the request as it came in dollars, a decimal; `null` without prices.
    pub passed_dollars: Option<String>,
    /// The same in 10⁻¹² dollars.
    pub passed_pico_dollars: Option<u64>,
}

/// A page of calls.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct CallsDocument {
    /// Calls of the page, newest first.
    pub calls: Vec<CallDocument>,
    /// Value of `after` for the next page; `null` on the last.
    pub next: Option<String>,
    /// Number of calls on all pages. Absent but in a list of one branch's calls.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub total: Option<u64>,
}

/// What calls used and cost.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct UsageDocument {
    /// What the calls are grouped by.
    pub by: Vec<String>,
    /// Sum of all groups.
    pub total: UsageSumDocument,
    /// The sums of the groups, in order; empty without calls.
    pub groups: Vec<UsageGroupDocument>,
}

/// The sum of calls that have something in common. What they are not grouped by is `null`; an empty text stands for none.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct UsageGroupDocument {
    /// Owner of the calls. Absent where they are not grouped by owners.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Day in UTC on which they began, such as `2026-11-20`.
    pub day: Option<String>,
    /// Name of their upstream.
    pub upstream: Option<String>,
    /// Name of their model.
    pub model: Option<String>,
    /// Name of the key that their callers showed.
    pub key: Option<String>,
    /// Name of their policy.
    pub policy: Option<String>,
    /// Id of their conversation; empty for those of deleted ones, too.
    pub conversation: Option<String>,
    /// How they ended.
    pub outcome: Option<String>,
    /// The sum of their figures.
    #[serde(flatten)]
    pub sum: UsageSumDocument,
}

/// A sum of calls. Tokens and money that nobody reported count as 0.
#[derive(Clone, Debug, Default, Serialize, ToSchema)]
pub struct UsageSumDocument {
    /// Number of calls.
    pub calls: u64,
    /// Of these: calls whose caller got no answer.
    pub failed: u64,
    /// Of these: calls for which something else was sent than came.
    pub rewritten: u64,
    /// All that models read.
    pub input_tokens: u64,
    /// Of the input: read from caches.
    pub cache_read_tokens: u64,
    /// Of the input: written to caches.
    pub cache_written_tokens: u64,
    /// All that models wrote.
    pub output_tokens: u64,
    /// Cost of requests and answers in dollars, a decimal.
    pub dollars: String,
    /// The same in 10⁻¹² dollars.
    pub pico_dollars: u128,
    /// Cache reads that were expected, of calls under policies and of those that were compiled of a conversation.
    pub predicted_read_tokens: u64,
    /// What policies saved of the cost of input in dollars, a decimal; negative if they cost more. `null` if the price of no
    /// predicted call is known.
    pub saved_dollars: Option<String>,
    /// The same in 10⁻¹² dollars.
    pub saved_pico_dollars: Option<i128>,
}

/// Returns the id of a call as clients see it.
pub(crate) fn format_call_id(id: CallId) -> String {
    format!("req_{id}")
}

/// A row that nobody measured has a duration of 0.
fn known_duration(call: &CallRecord) -> Option<u64> {
    Some(call.details.duration_ms).filter(|duration| *duration > 0)
}

pub(crate) fn dollars(pico: u128) -> String {
    Money::from_pico_dollars(pico).to_decimal_string()
}

fn name(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_owned())
}

impl From<&CallRecord> for CallDocument {
    fn from(call: &CallRecord) -> Self {
        let (names, details) = (&call.names, &call.details);
        Self {
            id: format_call_id(call.id),
            at: format_timestamp(call.id.time_ms()),
            outcome: call.outcome.as_str().to_owned(),
            upstream: names.upstream.clone(),
            format: name(&details.format),
            model: name(&names.model),
            key: name(&names.key),
            policy: name(&names.policy),
            conversation: call.conversation.as_ref().map(ToString::to_string),
            response: call.response.map(|response| response.to_string()),
            status: details.status,
            refusal: details.refusal.clone(),
            finish: details.finish.clone(),
            duration_ms: known_duration(call),
            first_byte_ms: details.first_byte_ms,
            attempts: details.attempts,
            tokens: details.tokens.map(|tokens| CallTokensDocument {
                input: tokens.input,
                cache_read: tokens.cache_read,
                cache_written: tokens.cache_written,
                output: tokens.output,
            }),
            dollars: details.pico_dollars.map(|pico| dollars(pico.into())),
            pico_dollars: details.pico_dollars,
            prediction: details.prediction.as_ref().map(Into::into),
            rewritten: details.is_rewritten,
            estimated: details.is_estimated,
            damaged: details.is_damaged,
            own: details.is_own,
            band: None,
            sent: None,
            came: None,
            report: None,
            answer: None,
        }
    }
}

impl CallDocument {
    /// Returns the document of a call with its band. One that this version cannot read is left out.
    #[must_use]
    pub fn with_band(call: &CallRecord) -> Self {
        let band = call.band.as_deref();
        let band = band.and_then(|bytes| CallBand::from_bytes(bytes).ok());
        Self {
            band: band.as_ref().map(CallBandDocument::from),
            ..Self::from(call)
        }
    }
}

impl From<&CallBand> for CallBandDocument {
    fn from(band: &CallBand) -> Self {
        Self {
            limit: band.limit,
            tokens: band.tokens(),
            cache_read: band.cache_read,
            cache_written: band.cache_written,
            prefix_break: band.prefix_break.map(|broken| PrefixBreakDocument {
                reason: broken.reason.as_str(),
                lost_tokens: broken.lost_tokens,
                dollars: broken.pico_dollars.map(|pico| dollars(pico.into())),
                pico_dollars: broken.pico_dollars,
            }),
            path_items: band.path_items,
            joined: band.is_joined,
            parts: band.parts.iter().map(BandPartDocument::from).collect(),
        }
    }
}

impl From<&BandPart> for BandPartDocument {
    fn from(part: &BandPart) -> Self {
        Self {
            band: part.band,
            source: part.source,
            verdict: part.verdict,
            rule: part.rule.map(SegmentRule::as_str),
            items: part.items,
            first: part.span.map(|(first, _)| first),
            last: part.span.map(|(_, last)| last),
            tokens: part.tokens,
            omitted_tokens: part.omitted_tokens,
        }
    }
}

impl From<&CallPrediction> for CallPredictionDocument {
    fn from(prediction: &CallPrediction) -> Self {
        let (sent, passed) = (prediction.sent_pico_dollars, prediction.passed_pico_dollars);
        Self {
            sent: prediction.sent.into(),
            passed: prediction.passed.into(),
            sent_dollars: sent.map(|pico| dollars(pico.into())),
            sent_pico_dollars: sent,
            passed_dollars: passed.map(|pico| dollars(pico.into())),
            passed_pico_dollars: passed,
        }
    }
}

impl From<CacheTokens> for CacheUseDocument {
    fn from(tokens: CacheTokens) -> Self {
        Self {
            read: tokens.read,
            written: tokens.written,
            fresh: tokens.fresh,
        }
    }
}

impl From<&CallSum> for UsageSumDocument {
    fn from(sum: &CallSum) -> Self {
        let saved = sum.saved_pico_dollars();
        let signed_dollars = |pico: i128| {
            let sign = if pico < 0 { "-" } else { "" };
            format!("{sign}{}", dollars(pico.unsigned_abs()))
        };
        Self {
            calls: sum.calls,
            failed: sum.failed,
            rewritten: sum.rewritten,
            input_tokens: sum.input_tokens,
            cache_read_tokens: sum.cache_read_tokens,
            cache_written_tokens: sum.cache_written_tokens,
            output_tokens: sum.output_tokens,
            dollars: dollars(sum.pico_dollars),
            pico_dollars: sum.pico_dollars,
            predicted_read_tokens: sum.predicted_read_tokens,
            saved_dollars: saved.map(signed_dollars),
            saved_pico_dollars: saved,
        }
    }
}

impl UsageDocument {
    /// Creates the document of the sums of several owners, which are grouped by owners first.
    #[must_use]
    pub fn from_owners(by: &[CallGrouping], owners: &[(Owner, Vec<(CallGroup, CallSum)>)]) -> Self {
        let mut document = Self::from_sums(by, &[]);
        document.by.insert(0, "owner".to_owned());
        let mut total = CallSum::default();
        for (owner, sums) in owners {
            for (group, sum) in sums {
                total.add_sum(sum);
                document.groups.push(UsageGroupDocument {
                    owner: Some(owner.to_string()),
                    ..group_document(group, sum)
                });
            }
        }
        document.total = (&total).into();
        document
    }

    /// Creates the document of sums that are grouped so.
    #[must_use]
    pub fn from_sums(by: &[CallGrouping], sums: &[(CallGroup, CallSum)]) -> Self {
        let mut total = CallSum::default();
        sums.iter().for_each(|(_, sum)| total.add_sum(sum));
        Self {
            by: by.iter().map(|by| by.as_str().to_owned()).collect(),
            total: (&total).into(),
            groups: sums
                .iter()
                .map(|(group, sum)| group_document(group, sum))
                .collect(),
        }
    }
}

fn group_document(group: &CallGroup, sum: &CallSum) -> UsageGroupDocument {
    let day = group.day_ms.map(format_timestamp);
    UsageGroupDocument {
        owner: None,
        day: day.map(|day| day.chars().take(10).collect()),
        upstream: group.upstream.clone(),
        model: group.model.clone(),
        key: group.key.clone(),
        policy: group.policy.clone(),
        conversation: group.conversation.clone(),
        outcome: group.outcome.map(|outcome| outcome.as_str().to_owned()),
        sum: sum.into(),
    }
}
