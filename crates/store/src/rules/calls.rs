//! The record of calls: limits, what a call adds to a sum, and how roll-ups are made and read.
//!
//! A roll-up has a [`CallKey`], what its calls have in common, and a [`CallSum`] in the columns [`SUM_COLUMNS`]. Sums stop at
//! the ends of their types instead of overflowing.
//!
//! Not here: the columns of a call itself, except what no store searches for ([`encode_details`]).

use std::collections::BTreeMap;

use contexture_ir::{CallId, ConversationId, Usage};

use super::check::check_limit;
use crate::contract::{
    CALL_HOUR_MS, CallDetails, CallFilter, CallGroup, CallGrouping, CallNames, CallOrder,
    CallOutcome, CallRecord, CallSum, CallTokens, Error, Limits, ListCalls, SumCalls,
};

/// Largest number that a call may have in its figures: tokens, times and money. A sum of a thousand such calls an hour still
/// fits into a roll-up. In money it is 9,007 dollars.
pub const MAX_CALL_FIGURE: u64 = 1 << 53;

/// Largest number of bytes of a name of a call.
const MAX_NAME_BYTES: usize = 255;

/// Columns of a roll-up, in the order of [`sum_columns`].
pub const SUM_COLUMNS: [&str; 14] = [
    "calls",
    "failed",
    "rewritten",
    "predicted",
    "input_tokens",
    "cache_read_tokens",
    "cache_written_tokens",
    "output_tokens",
    "pico_dollars",
    "predicted_read_tokens",
    "sent_tokens",
    "passed_tokens",
    "sent_pico_dollars",
    "passed_pico_dollars",
];

/// What the calls of a roll-up have in common. `C` is a conversation as the store names it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub struct CallKey<C> {
    /// Hours from the Unix epoch to when they began.
    pub hour: i64,
    /// How they ended.
    pub outcome: CallOutcome,
    /// What they are found by.
    pub names: CallNames,
    /// Conversation that they belong to.
    pub conversation: C,
}

impl<C> CallKey<C> {
    /// Returns the key of the roll-up that a call goes to.
    #[must_use]
    pub fn of_call(id: CallId, outcome: CallOutcome, names: CallNames, conversation: C) -> Self {
        Self {
            hour: id.time_ms() / CALL_HOUR_MS,
            outcome,
            names,
            conversation,
        }
    }
}

impl CallSum {
    /// Returns the sum of one call.
    #[must_use]
    pub fn of_call(outcome: CallOutcome, details: &CallDetails) -> Self {
        let tokens = details.tokens.unwrap_or_default();
        let prediction = details.prediction.unwrap_or_default();
        Self {
            calls: 1,
            failed: u64::from(outcome.is_failure()),
            rewritten: u64::from(details.is_rewritten),
            predicted: u64::from(details.prediction.is_some()),
            input_tokens: tokens.input,
            cache_read_tokens: tokens.cache_read,
            cache_written_tokens: tokens.cache_written,
            output_tokens: tokens.output,
            pico_dollars: details.pico_dollars.unwrap_or(0).into(),
            predicted_read_tokens: prediction.sent.read,
            sent_tokens: prediction.sent.total(),
            passed_tokens: prediction.passed.total(),
            sent_pico_dollars: prediction.sent_pico_dollars.unwrap_or(0).into(),
            passed_pico_dollars: prediction.passed_pico_dollars.unwrap_or(0).into(),
        }
    }

    /// Adds another sum to this one; numbers stop at their limits.
    pub fn add_sum(&mut self, other: &Self) {
        let mine = self.numbers();
        let mut sums = mine.into_iter().zip(other.numbers());
        // Both have the same members in the same order.
        *self = Self::from_numbers(|| sums.next().map_or(0, |(one, two)| one.saturating_add(two)));
    }

    /// Returns the members in the order of [`SUM_COLUMNS`].
    fn numbers(&self) -> [u128; SUM_COLUMNS.len()] {
        [
            self.calls.into(),
            self.failed.into(),
            self.rewritten.into(),
            self.predicted.into(),
            self.input_tokens.into(),
            self.cache_read_tokens.into(),
            self.cache_written_tokens.into(),
            self.output_tokens.into(),
            self.pico_dollars,
            self.predicted_read_tokens.into(),
            self.sent_tokens.into(),
            self.passed_tokens.into(),
            self.sent_pico_dollars,
            self.passed_pico_dollars,
        ]
    }

