//! Whether it pays to rewrite a history that is cached: to clear, shorten or summarise what is sent.
//!
//! Of `calls` calls to come, the next one included, each would read what is to be removed; after the
//! rewriting, what stands behind it has to be written once more:
//!
//! ```text
//! saving = removed × read × calls
//! cost   = behind  × (write − read)          a cache that still holds it
//!
//! saving = removed × (write + read × (calls − 1))
//! cost   = 0                                 a cache that has forgotten it
//! ```
//!
//! Both in pico-dollars, at the rates of the request as it is now; `write` is the price of input where
//! the provider caches by itself. What is written by the model that summarises is not in it. It is
//! conservative: where the price of input is not known, nothing is rewritten for money's sake; where
//! that of reading is not known, reading is taken to cost what input costs.

use contexture_wire::Ttl;
use serde::Serialize;

use crate::cache::bill::Rates;
use crate::cache::marks::Kept;
use crate::cache::outline::Outline;
use crate::cache::rules::CacheRules;

/// A rewriting that is considered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rewrite {
    /// The tokens that every call to come is spared.
    pub removed: u64,
    /// The tokens behind the first change that are cached and stay: they have to be written again.
    /// [`behind`] counts them.
    pub behind: u64,
    /// How many calls are expected, the next one included.
    pub calls: u64,
    /// For how long the history is marked.
    pub ttl: Ttl,
    /// Whether the cache still holds what was written.
    pub cache: CacheState,
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
#[cfg_attr(test, derive(schemars::JsonSchema))]
pub struct Worth {
    /// Whether it saves more than it costs.
    pub rewrite: bool,
    /// What it saves over the calls to come.
    pub saving: u128,
    /// What it costs at once.
    pub cost: u128,
}

/// Whether a rewriting pays. Without rates it does not.
#[must_use]
pub fn worth(rewrite: &Rewrite, rates: Option<&Rates>) -> Worth {
    let Some(rates) = rates else {
        return Worth::default();
    };
    let write = match rewrite.ttl {
        Ttl::Usual => rates.write,
        Ttl::Long => rates.write_long,
    };
    let times = |tokens: u64, rate: u128| u128::from(tokens).saturating_mul(rate);
    let reads = |calls: u64| times(calls, u128::from(rates.read));
    let (saving, cost) = match rewrite.cache {
        CacheState::Warm => (
            times(rewrite.removed, reads(rewrite.calls)),
            times(rewrite.behind, u128::from(write.saturating_sub(rates.read))),
        ),
        CacheState::Cold => {
            let first = u128::from(if rewrite.calls == 0 { 0 } else { write });
            let later = reads(rewrite.calls.saturating_sub(1));
            (times(rewrite.removed, first.saturating_add(later)), 0)
        }
    };
    Worth {
        rewrite: saving > cost,
        saving,
        cost,
    }
}

