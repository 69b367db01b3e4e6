//! What calls cost as they are sent, and what they would have cost as clients sent them: a provider's cache on either
//! side, per conversation and model, as the compiler simulates it.
//!
//! In memory, as much of it as there is room for, that of the conversations that were called last; one that was
//! forgotten begins with an empty cache on both sides.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use contexture::Owner;
use contexture::catalogue::{CacheKind, Prices};
use contexture::compile::{
    CacheMarker, CacheRules, CacheSimulator, CacheUsage, Outline, Rates, active_markers,
};
use contexture::ir::ConversationId;
use contexture::{Format, ModelSpec};

/// How many calls like this one are expected, with it.
const EXPECTED_CALLS: u64 = 5;

/// Whose calls: an owner's, in a conversation, of a model.
pub(crate) type CostAccount = (Owner, ConversationId, String);

/// What a model's provider keeps and asks for.
#[derive(Clone, Debug)]
pub(crate) struct PriceTerms {
    rules: CacheRules,
    prices: Prices,
}

/// A request that may be sent, and what its tokens cost.
struct PricedOutline<'a> {
    outline: &'a Outline,
    marks: Vec<CacheMarker>,
    rates: Rates,
}

/// What a conversation may cost more than as it came, until that is saved again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RewriteDebt {
    /// Nothing.
    None,
    /// What writing a request to the cache costs more than sending it, once.
    OneWrite,
}

/// What may be sent, and what came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RewriteOffer<'a> {
    /// As the client sent it.
    pub(crate) original: &'a Outline,
    /// What goes if nothing is changed.
    pub(crate) current: &'a Outline,
    /// What may go in its place.
    pub(crate) proposed: &'a Outline,
    pub(crate) debt: RewriteDebt,
}

/// What one call cost, and would have cost as it came: in tokens, and in 10⁻¹² dollars as far as prices are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BookedCall {
    pub(crate) sent: CacheUsage,
    pub(crate) passed: CacheUsage,
    pub(crate) sent_cost: u128,
    pub(crate) passed_cost: u128,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
struct AccountLimits {
    accounts: usize,
    /// Of requests, in all accounts together; each takes about 50 bytes.
    prefixes: usize,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct CostAccounts {
    limits: AccountLimits,
    table: Mutex<AccountTable>,
}

#[derive(Debug, Default)]
struct AccountTable {
    caches: BTreeMap<CostAccount, AccountCaches>,
    /// Those in all of them.
    prefixes: usize,
    /// Grows with every look.
    clock: u64,
}

#[derive(Debug)]
struct AccountCaches {
    sent: CacheSimulator,
    passed: CacheSimulator,
    /// What all calls saved, in 10⁻¹² dollars.
    saved: i128,
    last_used: u64,
}

impl Default for CostAccounts {
    /// 1,000 conversations, 500,000 prefixes.
    fn default() -> Self {
        Self::with_limits(AccountLimits {
            accounts: 1_000,
            prefixes: 500_000,
        })
    }
}

impl PriceTerms {
    /// Those of a model, asked in this format.
    pub(crate) fn for_model(spec: &ModelSpec, format: Format) -> Self {
        Self {
            rules: CacheRules::for_model(spec, format),
            prices: spec.prices.clone(),
        }
    }

    /// By the request's own size, as rates may depend on that. Nothing where prices are not known.
    fn rates_for(&self, outline: &Outline) -> Option<Rates> {
        Rates::for_request(&self.prices, self.rules.kind, outline.tokens())
    }

    fn price_outline<'a>(&self, outline: &'a Outline) -> Option<PricedOutline<'a>> {
        Some(PricedOutline {
            outline,
            marks: active_markers(outline, &self.rules),
            rates: self.rates_for(outline)?,
        })
    }
}

impl PricedOutline<'_> {
    fn predicted_cost(&self, cache: &CacheSimulator, at_ms: u64) -> u128 {
        let used = cache.predict_usage(self.outline, &self.marks, at_ms);
        used.input_cost(&self.rates)
    }
}