    /// Returns the sum with the members that `next` gives, in the order of [`SUM_COLUMNS`].
    fn from_numbers(mut next: impl FnMut() -> u128) -> Self {
        let count = |number: u128| u64::try_from(number).unwrap_or(u64::MAX);
        Self {
            calls: count(next()),
            failed: count(next()),
            rewritten: count(next()),
            predicted: count(next()),
            input_tokens: count(next()),
            cache_read_tokens: count(next()),
            cache_written_tokens: count(next()),
            output_tokens: count(next()),
            pico_dollars: next(),
            predicted_read_tokens: count(next()),
            sent_tokens: count(next()),
            passed_tokens: count(next()),
            sent_pico_dollars: next(),
            passed_pico_dollars: next(),
        }
    }
}

/// Returns the columns of a roll-up's sum.
#[must_use]
pub fn sum_columns(sum: &CallSum) -> [i64; SUM_COLUMNS.len()] {
    sum.numbers()
        .map(|number| i64::try_from(number).unwrap_or(i64::MAX))
}

/// Returns a sum whose columns a database added up in two parts, because it cannot count further than 2^63: the sums of each
/// column divided by a million, and of the remainders, in the order of [`SUM_COLUMNS`].
#[must_use]
pub fn sum_from_halves(halves: &[(i64, i64)]) -> CallSum {
    let number = |part: i64| u128::try_from(part).unwrap_or(0);
    let mut sums = halves
        .iter()
        .map(|(millions, rest)| number(*millions) * 1_000_000 + number(*rest));
    CallSum::from_numbers(|| sums.next().unwrap_or(0))
}

/// The groups of a sum, as they are added up.
#[derive(Debug)]
pub struct CallTotals<'a> {
    by: &'a [CallGrouping],
    most: usize,
    groups: BTreeMap<CallGroup, CallSum>,
}

impl<'a> CallTotals<'a> {
    /// Returns an empty sum.
    #[must_use]
    pub const fn new(by: &'a [CallGrouping], limits: &Limits) -> Self {
        Self {
            by,
            most: limits.call_groups,
            groups: BTreeMap::new(),
        }
    }

    /// Adds a sum to its group. Of the key only what is grouped by is read; its conversation is an id, empty for none.
    ///
    /// # Errors
    /// [`Error::Limit`] `call_groups`.
    pub fn add_sum(&mut self, key: CallKey<&str>, sum: &CallSum) -> Result<(), Error> {
        let mut group = CallGroup::default();
        for by in self.by {
            match by {
                CallGrouping::Day => group.day_ms = Some(key.hour / 24 * 24 * CALL_HOUR_MS),
                CallGrouping::Upstream => group.upstream = Some(key.names.upstream.clone()),
                CallGrouping::Model => group.model = Some(key.names.model.clone()),
                CallGrouping::Key => group.key = Some(key.names.key.clone()),
                CallGrouping::Policy => group.policy = Some(key.names.policy.clone()),
                CallGrouping::Conversation => {
                    group.conversation = Some(key.conversation.to_owned());
                }
                CallGrouping::Outcome => group.outcome = Some(key.outcome),
            }
        }
        self.groups.entry(group).or_default().add_sum(sum);
        check_limit("call_groups", self.most, self.groups.len())
    }

    /// Returns the groups in order.
    #[must_use]
    pub fn into_groups(self) -> Vec<(CallGroup, CallSum)> {
        self.groups.into_iter().collect()
    }
}

/// Returns a text as a name of a call: without control characters, and cut to the bytes that a name may have.
#[must_use]
pub fn call_name(text: &str) -> String {
    let plain: String = text.chars().filter(|c| !c.is_control()).collect();
    let end = plain.floor_char_boundary(MAX_NAME_BYTES);
    plain.get(..end).unwrap_or_default().to_owned()
}

/// Returns a number within the limit of a call's figures: what a provider reports must not keep its answer from being stored.
#[must_use]
pub fn call_figure(number: u64) -> u64 {
    number.min(MAX_CALL_FIGURE)
}

/// Returns an amount in 10⁻¹² dollars as a call's figure.
#[must_use]
pub fn call_money(pico_dollars: u128) -> u64 {
    call_figure(u64::try_from(pico_dollars).unwrap_or(u64::MAX))
}

/// Returns the tokens of a call as the provider reported them.
#[must_use]
pub fn call_tokens(usage: &Usage) -> CallTokens {
    let figure = |tokens: Option<u64>| call_figure(tokens.unwrap_or(0));
    CallTokens {
        input: figure(usage.input_tokens),
        cache_read: figure(usage.cache_read_tokens),
        cache_written: figure(usage.cache_write_tokens),
        output: figure(usage.output_tokens),
    }
}

