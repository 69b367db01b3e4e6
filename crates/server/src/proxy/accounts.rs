//! What calls cost as they are sent, and what they would have cost as clients sent them: a provider's cache on either
//! side, per conversation and model, as the compiler simulates it.
//!
//! In memory, as much of it as there is room for, that of the conversations that were called last; one that was
//! forgotten begins with an empty cache on both sides.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use contexture::Owner;
use contexture::catalogue::{CacheKind, Prices};
use contexture::compile::{CacheRules, CacheTrace, CacheUse, Mark, Outline, Rates, marks_of};
use contexture::ir::ConversationId;
use contexture::{Format, ModelSpec};

/// How many calls like this one are expected, with it.
const CALLS: u64 = 5;

/// Whose calls: an owner's, in a conversation, of a model.
pub(crate) type Account = (Owner, ConversationId, String);

/// What a model's provider keeps and asks for.
#[derive(Clone, Debug)]
pub(crate) struct Terms {
    rules: CacheRules,
    prices: Prices,
}

/// A request that may be sent, and what its tokens cost.
struct Priced<'a> {
    outline: &'a Outline,
    marks: Vec<Mark>,
    rates: Rates,
}

/// What a conversation may cost more than as it came, until that is saved again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Debt {
    /// Nothing.
    None,
    /// What writing a request to the cache costs more than sending it, once.
    OneWrite,
}

/// What may be sent, and what came.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Offer<'a> {
    /// As the client sent it.
    pub(crate) came: &'a Outline,
    /// What goes if nothing is changed.
    pub(crate) now: &'a Outline,
    /// What may go in its place.
    pub(crate) then: &'a Outline,
    pub(crate) debt: Debt,
}

/// What one call cost, and would have cost as it came: in tokens, and in 10⁻¹² dollars as far as prices are known.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Booked {
    pub(crate) sent: CacheUse,
    pub(crate) passed: CacheUse,
    pub(crate) sent_cost: u128,
    pub(crate) passed_cost: u128,
}

/// How much is kept.
#[derive(Clone, Copy, Debug)]
struct Room {
    accounts: usize,
    /// Of requests, in all accounts together; each takes about 50 bytes.
    prefixes: usize,
}

/// All of them.
#[derive(Debug)]
pub(crate) struct Accounts {
    room: Room,
    open: Mutex<Open>,
}

#[derive(Debug, Default)]
struct Open {
    caches: BTreeMap<Account, Caches>,
    /// Those in all of them.
    prefixes: usize,
    /// Grows with every look.
    clock: u64,
}

#[derive(Debug)]
struct Caches {
    sent: CacheTrace,
    passed: CacheTrace,
    /// What all calls saved, in 10⁻¹² dollars.
    saved: i128,
    looked: u64,
}

impl Default for Accounts {
    /// 1,000 conversations, 500,000 prefixes.
    fn default() -> Self {
        Self::keeping(Room {
            accounts: 1_000,
            prefixes: 500_000,
        })
    }
}

impl Terms {
    /// Those of a model, asked in this format.
    pub(crate) fn of(spec: &ModelSpec, format: Format) -> Self {
        Self {
            rules: CacheRules::of(spec, format),
            prices: spec.prices.clone(),
        }
    }

    /// By the request's own size, as rates may depend on that. Nothing where prices are not known.
    fn rates(&self, outline: &Outline) -> Option<Rates> {
        Rates::of(&self.prices, self.rules.kind, outline.tokens())
    }

    fn priced<'a>(&self, outline: &'a Outline) -> Option<Priced<'a>> {
        Some(Priced {
            outline,
            marks: marks_of(outline, &self.rules),
            rates: self.rates(outline)?,
        })
    }
}

impl Priced<'_> {
    fn cost(&self, cache: &CacheTrace, at_ms: u64) -> u128 {
        let used = cache.predict(self.outline, &self.marks, at_ms);
        used.cost(&self.rates)
    }
}

impl Accounts {
    fn keeping(room: Room) -> Self {
        Self {
            room,
            open: Mutex::default(),
        }
    }

    /// What a call that is sent now is expected to read from the cache, and to write.
    pub(crate) fn predict(
        &self,
        account: &Account,
        terms: &Terms,
        outline: &Outline,
        at_ms: u64,
    ) -> CacheUse {
        let marks = marks_of(outline, &terms.rules);
        self.with(account, terms, |caches| {
            caches.sent.predict(outline, &marks, at_ms)
        })
    }

    /// Whether a call that is sent now costs more than what came. Without prices it does not.
    pub(crate) fn costs_more(
        &self,
        account: &Account,
        terms: &Terms,
        sent: &Outline,
        came: &Outline,
        at_ms: u64,
    ) -> bool {
        let (Some(sent), Some(came)) = (terms.priced(sent), terms.priced(came)) else {
            return false;
        };
        self.with(account, terms, |caches| {
            sent.cost(&caches.sent, at_ms) > came.cost(&caches.passed, at_ms)
        })
    }