/// The cached tokens of a payload that cannot be read any more once it changes from a segment on,
/// those included that the change removes.
#[must_use]
pub fn behind(outline: &Outline, rules: &CacheRules, kept: &[Kept], changed: usize) -> u64 {
    let sums = outline.cumulated();
    let upto = |at: usize| sums.get(at).copied().unwrap_or(0);
    let known = || {
        let stands = |kept: &&Kept| outline.prefix(kept.segment) == kept.prefix;
        kept.iter().filter(stands).map(|kept| kept.segment)
    };
    let enough = |tokens: &u64| *tokens >= rules.minimum;
    let now = known().map(upto).max().unwrap_or(0);
    let then = if rules.by_marks() {
        known().filter(|at| *at < changed).map(upto).max()
    } else {
        changed.checked_sub(1).map(upto)
    };
    now.saturating_sub(then.filter(enough).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use contexture_catalogue::Catalogue;
    use contexture_ir::ContentHash;
    use contexture_wire::Format;

    use super::*;
    use crate::cache::bill::CacheUse;
    use crate::cache::marks::{MarkPolicy, place_marks};
    use crate::cache::outline::{Lasts, OutlineSegment, Part};
    use crate::cache::trace::CacheTrace;
    use crate::count::Tokens;

    const MODELS: [(&str, Format); 5] = [
        ("claude-sonnet-4-5", Format::Anthropic),
        ("claude-opus-4-5", Format::Anthropic),
        ("gpt-4.1", Format::OpenAiResponses),
        ("gpt-5.6", Format::OpenAiResponses),
        ("gemini-3.1-pro-preview", Format::Gemini),
    ];

    fn segment(name: &str, tokens: u64, part: Part) -> OutlineSegment {
        OutlineSegment {
            tokens: Tokens::between(tokens, tokens),
            blocks: 1,
            lasts: match part {
                Part::Messages => Lasts::Onwards,
                _ => Lasts::Epoch,
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
        let head = segment("system", 3_000, Part::System);
        let messages = messages
            .iter()
            .map(|(name, tokens)| segment(name, *tokens, Part::Messages));
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
        verdict: Worth,
        /// What the calls to come cost as they are, and rewritten.
        simulated: (u128, u128),
        what: String,
    }

    fn case(dice: &mut Dice) -> Case {
        let (model, format) = MODELS[dice.throw(0, 4) as usize];
        let spec = Catalogue::builtin().resolve(model).unwrap();
        let rules = CacheRules::of(spec, format);
        let rates = Rates::of(&spec.prices, rules.kind, 0).unwrap();
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
        let policy = MarkPolicy::default();
        let first = place_marks(&before, &rules, &[], policy);
        let removed = before.tokens() - outline(format, &new).tokens();
        let risked = behind(&before, &rules, &first.kept, changed + 1);
        let rewrite = Rewrite {
            removed,
            behind: risked.saturating_sub(removed),
            calls,
            ttl: Ttl::Usual,
            cache: CacheState::Warm,
        };
        let simulate = |start: &[(String, u64)]| {
            let mut trace = CacheTrace::new(rules.clone());
            trace.call(&before, &first.marks, 0);
            let (mut messages, mut kept) = (start.to_vec(), first.kept.clone());
            let mut total = CacheUse::default();
            for (at, step) in steps.iter().enumerate() {
                messages.push((format!("new {at}"), *step));
                let now = outline(format, &messages);
                let marking = place_marks(&now, &rules, &kept, policy);
                total += trace.call(&now, &marking.marks, at as u64 * 1_000 + 1);
                kept = marking.kept;
            }
            total.cost(&rates)
        };
        Case {
            verdict: worth(&rewrite, Some(&rates)),
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
            let Worth { saving, cost, .. } = case.verdict;
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
            removed: 1_000,
            behind: 500,
            calls: 6,
            ttl: Ttl::Usual,
            cache: CacheState::Warm,
        };
        let check = |rewrite: Rewrite, expected: (bool, u128, u128)| {
            let Worth {
                rewrite,
                saving,
                cost,
            } = worth(&rewrite, Some(&rates));
            assert_eq!((rewrite, saving, cost), expected);
        };
        check(rewrite, (true, 60_000, 57_500));
        check(
            Rewrite {
                calls: 5,
                ..rewrite
            },
            (false, 50_000, 57_500),
        );
        check(
            Rewrite {
                ttl: Ttl::Long,
                ..rewrite
            },
            (false, 60_000, 95_000),
        );
        let cold = CacheState::Cold;
        check(
            Rewrite {
                calls: 2,
                cache: cold,
                ..rewrite
            },
            (true, 135_000, 0),
        );
        check(
            Rewrite {
                calls: 0,
                cache: cold,
                ..rewrite
            },
            (false, 0, 0),
        );
        assert_eq!(worth(&rewrite, None), Worth::default());
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
        for (cache, calls) in [(CacheState::Warm, MOST), (CacheState::Cold, MOST)] {
            let rewrite = Rewrite {
                removed: MOST,
                behind: MOST,
                calls,
                ttl: Ttl::Usual,
                cache,
            };
            let worth = worth(&rewrite, Some(&rates));
            assert_eq!((worth.rewrite, worth.saving), (true, u128::MAX));
        }
        let all = CacheUse {
            read: MOST,
            write: MOST,
            write_long: MOST,
            fresh: MOST,
        };
        assert_eq!(all.cost(&rates), u128::MAX);
        assert_eq!(all.total(), MOST);
    }
}