/// Checks that calls are within the limits.
///
/// # Errors
/// [`Error::Limit`], [`Error::Invalid`] for an empty band or body.
pub fn check_calls(calls: &[CallRecord], limits: &Limits) -> Result<(), Error> {
    check_limit("call_batch", limits.call_batch, calls.len())?;
    calls.iter().try_for_each(|call| check_call(call, limits))
}

pub(super) fn check_call(call: &CallRecord, limits: &Limits) -> Result<(), Error> {
    let (names, details) = (&call.names, &call.details);
    let finish = details.finish.as_deref().unwrap_or_default();
    let refusal = details.refusal.as_deref().unwrap_or_default();
    for name in [
        names.upstream.as_str(),
        &names.model,
        &names.key,
        &names.policy,
        &details.format,
        finish,
        refusal,
    ] {
        check_limit("call_name_bytes", MAX_NAME_BYTES, name.len())?;
        if name.chars().any(char::is_control) {
            let why = "a name with control characters";
            return Err(Error::invalid_argument("call", why));
        }
    }
    if let Some(band) = &call.band {
        check_limit("call_band_bytes", limits.call_band_bytes, band.len())?;
        if band.is_empty() {
            return Err(Error::invalid_argument("call", "a band of no bytes"));
        }
    }
    if let Some(body) = &call.body {
        check_limit("call_body_bytes", limits.call_body_bytes, body.len())?;
        if body.is_empty() {
            return Err(Error::invalid_argument("call", "a body of no bytes"));
        }
    }
    let tokens = details.tokens.unwrap_or_default();
    let prediction = details.prediction.unwrap_or_default();
    let figures = [
        details.duration_ms,
        details.first_byte_ms.unwrap_or(0),
        tokens.input,
        tokens.cache_read,
        tokens.cache_written,
        tokens.output,
        details.pico_dollars.unwrap_or(0),
        prediction.sent.total(),
        prediction.passed.total(),
        prediction.sent_pico_dollars.unwrap_or(0),
        prediction.passed_pico_dollars.unwrap_or(0),
    ];
    let largest = figures.into_iter().max().unwrap_or(0);
    if largest > MAX_CALL_FIGURE {
        return Err(Error::Limit {
            limit: "call_figure",
            max: MAX_CALL_FIGURE,
            actual: largest,
        });
    }
    Ok(())
}

/// Checks how many conversations are summed up at once.
///
/// # Errors
/// [`Error::Limit`].
pub fn check_sum_conversations(
    conversations: &[ConversationId],
    limits: &Limits,
) -> Result<(), Error> {
    check_limit("call_batch", limits.call_batch, conversations.len())
}

/// Checks that the times of a sum are whole hours.
///
/// # Errors
/// [`Error::Invalid`].
pub fn check_sum_calls(sum: &SumCalls) -> Result<(), Error> {
    for (what, time) in [
        ("since", sum.filter.since_ms),
        ("until", sum.filter.until_ms),
    ] {
        if time.is_some_and(|time| time % CALL_HOUR_MS != 0) {
            let why = "older calls are kept by the hour: expected a multiple of 3,600,000 ms";
            return Err(Error::invalid_argument(what, why));
        }
    }
    Ok(())
}

/// Returns the smallest id that a filter accepts, and the one that is beyond all of them.
#[must_use]
pub fn call_range(filter: &CallFilter) -> (CallId, CallId) {
    let low = filter.since_ms.map_or(0, |since| since.max(0));
    let high = filter.until_ms.map_or(i64::MAX, |until| until.max(0));
    (CallId::first_at(low), CallId::first_at(high))
}

/// Returns the range of the ids of a page and of all behind it.
#[must_use]
pub fn page_range(list: &ListCalls) -> (CallId, CallId) {
    let (low, high) = call_range(&list.filter);
    match (list.after, list.order) {
        (None, _) => (low, high),
        (Some(after), CallOrder::NewestFirst) => (low, high.min(after)),
        (Some(after), CallOrder::OldestFirst) => {
            let behind = u128::from_be_bytes(*after.as_bytes()).saturating_add(1);
            (low.max(CallId::from_bytes(behind.to_be_bytes())), high)
        }
    }
}

/// Returns the hours of the roll-ups that a filter accepts, from the first to before the last.
#[must_use]
pub fn hour_range(filter: &CallFilter) -> (i64, i64) {
    let hour = |time: i64| time.max(0) / CALL_HOUR_MS;
    (
        filter.since_ms.map_or(0, hour),
        filter.until_ms.map_or(i64::MAX, hour),
    )
}

