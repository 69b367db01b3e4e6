//! What is shown of spending: sums, breaks, savings. Data only, and its shape is that of the JSON document.
//!
//! Amounts are decimal dollars as text, as everywhere in the API; times are said in the time zone that the report names.

use contexture_catalogue::Money;
use contexture_sessions::{ReportedTokens, SessionFormat};
use serde::Serialize;

use crate::breaks::BreakReason;
use crate::price::CallCost;

/// Sums over calls.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct Tally {
    /// Number of answers.
    pub calls: u64,
    /// All input tokens, those from the cache included.
    pub input_tokens: u64,
    /// Input tokens read from the cache.
    pub cache_read_tokens: u64,
    /// Input tokens written to the cache.
    pub cache_written_tokens: u64,
    /// Tokens of the answers, reasoning included.
    pub output_tokens: u64,
    /// Cost by list prices, of the tokens that have one.
    #[serde(rename = "dollars")]
    pub cost: Money,
    /// Number of calls with tokens that have no price.
    pub unpriced_calls: u64,
}

impl Tally {
    /// Adds a call.
    pub(crate) fn add_call(&mut self, tokens: &ReportedTokens, cost: CallCost) {
        self.calls += 1;
        self.input_tokens = self.input_tokens.saturating_add(tokens.input());
        self.cache_read_tokens = self.cache_read_tokens.saturating_add(tokens.cache_read);
        self.cache_written_tokens = self.cache_written_tokens.saturating_add(tokens.written());
        self.output_tokens = self.output_tokens.saturating_add(tokens.output);
        self.cost += Money::from_pico_dollars(cost.pico_dollars);
        self.unpriced_calls += u64::from(cost.is_unpriced);
    }

    /// Returns the input tokens that were neither read from the cache nor written to it.
    #[must_use]
    pub const fn fresh_tokens(&self) -> u64 {
        self.input_tokens
            .saturating_sub(self.cache_read_tokens)
            .saturating_sub(self.cache_written_tokens)
    }

    /// Returns whether nothing of it has a price.
    #[must_use]
    pub fn is_unpriced(&self) -> bool {
        self.unpriced_calls > 0 && self.cost == Money::ZERO
    }
}

/// The sums of a day, a model or a folder.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct SpendingGroup {
    /// The day (`2026-11-20`), the model's name in the log, or the folder; empty where the log does not say.
    pub name: String,
    /// Sums over its calls.
    #[serde(flatten)]
    pub tally: Tally,
}

/// One session and what it cost.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct SessionRow {
    /// Id of the session in its log, else the file's name.
    pub id: String,
    /// Format of its log.
    #[serde(serialize_with = "format_name")]
    pub format: SessionFormat,
    /// Title, or how it begins; empty if the log has neither.
    pub title: String,
    /// Folder that it was about; empty if the log does not say.
    pub project: String,
    /// Files that it is in, sub-agents' among them.
    pub files: Vec<String>,
    /// Time of its first answer; empty if the log has no times.
    pub first: String,
    /// Sums over its calls.
    #[serde(flatten)]
    pub tally: Tally,
    /// What its cache breaks cost.
    #[serde(rename = "break_dollars")]
    pub break_cost: Money,
}

/// Cache breaks for one reason, or all of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct BreakSum {
    /// Why; absent in the sum over all reasons.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<BreakReason>,
    /// Number of breaks.
    pub breaks: u64,
    /// Tokens that were billed again.
    pub tokens: u64,
    /// What they cost more than reads would have.
    #[serde(rename = "dollars")]
    pub cost: Money,
}

/// One cache break.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct BreakRow {
    /// Time of the answer; empty if the log has none.
    pub at: String,
    /// Why, as far as the log shows.
    pub reason: BreakReason,
    /// Tokens that were billed again.
    pub tokens: u64,
    /// What they cost more than a read would have.
    #[serde(rename = "dollars")]
    pub cost: Money,
    /// Seconds since the request before; absent if the log has no times.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pause_seconds: Option<u64>,
    /// Model that answered.
    pub model: String,
    /// File and line of the answer.
    pub file: String,
    /// Line in it, counted from 1.
    pub line: usize,
    /// Session it is in.
    pub session: String,
}

/// All cache breaks.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct BreakFigures {
    /// The sum over all reasons.
    pub total: BreakSum,
    /// Share of the cost of all calls, in per cent.
    pub share_percent: f64,
    /// The sums for each reason that occurs, dearest first.
    pub reasons: Vec<BreakSum>,
    /// The dearest breaks.
    pub dearest: Vec<BreakRow>,
}