    /// Whether what is offered costs less over the calls to come, and this call no more than what came, what the calls
    /// before have saved, and what may be owed. Without prices it does not.
    pub(crate) fn pays(
        &self,
        account: &Account,
        terms: &Terms,
        offer: &Offer<'_>,
        at_ms: u64,
    ) -> bool {
        let Offer {
            came,
            now,
            then,
            debt,
        } = *offer;
        let priced = [came, now, then].map(|outline| terms.priced(outline));
        let [Some(came), Some(now), Some(then)] = priced else {
            return false;
        };
        // Whether a request is long enough to be cached is not known where it is about as long as that: then what is there
        // is, and what may be is not.
        let (now_most, then_least) = (now.outline.range().high, then.outline.range().low);
        let later = |one: &Priced<'_>, length: u64| {
            let held = match terms.rules.kind {
                CacheKind::None => false,
                _ if terms.rules.by_marks() && one.marks.is_empty() => false,
                _ => length >= terms.rules.minimum,
            };
            let rate = if held {
                one.rates.read
            } else {
                one.rates.input
            };
            let each = u128::from(one.outline.tokens()) * u128::from(rate);
            each.saturating_mul(u128::from(CALLS - 1))
        };
        self.with(account, terms, |caches| {
            let first = now.cost(&caches.sent, at_ms);
            let first_then = then.cost(&caches.sent, at_ms);
            let passed = came.cost(&caches.passed, at_ms);
            let all = first.saturating_add(later(&now, now_most));
            let all_then = first_then.saturating_add(later(&then, then_least));
            let owed = match debt {
                Debt::None => 0,
                Debt::OneWrite => {
                    let dearer = then.rates.write.saturating_sub(then.rates.input);
                    u128::from(then.outline.tokens()) * u128::from(dearer)
                }
            };
            let means = caches.saved.saturating_add(signed(owed));
            let affordable = signed(first_then) <= signed(passed).saturating_add(means);
            all_then < all && (first_then <= first || affordable)
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
        let call = |cache: &mut CacheTrace, outline: &Outline| {
            let used = cache.call(outline, &marks_of(outline, &terms.rules), at_ms);
            let rates = terms.rates(outline);
            (used, rates.map_or(0, |rates| used.cost(&rates)))
        };
        self.with(account, terms, |caches| {
            let (sent, sent_cost) = call(&mut caches.sent, sent);
            let passed = passed.map(|passed| call(&mut caches.passed, passed));
            let (passed, passed_cost) = passed.unwrap_or_default();
            let saved = signed(passed_cost).saturating_sub(signed(sent_cost));
            caches.saved = caches.saved.saturating_add(saved);
            Booked {
                sent,
                passed,
                sent_cost,
                passed_cost,
            }
        })
    }

    fn with<T>(&self, account: &Account, terms: &Terms, act: impl FnOnce(&mut Caches) -> T) -> T {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        let Open {
            caches,
            prefixes,
            clock,
        } = &mut *open;
        *clock += 1;
        let looked = *clock;
        let one = caches.entry(account.clone()).or_insert_with(|| Caches {
            sent: CacheTrace::new(terms.rules.clone()),
            passed: CacheTrace::new(terms.rules.clone()),
            saved: 0,
            looked,
        });
        one.looked = looked;
        *prefixes -= one.prefixes();
        let done = act(one);
        *prefixes += one.prefixes();
        while caches.len() > self.room.accounts || *prefixes > self.room.prefixes {
            let oldest = caches.iter().min_by_key(|(_, caches)| caches.looked);
            let Some(oldest) = oldest.map(|(account, _)| account.clone()) else {
                break;
            };
            let gone = caches.remove(&oldest);
            *prefixes -= gone.map_or(0, |gone| gone.prefixes());
        }
        done
    }
}

fn signed(pico: u128) -> i128 {
    i128::try_from(pico).unwrap_or(i128::MAX)
}

impl Caches {
    fn prefixes(&self) -> usize {
        self.sent.prefixes() + self.passed.prefixes()
    }
}

#[cfg(test)]
mod tests {
    use contexture::catalogue::Catalogue;
    use contexture::tokens::{Encoding, counter_for};
    use contexture::wire::Ttl;

    use super::*;

    fn terms() -> Terms {
        let spec = Catalogue::builtin().resolve("gpt-4.1").unwrap();
        Terms::of(spec, Format::OpenAiChat)
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
        Outline::read(Format::OpenAiChat, &json, counter_for(Encoding::O200kBase)).unwrap()
    }

