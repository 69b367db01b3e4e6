//! Whether it pays to rewrite a history that is cached: to clear, shorten or summarise what is sent.
//!
//! Two histories are compared over the calls to come: the request as it is, and rewritten. Each call sends all of
//! it; the first reads what is cached of it and writes the rest, the others read it:
//!
//! ```text
//! first = cached × read + (tokens − cached) × write
//! later = tokens × read × (calls − 1)
//! ```
//!
//! What is shorter than the provider's minimum is never cached: each call pays for it as for any input. So a
//! rewriting can cost more than it saves by making a request too short.
//!
//! In pico-dollars, at the rates of the request as it is now; `write` is the price of input where
//! the provider caches by itself. What is written by the model that summarises is not in it, nor what is new in
//! each call, which is the same for both. It is conservative: where the price of input is not known, nothing
//! is rewritten for money's sake; where that of reading is not known, reading is taken to cost what input costs; and a
//! request below the minimum is taken to stay there, though it may grow beyond.

use contexture_wire::CacheTtl;
use serde::Serialize;

use crate::cost::Rates;
use crate::markers::CachedPrefix;
use crate::outline::Outline;
use crate::rules::CacheRules;

/// A rewriting that is considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The request as it is.
    pub now: CallTokens,
    /// The request rewritten.
    pub then: CallTokens,
    /// How many calls are expected, the next one included.
    pub calls: u64,
    /// For how long the history is marked.
    pub ttl: CacheTtl,
    /// The shortest request that is cached, in tokens; 0 if not known.
    pub minimum: u64,
}

/// What the calls to come send.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CallTokens {
    /// The tokens of the request.
    pub tokens: u64,
    /// How many of them the next call finds in the cache; [`invalidated_tokens`] counts those that a change loses. 0 if the
    /// cache has forgotten them.
    pub cached: u64,
}

impl CallTokens {
    /// What the first call costs, and what the others do.
    fn call_costs(self, rewrite: &Rewrite, rates: &Rates) -> (u128, u128) {
        // No calls to come: nothing can be saved.
        let Some(others) = rewrite.calls.checked_sub(1) else {
            return (0, 0);
        };
        let held = |tokens: u64| tokens >= rewrite.minimum;
        let (write, read) = match rewrite.ttl {
            // Below the minimum the provider caches nothing and bills every token as input.
            _ if !held(self.tokens) => (rates.input, rates.input),
            CacheTtl::Usual => (rates.write, rates.read),
            CacheTtl::Long => (rates.write_long, rates.read),
        };
        let cached = self.cached.min(self.tokens);
        // The part that is still cached may be too short to be read by itself.
        let cached = if held(cached) { cached } else { 0 };
        let times = |tokens: u64, rate: u64| u128::from(tokens) * u128::from(rate);
        let first = times(cached, rates.read).saturating_add(times(self.tokens - cached, write));
        let later = times(self.tokens, read).saturating_mul(u128::from(others));
        (first, later)
    }
}

/// Whether the cache still holds what was written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub enum CacheState {
    /// It does, as far as is known.
    #[default]
    Warm,
    /// More time has passed than it keeps anything.
    Cold,
}

/// Whether a rewriting pays, and both figures, in pico-dollars.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub struct RewriteValue {
    /// Whether it saves more than it costs.
    pub rewrite: bool,
    /// What it saves over the calls to come.
    pub saving: u128,
    /// What it costs: at once, or in each call that it makes too short to be cached.
    pub cost: u128,
}

impl RewriteValue {
    /// After how many of the calls to come a rewriting that pays has paid back what it cost.
    #[must_use]
    pub fn calls_to_break_even(&self, calls: u64) -> u64 {
        // Savings are taken to come evenly over the calls, so the share of calls equals the share of
        // the saving.
        let after = self.cost.saturating_mul(u128::from(calls));
        let after = after.div_ceil(self.saving.max(1));
        u64::try_from(after).unwrap_or(calls).min(calls)
    }
}

