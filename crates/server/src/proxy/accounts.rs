//! What calls cost as they are sent, and what they would have cost as clients sent them: a provider's cache on either
//! side, per conversation and model, as the compiler simulates it.
//!
//! The newest conversations are kept, in memory; one that was forgotten begins with an empty cache on both sides.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use contexture::Owner;
use contexture::catalogue::CacheKind;
use contexture::compile::{CacheRules, CacheTrace, CacheUse, Mark, Outline, Rates};
use contexture::ir::ConversationId;

/// How many conversations are kept.
const KEPT: usize = 1_000;
/// How many calls like this one are expected, with it.
const CALLS: u64 = 5;

/// Whose calls: an owner's, in a conversation, of a model.
pub(crate) type Account = (Owner, ConversationId, String);

/// What a model's provider keeps and asks for.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    pub(crate) rules: CacheRules,
    /// Nothing where prices are not known.
    pub(crate) rates: Option<Rates>,
}

/// What one call cost, and would have cost as it came: in tokens, and in 10⁻¹² dollars as far as prices are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Booked {
    pub(crate) sent: CacheUse,
    pub(crate) passed: CacheUse,
    pub(crate) sent_cost: u128,
    pub(crate) passed_cost: u128,
}

/// All of them.
#[derive(Debug, Default)]
pub(crate) struct Accounts {
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    caches: BTreeMap<Account, Caches>,
    /// Grows with every look.
    clock: u64,
}

#[derive(Debug)]
struct Caches {
    sent: CacheTrace,
    passed: CacheTrace,
    looked: u64,
}

impl Accounts {
    /// Whether to send `then` in the place of `now` costs less over the calls to come. Without prices it does not.
    pub(crate) fn pays(
        &self,
        account: &Account,
        terms: &Terms,
        now: &Outline,
        then: &Outline,
        at_ms: u64,
    ) -> bool {
        let Some(rates) = &terms.rates else {
            return false;
        };
        self.with(account, terms, |caches| {
            let course = |outline: &Outline| {
                let marks = marks(outline, &terms.rules);
                let first = caches.sent.clone().call(outline, &marks, at_ms).cost(rates);
                let held = match terms.rules.kind {
                    CacheKind::None => false,
                    _ if terms.rules.by_marks() && marks.is_empty() => false,
                    _ => outline.tokens() >= terms.rules.minimum,
                };
                let rate = if held { rates.read } else { rates.input };
                let later = u128::from(outline.tokens()) * u128::from(rate);
                first.saturating_add(later.saturating_mul(u128::from(CALLS - 1)))
            };
            course(then) < course(now)
        })
    }

    /// Takes down a call: what was sent, and what was to be sent; nothing, if nobody asked for it but us.
    pub(crate) fn book(
        &self,
        account: &Account,
        terms: &Terms,
        sent: &Outline,
        passed: Option<&Outline>,
        at_ms: u64,
    ) -> Booked {
        let cost = |used: CacheUse| terms.rates.as_ref().map_or(0, |rates| used.cost(rates));
        self.with(account, terms, |caches| {
            let sent = caches.sent.call(sent, &marks(sent, &terms.rules), at_ms);
            let mut pass = |passed: &Outline| {
                let marks = marks(passed, &terms.rules);
                caches.passed.call(passed, &marks, at_ms)
            };
            let passed = passed.map(&mut pass).unwrap_or_default();
            Booked {
                sent,
                passed,
                sent_cost: cost(sent),
                passed_cost: cost(passed),
            }
        })
    }

    fn with<T>(&self, account: &Account, terms: &Terms, act: impl FnOnce(&mut Caches) -> T) -> T {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        open.clock += 1;
        let looked = open.clock;
        let caches = open
            .caches
            .entry(account.clone())
            .or_insert_with(|| Caches {
                sent: CacheTrace::new(terms.rules.clone()),
                passed: CacheTrace::new(terms.rules.clone()),
                looked,
            });
        caches.looked = looked;
        let done = act(caches);
        if open.caches.len() > KEPT {
            let oldest = open.caches.iter().min_by_key(|(_, caches)| caches.looked);
            if let Some(oldest) = oldest.map(|(account, _)| account.clone()) {
                open.caches.remove(&oldest);
            }
        }
        done
    }
}

/// The marks that a request has of its own.
fn marks(outline: &Outline, rules: &CacheRules) -> Vec<Mark> {
    let segments = outline.segments.iter().enumerate();
    let own = segments.flat_map(|(at, segment)| {
        let marks = segment.marks.iter();
        marks.map(move |ttl| Mark::given(at, *ttl))
    });
    let last = outline.segments.len().checked_sub(1).zip(outline.whole);
    let whole = last.map(|(at, ttl)| Mark::given(at, ttl));
    let all: Vec<Mark> = own.chain(whole).collect();
    let most = if rules.by_marks() { rules.max_marks } else { 0 };
    all.get(all.len().saturating_sub(most)..)
        .unwrap_or_default()
        .to_vec()
}