impl CostAccounts {
    fn with_limits(room: AccountLimits) -> Self {
        Self {
            limits: room,
            table: Mutex::default(),
        }
    }

    /// What a call that is sent now is expected to read from the cache, and to write.
    pub(crate) fn predict_usage(
        &self,
        account: &CostAccount,
        terms: &PriceTerms,
        outline: &Outline,
        at_ms: u64,
    ) -> CacheUsage {
        let marks = active_markers(outline, &terms.rules);
        self.with_caches(account, terms, |caches| {
            caches.sent.predict_usage(outline, &marks, at_ms)
        })
    }

    /// Whether a call that is sent now costs more than what came. Without prices it does not.
    pub(crate) fn costs_more(
        &self,
        account: &CostAccount,
        terms: &PriceTerms,
        sent: &Outline,
        came: &Outline,
        at_ms: u64,
    ) -> bool {
        let (Some(sent), Some(came)) = (terms.price_outline(sent), terms.price_outline(came))
        else {
            return false;
        };
        self.with_caches(account, terms, |caches| {
            sent.predicted_cost(&caches.sent, at_ms) > came.predicted_cost(&caches.passed, at_ms)
        })
    }

    /// Whether what is offered costs less over the calls to come, and this call no more than what came, what the calls
    /// before have saved, and what may be owed. Without prices it does not.
    pub(crate) fn is_worthwhile(
        &self,
        account: &CostAccount,
        terms: &PriceTerms,
        offer: &RewriteOffer<'_>,
        at_ms: u64,
    ) -> bool {
        let RewriteOffer {
            original: came,
            current: now,
            proposed: then,
            debt,
        } = *offer;
        let priced = [came, now, then].map(|outline| terms.price_outline(outline));
        let [Some(came), Some(now), Some(then)] = priced else {
            return false;
        };
        // Whether a request is long enough to be cached is not known where it is about as long as that: then what is there
        // is, and what may be is not.
        let (now_most, then_least) = (
            now.outline.token_bounds().high,
            then.outline.token_bounds().low,
        );
        let later = |one: &PricedOutline<'_>, length: u64| {
            let held = match terms.rules.kind {
                CacheKind::None => false,
                _ if terms.rules.is_marker_based() && one.marks.is_empty() => false,
                _ => length >= terms.rules.minimum,
            };
            let rate = if held {
                one.rates.read
            } else {
                one.rates.input
            };
            let each = u128::from(one.outline.tokens()) * u128::from(rate);
            each.saturating_mul(u128::from(EXPECTED_CALLS - 1))
        };
        self.with_caches(account, terms, |caches| {
            let first = now.predicted_cost(&caches.sent, at_ms);
            let first_then = then.predicted_cost(&caches.sent, at_ms);
            let passed = came.predicted_cost(&caches.passed, at_ms);
            let all = first.saturating_add(later(&now, now_most));
            let all_then = first_then.saturating_add(later(&then, then_least));
            let owed = match debt {
                RewriteDebt::None => 0,
                RewriteDebt::OneWrite => {
                    let dearer = then.rates.write.saturating_sub(then.rates.input);
                    u128::from(then.outline.tokens()) * u128::from(dearer)
                }
            };
            let means = caches.saved.saturating_add(to_signed(owed));
            let affordable = to_signed(first_then) <= to_signed(passed).saturating_add(means);
            all_then < all && (first_then <= first || affordable)
        })
    }

    /// Takes down a call: what was sent, and what was to be sent; nothing, if nobody asked for it but us.
    pub(crate) fn record_call(
        &self,
        account: &CostAccount,
        terms: &PriceTerms,
        sent: &Outline,
        passed: Option<&Outline>,
        at_ms: u64,
    ) -> BookedCall {
        let call = |cache: &mut CacheSimulator, outline: &Outline| {
            let used = cache.record_call(outline, &active_markers(outline, &terms.rules), at_ms);
            let rates = terms.rates_for(outline);
            (used, rates.map_or(0, |rates| used.input_cost(&rates)))
        };
        self.with_caches(account, terms, |caches| {
            let (sent, sent_cost) = call(&mut caches.sent, sent);
            let passed = passed.map(|passed| call(&mut caches.passed, passed));
            let (passed, passed_cost) = passed.unwrap_or_default();
            let saved = to_signed(passed_cost).saturating_sub(to_signed(sent_cost));
            caches.saved = caches.saved.saturating_add(saved);
            BookedCall {
                sent,
                passed,
                sent_cost,
                passed_cost,
            }
        })
    }

    fn with_caches<T>(
        &self,
        account: &CostAccount,
        terms: &PriceTerms,
        act: impl FnOnce(&mut AccountCaches) -> T,
    ) -> T {
        let mut open = self.table.lock().unwrap_or_else(PoisonError::into_inner);
        let AccountTable {
            caches,
            prefixes,
            clock,
        } = &mut *open;
        *clock += 1;
        let looked = *clock;
        let one = caches
            .entry(account.clone())
            .or_insert_with(|| AccountCaches {
                sent: CacheSimulator::new(terms.rules.clone()),
                passed: CacheSimulator::new(terms.rules.clone()),
                saved: 0,
                last_used: looked,
            });
        one.last_used = looked;
        *prefixes -= one.prefix_count();
        let done = act(one);
        *prefixes += one.prefix_count();
        while caches.len() > self.limits.accounts || *prefixes > self.limits.prefixes {
            let oldest = caches.iter().min_by_key(|(_, caches)| caches.last_used);
            let Some(oldest) = oldest.map(|(account, _)| account.clone()) else {
                break;
            };
            let gone = caches.remove(&oldest);
            *prefixes -= gone.map_or(0, |gone| gone.prefix_count());
        }
        done
    }
}