/// Returns whether a filter accepts a call.
pub(crate) fn matches_call(filter: &CallFilter, call: &CallRecord) -> bool {
    let (low, high) = call_range(filter);
    let is_named = |wanted: &Option<String>, name: &String| {
        wanted.as_ref().is_none_or(|wanted| wanted == name)
    };
    low <= call.id
        && call.id < high
        && is_named(&filter.upstream, &call.names.upstream)
        && is_named(&filter.model, &call.names.model)
        && is_named(&filter.key, &call.names.key)
        && is_named(&filter.policy, &call.names.policy)
        && filter.outcome.is_none_or(|outcome| outcome == call.outcome)
        && (filter.conversation.is_none() || filter.conversation == call.conversation)
}

/// Returns the column in which a store keeps what it does not search for.
#[must_use]
pub fn encode_details(details: &CallDetails) -> Vec<u8> {
    // Numbers and texts: nothing that could not be written.
    serde_json::to_vec(details).unwrap_or_default()
}

/// Reads that column. Members that later versions added are skipped.
///
/// # Errors
/// The reason why it is damaged.
pub fn decode_details(bytes: &[u8]) -> Result<CallDetails, String> {
    serde_json::from_slice(bytes).map_err(|error| format!("the details of a call: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::contract::CallPrediction;

    fn details() -> CallDetails {
        CallDetails {
            format: "openai-chat".to_owned(),
            duration_ms: 1234,
            status: Some(200),
            tokens: Some(CallTokens {
                input: 10,
                output: 3,
                ..CallTokens::default()
            }),
            pico_dollars: Some(MAX_CALL_FIGURE),
            prediction: Some(CallPrediction::default()),
            attempts: 1,
            is_rewritten: true,
            ..CallDetails::default()
        }
    }

    #[test]
    fn details_come_back_and_are_small() {
        for details in [CallDetails::default(), details()] {
            let bytes = encode_details(&details);
            assert_eq!(decode_details(&bytes).unwrap(), details);
            assert!(bytes.len() < 150, "{} bytes", bytes.len());
        }
        assert!(decode_details(b"{\"later\":1}").is_ok());
        assert!(decode_details(b"[").is_err());
    }

    #[test]
    fn sums_survive_their_columns() {
        let mut sum = CallSum::default();
        for outcome in CallOutcome::ALL {
            sum.add_sum(&CallSum::of_call(outcome, &details()));
        }
        assert_eq!((sum.calls, sum.failed, sum.input_tokens), (6, 3, 60));
        let halves = sum_columns(&sum).map(|column| (column / 1_000_000, column % 1_000_000));
        assert_eq!(sum_from_halves(&halves), sum);
        // What a thousand of the largest calls an hour cost fits into a roll-up's column.
        assert!(u128::from(MAX_CALL_FIGURE) * 1000 < i64::MAX as u128);
        let mut largest = CallSum::from_numbers(|| u128::MAX);
        largest.add_sum(&sum);
        assert_eq!((largest.calls, largest.pico_dollars), (u64::MAX, u128::MAX));
    }

    #[test]
    fn any_text_makes_a_name() {
        for text in ["", "gpt-5", "a\0b\n", &"é".repeat(400)] {
            let mut call = CallRecord::new(CallId::first_at(0), &call_name(text));
            assert!(check_call(&call, &Limits::default()).is_ok(), "{text}");
            call.names.model = format!("{text}\0");
            assert!(check_call(&call, &Limits::default()).is_err(), "{text}");
        }
    }

    #[test]
    fn ranges_follow_the_filter() {
        let filter = CallFilter {
            since_ms: Some(-5),
            until_ms: Some(2 * CALL_HOUR_MS),
            ..CallFilter::default()
        };
        let (low, high) = call_range(&filter);
        assert_eq!(
            (low, high.time_ms()),
            (CallId::first_at(0), 2 * CALL_HOUR_MS)
        );
        let after = CallId::first_at(7);
        let mut list = ListCalls {
            filter: filter.clone(),
            after: Some(after),
            ..ListCalls::default()
        };
        assert_eq!(page_range(&list), (low, after));
        list.order = CallOrder::OldestFirst;
        let (first, last) = page_range(&list);
        assert!(after < first && first < CallId::first_at(8) && last == high);
        assert_eq!(hour_range(&filter), (0, 2));
    }
}
