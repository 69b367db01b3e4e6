//! Cost accounts: what calls cost as they are sent, and what they would have cost as clients sent them.
//!
//! An *account* is one model in one conversation of an owner. It simulates the provider's prompt cache twice, once for the
//! requests that were sent and once for those that the clients sent, so that a rewrite is judged by what it really saves.
//! Accounts are kept in memory, least recently used first out; a forgotten one begins with empty caches on both sides.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use contexture::Format;
use contexture::Owner;
use contexture::catalogue::{CacheKind, ModelSpec, Prices};
use contexture::compile::{
    CacheMarker, CacheRules, CacheSimulator, CacheUsage, Outline, Rates, active_markers,
};
use contexture::ir::ConversationId;
use contexture::wire::CacheTtl;

/// Calls like this one that are expected, this one included: a rewrite that costs once must pay back within them.
const EXPECTED_CALLS: u64 = 5;

/// The key of an account: owner, conversation and model.
pub(crate) type CostAccount = (Owner, ConversationId, String);

/// The cache rules and prices of a model.
#[derive(Clone, Debug)]
pub(crate) struct PriceTerms {
    rules: CacheRules,
    prices: Prices,
}

/// A request that may be sent, with the rates of its tokens.
struct PricedOutline<'a> {
    outline: &'a Outline,
    marks: Vec<CacheMarker>,
    rates: Rates,
}

/// The amount by which a conversation may cost more than its clients' own requests, until it is saved again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RewriteDebt {
    /// No debt: a rewrite may spend only what earlier ones saved.
    None,
    /// The surcharge for writing the request to the cache once: markers cost first and save later.
    OneWrite,
}

/// The requests that are compared to decide on a rewrite.
#[derive(Clone, Copy, Debug)]
pub(crate) struct RewriteOffer<'a> {
    /// Request as the client sent it.
    pub(crate) original: &'a Outline,
    /// Request that is sent if nothing changes.
    pub(crate) current: &'a Outline,
    /// Request that may be sent instead.
    pub(crate) proposed: &'a Outline,
    pub(crate) debt: RewriteDebt,
}

/// What one call cost, and would have cost as the client sent it: in tokens, and in 10⁻¹² dollars where prices are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct BookedCall {
    pub(crate) sent: CacheUsage,
    pub(crate) passed: CacheUsage,
    /// `None` without prices.
    pub(crate) sent_cost: Option<u128>,
    /// `None` without prices.
    pub(crate) passed_cost: Option<u128>,
    /// Tokens that the call sent before left in the cache, and that this one had to send anew.
    pub(crate) lost_tokens: u64,
    /// What these cost more than from the cache; `None` without prices.
    pub(crate) lost_cost: Option<u128>,
}

/// Bounds of the table.
#[derive(Clone, Copy, Debug)]
struct AccountLimits {
    accounts: usize,
    /// Request prefixes in all accounts together; each takes about 50 bytes.
    prefixes: usize,
}

/// All accounts of the process.
#[derive(Debug)]
pub(crate) struct CostAccounts {
    limits: AccountLimits,
    table: Mutex<AccountTable>,
}

#[derive(Debug, Default)]
struct AccountTable {
    caches: BTreeMap<CostAccount, AccountCaches>,
    /// Prefixes in all caches.
    prefixes: usize,
    /// A logical clock, advanced by every access: the order of eviction.
    clock: u64,
}

#[derive(Debug)]
struct AccountCaches {
    sent: CacheSimulator,
    passed: CacheSimulator,
    /// What all calls saved, in 10⁻¹² dollars.
    saved: i128,
    /// Tokens that the same request as the one sent last would read from the cache, and until when it surely would.
    readable_tokens: u64,
    readable_until_ms: u64,
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
    /// Returns the terms of a model that is called in this format.
    pub(crate) fn for_model(spec: &ModelSpec, format: Format) -> Self {
        Self {
            rules: CacheRules::for_model(spec, format),
            prices: spec.prices.clone(),
        }
    }

    /// Returns the rates for a request of this size, as prices may have tiers; `None` where prices are not known.
    fn rates_for(&self, outline: &Outline) -> Option<Rates> {
        Rates::for_request(&self.prices, self.rules.kind, outline.tokens())
    }