fn to_signed(pico: u128) -> i128 {
    i128::try_from(pico).unwrap_or(i128::MAX)
}

impl AccountCaches {
    fn prefix_count(&self) -> usize {
        self.sent.prefix_count() + self.passed.prefix_count()
    }
}

#[cfg(test)]
mod tests {
    use contexture::catalogue::Catalogue;
    use contexture::tokens::{Encoding, counter_for};
    use contexture::wire::CacheTtl;

    use super::*;

    fn terms() -> PriceTerms {
        let spec = Catalogue::builtin().resolve("gpt-4.1").unwrap();
        PriceTerms::for_model(spec, Format::OpenAiChat)
    }

    /// A request of so many messages, which are long enough to be cached.
    fn request(messages: usize) -> Outline {
        let said = |at: usize| {
            format!(
                r#"{{"role":"user","content":"{at}{}"}}"#,
                " word".repeat(2_000)
            )
        };
        let messages: Vec<String> = (0..messages).map(said).collect();
        let json = format!(
            r#"{{"model":"gpt-4.1","messages":[{}]}}"#,
            messages.join(",")
        );
        Outline::parse_request(Format::OpenAiChat, &json, counter_for(Encoding::O200kBase)).unwrap()
    }

    fn account(name: &str) -> CostAccount {
        let id = ConversationId::new(name).unwrap();
        (Owner::local(), id, "gpt-4.1".to_owned())
    }