/// Whether a rewriting pays. Without rates it does not.
#[must_use]
pub fn rewrite_value(rewrite: &Rewrite, rates: Option<&Rates>) -> RewriteValue {
    let Some(rates) = rates else {
        return RewriteValue::default();
    };
    let (first, later) = rewrite.now.call_costs(rewrite, rates);
    let (first_then, later_then) = rewrite.then.call_costs(rewrite, rates);
    // Gains and losses are summed apart, not netted: the report shows both figures.
    let gain = |now: u128, then: u128| (now.saturating_sub(then), then.saturating_sub(now));
    let (at_once, lost_at_once) = gain(first, first_then);
    let (by_and_by, lost_by_and_by) = gain(later, later_then);
    let saving = at_once.saturating_add(by_and_by);
    let cost = lost_at_once.saturating_add(lost_by_and_by);
    RewriteValue {
        rewrite: saving > cost,
        saving,
        cost,
    }
}

/// The cached tokens of a payload that cannot be read any more once it changes from a segment on,
/// those included that the change removes.
#[must_use]
pub fn invalidated_tokens(
    outline: &Outline,
    rules: &CacheRules,
    kept: &[CachedPrefix],
    changed: usize,
) -> u64 {
    let sums = outline.cumulative_tokens();
    let tokens_up_to = |at: usize| sums.get(at).copied().unwrap_or(0);
    let known = || {
        // Prefixes of another path are told by their hash and do not count.
        let stands = |kept: &&CachedPrefix| outline.prefix_hash(kept.segment) == kept.prefix;
        kept.iter().filter(stands).map(|kept| kept.segment)
    };
    let enough = |tokens: &u64| *tokens >= rules.minimum;
    let now = known().map(tokens_up_to).max().unwrap_or(0);
    // With markers only the prefixes that were marked can be read; without, any beginning can.
    let then = if rules.is_marker_based() {
        known().filter(|at| *at < changed).map(tokens_up_to).max()
    } else {
        changed.checked_sub(1).map(tokens_up_to)
    };
    now.saturating_sub(then.filter(enough).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use contexture_catalogue::Catalogue;
    use contexture_ir::ContentHash;
    use contexture_wire::{Format, RequestPart};

    use super::*;
    use crate::cost::CacheUsage;
    use crate::markers::{MarkerPolicy, place_markers};
    use crate::outline::{OutlineSegment, SegmentStability};
    use crate::predict::CacheSimulator;
    use contexture_tokens::TokenBounds;

    const MODELS: [(&str, Format); 5] = [
        ("claude-sonnet-4-5", Format::Anthropic),
        ("claude-opus-4-5", Format::Anthropic),
        ("gpt-4.1", Format::OpenAiResponses),
        ("gpt-5.6", Format::OpenAiResponses),
        ("gemini-3.1-pro-preview", Format::Gemini),
    ];

    fn segment(name: &str, tokens: u64, part: RequestPart) -> OutlineSegment {
        OutlineSegment {
            tokens: TokenBounds::between(tokens, tokens),
            blocks: 1,
            stability: match part {
                RequestPart::Messages => SegmentStability::Onwards,
                _ => SegmentStability::Epoch,
            },
            can_carry: true,
            ..OutlineSegment::new(
                part,
                0,
                ContentHash::of(format!("{name} {tokens}").as_bytes()),
            )
        }
    }

    fn outline(format: Format, messages: &[(String, u64)]) -> Outline {
        let head = segment("system", 3_000, RequestPart::System);
        let messages = messages
            .iter()
            .map(|(name, tokens)| segment(name, *tokens, RequestPart::Messages));
        Outline {
            format,
            scope: String::new(),
            segments: std::iter::once(head).chain(messages).collect(),
            whole: None,
        }
    }

    /// Figures that look random and are the same in every run.
    struct Dice(u64);

    impl Dice {
        fn throw(&mut self, from: u64, to: u64) -> u64 {
            self.0 = self
                .0
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            from + (self.0 >> 33) % (to - from + 1)
        }
    }

    struct Case {
        verdict: RewriteValue,
        /// What the calls to come cost as they are, and rewritten.
        simulated: (u128, u128),
        what: String,
    }

    fn case(dice: &mut Dice) -> Case {
        let (model, format) = MODELS[dice.throw(0, 4) as usize];
        let spec = Catalogue::builtin().resolve(model).unwrap();
        let rules = CacheRules::for_model(spec, format);
        let rates = Rates::for_request(&spec.prices, rules.kind, 0).unwrap();
        let count = dice.throw(3, 40) as usize;
        let old: Vec<(String, u64)> = (0..count)
            .map(|at| (format!("m{at}"), dice.throw(50, 4_000)))
            .collect();
        let changed = dice.throw(0, count as u64 - 2) as usize;
        let cleared = dice.throw(1, (count - changed) as u64 - 1) as usize;
        let new: Vec<(String, u64)> = old
            .iter()
            .enumerate()
            .map(|(at, (name, tokens))| {
                let clear = (changed..changed + cleared).contains(&at);
                (name.clone(), if clear { 20 } else { *tokens })
            })
            .collect();
        let calls = dice.throw(1, 60);
        let steps: Vec<u64> = (0..calls).map(|_| dice.throw(100, 3_000)).collect();

        let before = outline(format, &old);
        let policy = MarkerPolicy::default();
        let first = place_markers(&before, &rules, &[], policy);
        let removed = before.tokens() - outline(format, &new).tokens();
        let risked = invalidated_tokens(&before, &rules, &first.cached_prefixes, changed + 1);
        let tokens = before.tokens();
        let rewrite = Rewrite {
            now: CallTokens {
                tokens,
                cached: tokens,
            },
            then: CallTokens {
                tokens: tokens - removed,
                cached: tokens - risked,
            },
            calls,
            ttl: CacheTtl::Usual,
            minimum: rules.minimum,
        };
        let simulate = |start: &[(String, u64)]| {
            let mut trace = CacheSimulator::new(rules.clone());
            trace.record_call(&before, &first.markers, 0);
            let (mut messages, mut kept) = (start.to_vec(), first.cached_prefixes.clone());
            let mut total = CacheUsage::default();
            for (at, step) in steps.iter().enumerate() {
                messages.push((format!("new {at}"), *step));
                let now = outline(format, &messages);
                let plan = place_markers(&now, &rules, &kept, policy);
                total += trace.record_call(&now, &plan.markers, at as u64 * 1_000 + 1);
                kept = plan.cached_prefixes;
            }
            total.input_cost(&rates)
        };
        Case {
            verdict: rewrite_value(&rewrite, Some(&rates)),
            simulated: (simulate(&old), simulate(&new)),
            what: format!("{model}: {rewrite:?}"),
        }
    }

    #[test]
    fn the_verdict_is_that_of_the_simulated_cache() {
        let mut dice = Dice(7);
        let cases: Vec<Case> = (0..200).map(|_| case(&mut dice)).collect();
        let rewritten = cases.iter().filter(|case| case.verdict.rewrite).count();
        let wrong: Vec<&Case> = cases
            .iter()
            .filter(|case| case.verdict.rewrite != (case.simulated.1 < case.simulated.0))
            .collect();
        println!(
            "{} of {} agree, {rewritten} are rewritten",
            cases.len() - wrong.len(),
            cases.len()
        );
        for case in &wrong {
            let RewriteValue { saving, cost, .. } = case.verdict;
            let (kept, new) = case.simulated;
            println!(
                "  {}: saving {saving}, cost {cost}; simulated {kept} against {new}",
                case.what
            );
            // It errs only where it hardly matters: steps and minima of the provider are not in it.
            let (most, least) = (kept.max(new), kept.min(new));
            assert!(
                (most - least) * 50 < most,
                "{}: {kept} against {new}",
                case.what
            );
        }
        assert!(wrong.len() * 20 <= cases.len(), "{} wrong", wrong.len());
        assert!(
            rewritten * 10 > cases.len() && rewritten * 10 < 9 * cases.len(),
            "both happen"
        );
    }

    #[test]
    fn figures_by_hand() {
        let rates = Rates {
            input: 100,
            read: 10,
            write: 125,
            write_long: 200,
        };
        let rewrite = Rewrite {
            now: CallTokens {
                tokens: 1_500,
                cached: 1_500,
            },
            then: CallTokens {
                tokens: 500,
                cached: 0,
            },
            calls: 6,
            ttl: CacheTtl::Usual,
            minimum: 0,
        };
        let check = |rewrite: Rewrite, expected: (bool, u128, u128)| {
            let RewriteValue {
                rewrite,
                saving,
                cost,
            } = rewrite_value(&rewrite, Some(&rates));
            assert_eq!((rewrite, saving, cost), expected);
        };
        let calls = |calls: u64| Rewrite { calls, ..rewrite };
        let long = Rewrite {
            ttl: CacheTtl::Long,
            ..rewrite
        };
        // At once 500 × 125 instead of 1,500 × 10, then 1,000 × 10 less in each of five calls.
        check(rewrite, (true, 50_000, 47_500));
        check(calls(5), (false, 40_000, 47_500));
        check(long, (false, 50_000, 85_000));
        // Nothing is cached: 1,000 less are written, and read once.
        let mut cold = calls(2);
        cold.now.cached = 0;
        check(cold, (true, 135_000, 0));
        check(Rewrite { calls: 0, ..cold }, (false, 0, 0));
        assert_eq!(rewrite_value(&rewrite, None), RewriteValue::default());
        assert_eq!(
            rewrite_value(&rewrite, Some(&rates)).calls_to_break_even(6),
            6
        );
        assert_eq!(
            rewrite_value(&calls(60), Some(&rates)).calls_to_break_even(60),
            5
        );
    }

    #[test]
    fn what_becomes_too_short_to_be_cached_is_paid_for_each_time() {
        let rates = Rates {
            input: 100,
            read: 10,
            write: 100,
            write_long: 100,
        };
        let course = |tokens: u64, cached: u64| CallTokens { tokens, cached };
        let check = |now: CallTokens, then: CallTokens, expected: (bool, u128, u128)| {
            let rewrite = Rewrite {
                now,
                then,
                calls: 10,
                ttl: CacheTtl::Usual,
                minimum: 4_096,
            };
            let worth = rewrite_value(&rewrite, Some(&rates));
            assert_eq!((worth.rewrite, worth.saving, worth.cost), expected);
        };
        // 4,000 × 100 each time, instead of 6,000 × 10.
        check(
            course(6_000, 6_000),
            course(4_000, 1_000),
            (false, 0, 340_000 + 9 * 340_000),
        );
        // 4,100 are long enough, once they are written.
        check(
            course(6_000, 6_000),
            course(4_100, 1_000),
            (false, 171_000, 350_000),
        );
        // What was too short before costs nothing to rewrite.
        check(
            course(4_000, 3_900),
            course(3_000, 1_000),
            (true, 1_000_000, 0),
        );
    }

    #[test]
    fn the_largest_figures_stay_at_the_largest() {
        const MOST: u64 = u64::MAX;
        let rates = Rates {
            input: MOST,
            read: MOST,
            write: MOST,
            write_long: MOST,
        };
        let course = |tokens: u64| CallTokens { tokens, cached: 0 };
        let rewrite = Rewrite {
            now: course(MOST),
            then: course(0),
            calls: MOST,
            ttl: CacheTtl::Usual,
            minimum: 0,
        };
        let worth = rewrite_value(&rewrite, Some(&rates));
        assert_eq!((worth.rewrite, worth.saving), (true, u128::MAX));
        let all = CacheUsage {
            read: MOST,
            write: MOST,
            write_long: MOST,
            fresh: MOST,
        };
        assert_eq!(all.input_cost(&rates), u128::MAX);
        assert_eq!(all.total_tokens(), MOST);
    }
}