    /// Returns the expected cost of a request's tokens in the calls after this one, in 10⁻¹² dollars.
    fn later_cost(&self, priced: &PricedOutline<'_>, length: u64) -> u128 {
        let is_cached = match self.rules.kind {
            CacheKind::None => false,
            // A cache that is written at markers holds nothing of a request without any.
            _ if self.rules.is_marker_based() && priced.marks.is_empty() => false,
            // Providers do not cache requests below a minimum length, whatever they are marked
            // with.
            _ => length >= self.rules.minimum,
        };
        let rate = if is_cached {
            priced.rates.read
        } else {
            priced.rates.input
        };
        let per_call = u128::from(priced.outline.tokens()) * u128::from(rate);
        // One less: the call at hand is priced exactly, by the simulated cache.
        per_call.saturating_mul(u128::from(EXPECTED_CALLS - 1))
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

    /// Predicts what a call that is sent now reads from the provider's cache, and writes to it.
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

    /// Whether a call that is sent now costs more than the client's own. Without prices it does not.
    pub(crate) fn costs_more(
        &self,
        account: &CostAccount,
        terms: &PriceTerms,
        sent: &Outline,
        original: &Outline,
        at_ms: u64,
    ) -> bool {
        let (Some(sent), Some(original)) =
            (terms.price_outline(sent), terms.price_outline(original))
        else {
            return false;
        };
        self.with_caches(account, terms, |caches| {
            sent.predicted_cost(&caches.sent, at_ms)
                > original.predicted_cost(&caches.passed, at_ms)
        })
    }

    /// Whether the proposed request is worth sending: it costs less over the calls to come, and this call costs no more than
    /// the client's own, plus what earlier calls saved, plus the debt that is allowed. Without prices it is not.
    pub(crate) fn is_worthwhile(
        &self,
        account: &CostAccount,
        terms: &PriceTerms,
        offer: &RewriteOffer<'_>,
        at_ms: u64,
    ) -> bool {
        let priced = [offer.original, offer.current, offer.proposed]
            .map(|outline| terms.price_outline(outline));
        let [Some(original), Some(current), Some(proposed)] = priced else {
            return false;
        };
        // A request about as long as the provider's minimum may or may not be cached. Of two such requests the current one
        // counts as cached and the proposed one as not, so that a doubt never speaks for the change.
        let (current_length, proposed_length) = (
            current.outline.token_bounds().high,
            proposed.outline.token_bounds().low,
        );
        // Computed outside the lock, like the prices: the table is shared by all requests of the
        // process.
        let debt = allowed_debt(offer.debt, &proposed);
        self.with_caches(account, terms, |caches| {
            let current_now = current.predicted_cost(&caches.sent, at_ms);
            let proposed_now = proposed.predicted_cost(&caches.sent, at_ms);
            // The client's own is priced by the other cache: the one that would exist had nothing
            // been rewritten.
            let original_now = original.predicted_cost(&caches.passed, at_ms);
            let current_all =
                current_now.saturating_add(terms.later_cost(&current, current_length));
            let proposed_all =
                proposed_now.saturating_add(terms.later_cost(&proposed, proposed_length));
            let budget = caches.saved.saturating_add(to_signed(debt));
            let is_affordable =
                to_signed(proposed_now) <= to_signed(original_now).saturating_add(budget);
            // Cheaper in the long run is not enough: a conversation may end with this call, so the
            // loss now is limited too.
            proposed_all < current_all && (proposed_now <= current_now || is_affordable)
        })
    }

    /// Books a call: what was sent, and what the client sent; `None` for a request of our own.
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
            (used, rates.map(|rates| used.input_cost(&rates)))
        };
        let sent_rates = terms.rates_for(sent);
        self.with_caches(account, terms, |caches| {
            let request = sent;
            let (sent, sent_cost) = call(&mut caches.sent, sent);
            let lost_tokens = caches.lost_tokens(&sent, at_ms);
            caches.note_readable(request, terms, at_ms);
            // A request of our own leaves the second cache as it is: the client alone would not
            // have sent it.
            let passed = passed.map(|passed| call(&mut caches.passed, passed));
            // So it cost nothing on that side.
            let (passed, passed_cost) =
                passed.unwrap_or((CacheUsage::default(), sent_cost.map(|_| 0)));
            let of = |cost: Option<u128>| to_signed(cost.unwrap_or(0));
            let saved = of(passed_cost).saturating_sub(of(sent_cost));
            caches.saved = caches.saved.saturating_add(saved);
            BookedCall {
                sent,
                passed,
                sent_cost,
                passed_cost,
                lost_tokens,
                lost_cost: sent_rates.map(|rates| surcharge(&sent, lost_tokens, &rates)),
            }
        })
    }

    fn with_caches<T>(
        &self,
        account: &CostAccount,
        terms: &PriceTerms,
        act: impl FnOnce(&mut AccountCaches) -> T,
    ) -> T {
        // A blocking lock is fine here: nothing inside awaits, and the work is in memory.
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
                readable_tokens: 0,
                readable_until_ms: 0,
                last_used: looked,
            });
        one.last_used = looked;
        // Counted out and in again, as the work may add prefixes or drop expired ones.
        *prefixes -= one.prefix_count();
        let done = act(one);
        *prefixes += one.prefix_count();
        // After the work: the account in use is the newest, so it is evicted only if it exceeds the bounds alone.
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