    #[test]
    fn accounts_over_limit_evict_least_recently_used() {
        let terms = terms();
        let (long, short) = (request(4), request(1));
        let each = {
            let accounts = CostAccounts::default();
            accounts.record_call(&account("a"), &terms, &short, Some(&short), 0);
            accounts.table.lock().unwrap().prefixes
        };
        let check = |room: AccountLimits, expected: [bool; 3]| {
            let accounts = CostAccounts::with_limits(room);
            let names = ["a", "b", "c"].map(account);
            for name in &names {
                accounts.record_call(name, &terms, &short, Some(&short), 0);
            }
            // The first is looked at, so the second is the oldest.
            accounts.predict_usage(&names[0], &terms, &short, 1);
            accounts.record_call(&account("d"), &terms, &short, Some(&short), 1);
            let open = accounts.table.lock().unwrap();
            let kept = names.each_ref().map(|name| open.caches.contains_key(name));
            assert_eq!(kept, expected, "{room:?}");
            let all: usize = open.caches.values().map(AccountCaches::prefix_count).sum();
            assert_eq!(all, open.prefixes);
        };
        let (many, much) = (1_000, 1_000_000);
        check(
            AccountLimits {
                accounts: many,
                prefixes: much,
            },
            [true, true, true],
        );
        check(
            AccountLimits {
                accounts: 3,
                prefixes: much,
            },
            [true, false, true],
        );
        check(
            AccountLimits {
                accounts: 2,
                prefixes: much,
            },
            [true, false, false],
        );
        check(
            AccountLimits {
                accounts: many,
                prefixes: 3 * each,
            },
            [true, false, true],
        );
        check(
            AccountLimits {
                accounts: many,
                prefixes: each,
            },
            [true, false, false],
        );
        // What is larger than all the room is not kept at all.
        let accounts = CostAccounts::with_limits(AccountLimits {
            accounts: many,
            prefixes: each,
        });
        for at_ms in 0..3 {
            let booked = accounts.record_call(&account("a"), &terms, &long, Some(&long), at_ms);
            assert_eq!((booked.sent.read, booked.passed.read), (0, 0));
        }
        assert_eq!(accounts.table.lock().unwrap().prefixes, 0);
    }

    #[test]
    fn what_is_predicted_is_what_is_booked() {
        let (accounts, terms, account) = (CostAccounts::default(), terms(), account("a"));
        for (at_ms, messages) in [(0, 1), (1_000, 2), (9_000_000, 3)] {
            let outline = request(messages);
            let predicted = accounts.predict_usage(&account, &terms, &outline, at_ms);
            let booked = accounts.record_call(&account, &terms, &outline, Some(&outline), at_ms);
            assert_eq!(predicted, booked.sent);
            assert_eq!(predicted.read > 0, at_ms == 1_000);
        }
        // Answers end in another order than they were asked for.
        let (later, outline) = (20_000_000, request(4));
        for at_ms in [later, later - 200_000] {
            accounts.record_call(&account, &terms, &outline, Some(&outline), at_ms);
        }
        let kept_ms = terms.rules.ttl_ms(CacheTtl::Usual);
        let read = |at_ms| {
            accounts
                .predict_usage(&account, &terms, &outline, at_ms)
                .read
        };
        assert!(read(later + kept_ms - 1) > 0 && read(later + kept_ms) == 0);
    }

    #[test]
    fn each_side_costs_what_a_request_of_its_size_does() {
        let spec = Catalogue::builtin().resolve("gemini-2.5-pro").unwrap();
        let (accounts, account) = (CostAccounts::default(), account("a"));
        let terms = PriceTerms::for_model(spec, Format::Gemini);
        let request = |tokens: u64| {
            let json = r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#;
            let counter = counter_for(Encoding::O200kBase);
            let mut outline = Outline::parse_request(Format::Gemini, json, counter).unwrap();
            let segment = outline.segments.last_mut().unwrap();
            (segment.tokens.low, segment.tokens.high) = (tokens, tokens);
            outline
        };
        // Above 200,000 tokens all of a request costs twice as much.
        let (came, cut) = (request(210_000), request(150_000));
        let booked = accounts.record_call(&account, &terms, &cut, Some(&came), 0);
        assert_eq!(booked.passed_cost, 210_000 * 2_500_000);
        assert_eq!(booked.sent_cost, 150_000 * 1_250_000);
        // What is a little smaller costs half, though it is written anew.
        let smaller = request(190_000);
        let offer = |now, then| RewriteOffer {
            original: &came,
            current: now,
            proposed: then,
            debt: RewriteDebt::None,
        };
        assert!(accounts.is_worthwhile(&account, &terms, &offer(&came, &smaller), 0));
        assert!(!accounts.is_worthwhile(&account, &terms, &offer(&smaller, &came), 0));
        assert!(accounts.costs_more(&account, &terms, &came, &smaller, 0));
    }
}
