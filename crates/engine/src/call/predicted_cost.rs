//! What a compiled request was expected to cost, beside what it would have cost with nothing of the history left out.
//!
//! A program's own conversation has no request "as it came". What would have been sent in its place is the same request with
//! all of its history, so that is what savings are measured by. Both are predictions from one report: nothing is compiled twice.
//!
//! Not here: requests of a proxy's clients, which came as they came (`contexture-server`).

use contexture_catalogue::CacheKind;
use contexture_compile::{
    CachePolicy, CacheUsage, EpochReason, Rates, Report, Segment, SegmentRule, SegmentVerdict,
};
use contexture_store::rules::{MAX_CALL_FIGURE, call_money};
use contexture_store::{CacheTokens, CallPrediction};
use contexture_wire::CacheTtl;

/// The band of the report whose segments are the history.
const HISTORY: &str = "history";

/// Returns what a compiled request was expected to cost, and what it would have cost whole.
pub(crate) fn predict_cost(report: &Report, cache: &CachePolicy) -> CallPrediction {
    let (sent, passed) = (report.cache.predicted, uncut_usage(report, cache));
    CallPrediction {
        sent: call_cache_tokens(sent),
        passed: call_cache_tokens(passed),
        sent_pico_dollars: input_money(&sent, cache),
        passed_pico_dollars: input_money(&passed, cache),
    }
}

/// Returns whether a request has not all of its history as it is.
pub(crate) fn is_cut(report: &Report) -> bool {
    history(report).any(|segment| {
        let is_whole = matches!(
            segment.verdict,
            SegmentVerdict::Kept | SegmentVerdict::Required
        );
        // Of the last round, which is always sent, outputs may be previews all the same.
        !is_whole || segment.omitted_tokens > 0 || segment.rule_kind == SegmentRule::Compaction
    })
}

fn history(report: &Report) -> impl Iterator<Item = &Segment> {
    let segments = report.segments.iter();
    segments.filter(|segment| segment.band == HISTORY)
}

/// Returns what a request with all of its history would have read from the provider's cache and written to it, had the requests
/// before it been sent whole, too.
fn uncut_usage(report: &Report, cache: &CachePolicy) -> CacheUsage {
    let sent = report.cache.predicted;
    if !is_cut(report) && !was_broken_by_cut(report) {
        return sent;
    }
    let mut tokens = UncutTokens::of_report(report);
    tokens.scale(sent.total_tokens(), report.totals.tokens);
    let whole = sent
        .total_tokens()
        .saturating_add(tokens.old)
        .saturating_add(tokens.new)
        .saturating_sub(tokens.stand_ins);
    let read = match () {
        () if report.cache.first || cache.rules.kind == CacheKind::None => 0,
        // The cut broke the prefix, which the whole request would still have: only its end is new.
        () if was_broken_by_cut(report) => whole.saturating_sub(tokens.end),
        () if report.epoch.opened => sent.read,
        // What is left out was left out of the call before, too: it would have been read with the rest.
        () => sent
            .read
            .saturating_add(tokens.old)
            .saturating_sub(tokens.stand_ins),
    };
    // A prefix below the minimum was never cached.
    let read = if read >= cache.rules.minimum { read } else { 0 };
    split_rest(report, cache, read.min(whole), whole)
}

/// Splits what is not read of a request into what is written and what is neither, as it is of the one that was sent.
fn split_rest(report: &Report, cache: &CachePolicy, read: u64, whole: u64) -> CacheUsage {
    let (sent, rest) = (report.cache.predicted, whole - read);
    if !cache.rules.is_marker_based() {
        return CacheUsage {
            read,
            fresh: rest,
            ..CacheUsage::default()
        };
    }
    let fresh = sent.fresh.min(rest);
    let written = rest - fresh;
    // What the longer request has more of stands before its last marker.
    let last = report.cache.markers.last().map(|marker| marker.ttl);
    let long = match last {
        Some(CacheTtl::Long) => written,
        _ if read == 0 => sent.write_long.min(written),
        _ => 0,
    };
    CacheUsage {
        read,
        write: written - long,
        write_long: long,
        fresh,
    }
}

/// Returns whether the prefix of the call before does not hold because more of the history is left out.
const fn was_broken_by_cut(report: &Report) -> bool {
    report.epoch.opened
        && matches!(
            report.epoch.reason,
            EpochReason::HistoryTrimmed
                | EpochReason::HistoryCleared
                | EpochReason::HistoryCompacted
                | EpochReason::HistoryPreviewed
                | EpochReason::RulesChanged
        )
}

/// Tokens of a report by which the whole request differs from the one that was sent.
#[derive(Clone, Copy, Debug, Default)]
struct UncutTokens {
    /// Left out before the last round.
    old: u64,
    /// Left out of the last round.
    new: u64,
    /// What stands for what is left out, and would not be there.
    stand_ins: u64,
    /// The end of the whole request: the last round and all behind the history.
    end: u64,
}

impl UncutTokens {
    fn of_report(report: &Report) -> Self {
        let mut all = Self::default();
        for segment in &report.segments {
            let (tokens, omitted) = (segment.tokens, segment.omitted_tokens);
            match (segment.band, segment.rule_kind) {
                (HISTORY, SegmentRule::LastRound) => {
                    all.new = all.new.saturating_add(omitted);
                    all.end = all.end.saturating_add(tokens).saturating_add(omitted);
                }
                (HISTORY, rule) => {
                    all.old = all.old.saturating_add(omitted);
                    if rule == SegmentRule::Compaction {
                        all.stand_ins = all.stand_ins.saturating_add(tokens);
                    }
                }
                ("live" | "tail", _) => all.end = all.end.saturating_add(tokens),
                _ => {}
            }
        }
        all
    }

    /// Makes best guesses of tokens as budgeted, which are upper bounds: the prediction of the cache has best guesses.
    fn scale(&mut self, guessed: u64, budgeted: u64) {
        let scaled = |tokens: u64| {
            let tokens = u128::from(tokens) * u128::from(guessed) / u128::from(budgeted.max(1));
            u64::try_from(tokens).unwrap_or(u64::MAX)
        };
        for tokens in [
            &mut self.old,
            &mut self.new,
            &mut self.stand_ins,
            &mut self.end,
        ] {
            *tokens = scaled(*tokens);
        }
    }
}

fn input_money(usage: &CacheUsage, cache: &CachePolicy) -> Option<u64> {
    let rates = Rates::for_request(&cache.prices, cache.rules.kind, usage.total_tokens())?;
    Some(call_money(usage.input_cost(&rates)))
}

/// Returns the tokens of a use of the cache as a call's figures.
#[must_use]
pub fn call_cache_tokens(usage: CacheUsage) -> CacheTokens {
    // A third of the limit each, so that their sum is within it.
    let part = |tokens: u64| tokens.min(MAX_CALL_FIGURE / 3);
    CacheTokens {
        read: part(usage.read),
        // Both lifetimes together: the split matters for prices only, which are summed beside it.
        written: part(usage.write.saturating_add(usage.write_long)),
        fresh: part(usage.fresh),
    }
}