    fn account(name: &str) -> Account {
        let id = ConversationId::new(name).unwrap();
        (Owner::local(), id, "gpt-4.1".to_owned())
    }

    #[test]
    fn the_caches_of_the_conversations_that_were_called_last_are_kept() {
        let terms = terms();
        let (long, short) = (request(4), request(1));
        let each = {
            let accounts = Accounts::default();
            accounts.book(&account("a"), &terms, &short, Some(&short), 0);
            accounts.open.lock().unwrap().prefixes
        };
        let check = |room: Room, expected: [bool; 3]| {
            let accounts = Accounts::keeping(room);
            let names = ["a", "b", "c"].map(account);
            for name in &names {
                accounts.book(name, &terms, &short, Some(&short), 0);
            }
            // The first is looked at, so the second is the oldest.
            accounts.predict(&names[0], &terms, &short, 1);
            accounts.book(&account("d"), &terms, &short, Some(&short), 1);
            let open = accounts.open.lock().unwrap();
            let kept = names.each_ref().map(|name| open.caches.contains_key(name));
            assert_eq!(kept, expected, "{room:?}");
            let all: usize = open.caches.values().map(Caches::prefixes).sum();
            assert_eq!(all, open.prefixes);
        };
        let (many, much) = (1_000, 1_000_000);
        check(
            Room {
                accounts: many,
                prefixes: much,
            },
            [true, true, true],
        );
        check(
            Room {
                accounts: 3,
                prefixes: much,
            },
            [true, false, true],
        );
        check(
            Room {
                accounts: 2,
                prefixes: much,
            },
            [true, false, false],
        );
        check(
            Room {
                accounts: many,
                prefixes: 3 * each,
            },
            [true, false, true],
        );
        check(
            Room {
                accounts: many,
                prefixes: each,
            },
            [true, false, false],
        );
        // What is larger than all the room is not kept at all.
        let accounts = Accounts::keeping(Room {
            accounts: many,
            prefixes: each,
        });
        for at_ms in 0..3 {
            let booked = accounts.book(&account("a"), &terms, &long, Some(&long), at_ms);
            assert_eq!((booked.sent.read, booked.passed.read), (0, 0));
        }
        assert_eq!(accounts.open.lock().unwrap().prefixes, 0);
    }

    #[test]
    fn what_is_predicted_is_what_is_booked() {
        let (accounts, terms, account) = (Accounts::default(), terms(), account("a"));
        for (at_ms, messages) in [(0, 1), (1_000, 2), (9_000_000, 3)] {
            let outline = request(messages);
            let predicted = accounts.predict(&account, &terms, &outline, at_ms);
            let booked = accounts.book(&account, &terms, &outline, Some(&outline), at_ms);
            assert_eq!(predicted, booked.sent);
            assert_eq!(predicted.read > 0, at_ms == 1_000);
        }
        // Answers end in another order than they were asked for.
        let (later, outline) = (20_000_000, request(4));
        for at_ms in [later, later - 200_000] {
            accounts.book(&account, &terms, &outline, Some(&outline), at_ms);
        }
        let kept_ms = terms.rules.kept_ms(Ttl::Usual);
        let read = |at_ms| accounts.predict(&account, &terms, &outline, at_ms).read;
        assert!(read(later + kept_ms - 1) > 0 && read(later + kept_ms) == 0);
    }

    #[test]
    fn each_side_costs_what_a_request_of_its_size_does() {
        let spec = Catalogue::builtin().resolve("gemini-2.5-pro").unwrap();
        let (accounts, account) = (Accounts::default(), account("a"));
        let terms = Terms::of(spec, Format::Gemini);
        let request = |tokens: u64| {
            let json = r#"{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}"#;
            let counter = counter_for(Encoding::O200kBase);
            let mut outline = Outline::read(Format::Gemini, json, counter).unwrap();
            let segment = outline.segments.last_mut().unwrap();
            (segment.tokens.low, segment.tokens.high) = (tokens, tokens);
            outline
        };
        // Above 200,000 tokens all of a request costs twice as much.
        let (came, cut) = (request(210_000), request(150_000));
        let booked = accounts.book(&account, &terms, &cut, Some(&came), 0);
        assert_eq!(booked.passed_cost, 210_000 * 2_500_000);
        assert_eq!(booked.sent_cost, 150_000 * 1_250_000);
        // What is a little smaller costs half, though it is written anew.
        let smaller = request(190_000);
        let offer = |now, then| Offer {
            came: &came,
            now,
            then,
            debt: Debt::None,
        };
        assert!(accounts.pays(&account, &terms, &offer(&came, &smaller), 0));
        assert!(!accounts.pays(&account, &terms, &offer(&smaller, &came), 0));
        assert!(accounts.costs_more(&account, &terms, &came, &smaller, 0));
    }
}