/// Returns what a request may cost beyond its means, in 10⁻¹² dollars.
fn allowed_debt(debt: RewriteDebt, proposed: &PricedOutline<'_>) -> u128 {
    match debt {
        RewriteDebt::None => 0,
        RewriteDebt::OneWrite => {
            // Saturating, as a provider may charge no more for a cache write than for plain input.
            let surcharge = proposed.rates.write.saturating_sub(proposed.rates.input);
            u128::from(proposed.outline.tokens()) * u128::from(surcharge)
        }
    }
}

/// Returns what tokens cost more than they would have cost from the cache, in 10⁻¹² dollars. They stand behind what was read.
fn surcharge(used: &CacheUsage, tokens: u64, rates: &Rates) -> u128 {
    // In the order in which providers bill a request, from its begin.
    let long = tokens.min(used.write_long);
    let usual = (tokens - long).min(used.write);
    let fresh = (tokens - long - usual).min(used.fresh);
    let cached = CacheUsage {
        read: used.read.saturating_add(long + usual + fresh),
        write: used.write - usual,
        write_long: used.write_long - long,
        fresh: used.fresh - fresh,
    };
    let (now, cached) = (used.input_cost(rates), cached.input_cost(rates));
    now.saturating_sub(cached)
}

fn to_signed(pico: u128) -> i128 {
    i128::try_from(pico).unwrap_or(i128::MAX)
}

impl AccountCaches {
    /// Returns how many tokens of this use the call before left in the cache without effect; 0 if that has expired.
    fn lost_tokens(&self, used: &CacheUsage, at_ms: u64) -> u64 {
        if at_ms >= self.readable_until_ms {
            return 0;
        }
        // A request that is shorter than what was cached cannot lose more than it has.
        let readable = self.readable_tokens.min(used.total_tokens());
        readable.saturating_sub(used.read)
    }

    /// Takes note of what the request that was just sent left in the cache.
    fn note_readable(&mut self, request: &Outline, terms: &PriceTerms, at_ms: u64) {
        let marks = active_markers(request, &terms.rules);
        let next = self.sent.predict_usage(request, &marks, at_ms);
        self.readable_tokens = next.read;
        // The shortest time for which anything is kept: behind it nobody can say that the cache was still there.
        let kept_ms = terms.rules.ttl_ms(CacheTtl::Usual);
        self.readable_until_ms = at_ms.saturating_add(kept_ms);
    }

    fn prefix_count(&self) -> usize {
        self.sent.prefix_count() + self.passed.prefix_count()
    }
}

#[cfg(test)]
mod tests {
    use contexture::catalogue::Catalogue;
    use contexture::tokens::{Encoding, counter_for};

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
        assert_eq!(booked.passed_cost, Some(210_000 * 2_500_000));
        assert_eq!(booked.sent_cost, Some(150_000 * 1_250_000));
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