/// What a policy would have saved, by prediction. Only input is compared: answers are taken to be the same.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct PolicySavings {
    /// Name of the policy.
    pub policy: String,
    /// The policy in words.
    pub description: String,
    /// Number of sessions that were compiled again.
    pub sessions: u64,
    /// Number of calls in them.
    pub calls: u64,
    /// Number of calls in these sessions that could not be compiled again.
    pub skipped_calls: u64,
    /// What the input of these calls cost, by their own reports.
    #[serde(rename = "billed_dollars")]
    pub billed: Money,
    /// What it would have cost as it was sent, predicted.
    #[serde(rename = "predicted_dollars")]
    pub predicted: Money,
    /// What it would have cost under the policy, predicted.
    #[serde(rename = "policy_dollars")]
    pub with_policy: Money,
    /// Input tokens of these calls as sent, predicted.
    pub predicted_tokens: u64,
    /// Input tokens under the policy, predicted.
    pub policy_tokens: u64,
    /// Number of sessions in which the policy costs more.
    pub dearer_sessions: u64,
    /// What it costs more in these.
    #[serde(rename = "dearer_dollars")]
    pub dearer: Money,
}

impl PolicySavings {
    /// Returns the difference in per cent of the prediction for the calls as they were; negative where the policy costs more.
    #[must_use]
    pub fn saved_percent(&self) -> f64 {
        signed_percent(self.predicted, self.with_policy, self.predicted)
    }

    /// Returns by how many per cent the prediction for the calls as they were is above what was billed; negative if below.
    #[must_use]
    pub fn prediction_error_percent(&self) -> f64 {
        signed_percent(self.predicted, self.billed, self.billed)
    }

    /// Returns the same in words: `2.8 % below`.
    #[must_use]
    pub fn prediction_error(&self) -> String {
        let percent = self.prediction_error_percent();
        let side = if percent < 0.0 { "below" } else { "above" };
        format!("{} % {side}", percent.abs())
    }
}

/// What was counted of a log that reports no usage.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct EstimateRow {
    /// Format of the logs.
    #[serde(serialize_with = "format_name")]
    pub format: SessionFormat,
    /// Number of sessions.
    pub sessions: u64,
    /// Number of answers in them.
    pub calls: u64,
    /// Input tokens if each answer was given the whole history before it.
    pub input_tokens: u64,
    /// Tokens of the answers.
    pub output_tokens: u64,
}

/// A file with lines that could not be read, or that could not be read at all.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DamagedFile {
    /// Path of the file or folder.
    pub file: String,
    /// Number of damaged lines; 0 if the file itself could not be read.
    pub lines: u64,
    /// Description of the fault.
    pub what: String,
}

/// The files that were looked at.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct FileCounts {
    /// Number of session logs.
    pub logs: u64,
    /// Number of files that may be logs by their name and are none.
    pub others: u64,
    /// Those with damage, in the order of their names.
    pub damaged: Vec<DamagedFile>,
}

/// What the calls in some logs cost, and why.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[non_exhaustive]
pub struct Spending {
    /// Time zone of all days and times.
    pub time_zone: String,
    /// Filters, in words; empty if there were none.
    pub filters: Vec<String>,
    /// Files that were read.
    pub files: FileCounts,
    /// Time of the first answer; empty if there is none.
    pub first: String,
    /// Time of the last answer.
    pub last: String,
    /// Number of sessions.
    pub sessions: u64,
    /// Sums over all calls.
    pub total: Tally,
    /// Sums over those of sub-agents.
    pub side: Tally,
    /// Number of answers that stand in several logs and were counted once.
    pub copied_calls: u64,
    /// Number of answers whose output is not all in the log.
    pub unfinished_calls: u64,
    /// Sums by day, earliest first.
    pub days: Vec<SpendingGroup>,
    /// Sums by model, dearest first.
    pub models: Vec<SpendingGroup>,
    /// Sums by folder, dearest first.
    pub projects: Vec<SpendingGroup>,
    /// The dearest sessions.
    pub dearest_sessions: Vec<SessionRow>,
    /// Breaks of the prompt cache.
    pub breaks: BreakFigures,
    /// What a policy would have saved; absent if that was not asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub policy: Option<PolicySavings>,
    /// Logs that report no usage, by format; in none of the sums above.
    pub estimates: Vec<EstimateRow>,
}

/// `part` of `whole` in per cent, rounded to a tenth; 0 of nothing.
pub(crate) fn percent(part: Money, whole: Money) -> f64 {
    if whole == Money::ZERO {
        return 0.0;
    }
    // In whole numbers up to here: a sum of money is never rounded before it is shown.
    let tenths = part.pico_dollars().saturating_mul(1_000) / whole.pico_dollars();
    // At most a few thousand, which a float holds exactly.
    f64::from(u32::try_from(tenths).unwrap_or(u32::MAX)) / 10.0
}

/// How much `one` is above `other`, in per cent of `whole`.
fn signed_percent(one: Money, other: Money, whole: Money) -> f64 {
    match one >= other {
        true => percent(one.saturating_sub(other), whole),
        false => -percent(other.saturating_sub(one), whole),
    }
}

fn format_name<S: serde::Serializer>(format: &SessionFormat, to: S) -> Result<S::Ok, S::Error> {
    to.serialize_str(format.as_str())
}
