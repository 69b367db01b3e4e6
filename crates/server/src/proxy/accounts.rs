//! What calls cost as they are sent, and what they would have cost as clients sent them: a provider's cache on either
//! side, per conversation and model, as the compiler simulates it.
//!
//! In memory, as much of it as there is room for, that of the conversations that were called last; one that was
//! forgotten begins with an empty cache on both sides.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

use contexture::Owner;
use contexture::catalogue::CacheKind;
use contexture::compile::{CacheRules, CacheTrace, CacheUse, Mark, Outline, Rates, marks_of};
use contexture::ir::ConversationId;

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
        let Some(rates) = &terms.rates else {
            return false;
        };
        self.with(account, terms, |caches| {
            let cost = |cache: &CacheTrace, outline: &Outline| {
                let marks = marks_of(outline, &terms.rules);
                cache.predict(outline, &marks, at_ms).cost(rates)
            };
            cost(&caches.sent, sent) > cost(&caches.passed, came)
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
        let Some(rates) = &terms.rates else {
            return false;
        };
        let (now_marks, then_marks) = (marks_of(now, &terms.rules), marks_of(then, &terms.rules));
        // Whether a request is long enough to be cached is not known where it is about as long as that: then what is there
        // is, and what may be is not.
        let (now_most, then_least) = (now.range().high, then.range().low);
        let later = |outline: &Outline, marks: &[Mark], length: u64| {
            let held = match terms.rules.kind {
                CacheKind::None => false,
                _ if terms.rules.by_marks() && marks.is_empty() => false,
                _ => length >= terms.rules.minimum,
            };
            let rate = if held { rates.read } else { rates.input };
            let each = u128::from(outline.tokens()) * u128::from(rate);
            each.saturating_mul(u128::from(CALLS - 1))
        };
        self.with(account, terms, |caches| {
            let cost = |cache: &CacheTrace, outline: &Outline, marks: &[Mark]| {
                cache.predict(outline, marks, at_ms).cost(rates)
            };
            let first = cost(&caches.sent, now, &now_marks);
            let first_then = cost(&caches.sent, then, &then_marks);
            let passed = cost(&caches.passed, came, &marks_of(came, &terms.rules));
            let all = first.saturating_add(later(now, &now_marks, now_most));
            let all_then = first_then.saturating_add(later(then, &then_marks, then_least));
            let owed = match debt {
                Debt::None => 0,
                Debt::OneWrite => {
                    let dearer = rates.write.saturating_sub(rates.input);
                    u128::from(then.tokens()) * u128::from(dearer)
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
        let cost = |used: CacheUse| terms.rates.as_ref().map_or(0, |rates| used.cost(rates));
        self.with(account, terms, |caches| {
            let sent = caches.sent.call(sent, &marks_of(sent, &terms.rules), at_ms);
            let pass = |passed: &Outline| {
                let marks = marks_of(passed, &terms.rules);
                caches.passed.call(passed, &marks, at_ms)
            };
            let passed = passed.map(pass).unwrap_or_default();
            let (sent_cost, passed_cost) = (cost(sent), cost(passed));
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
    use contexture::Format;
    use contexture::catalogue::Catalogue;
    use contexture::tokens::{Encoding, counter_for};

    use super::*;

    fn terms() -> Terms {
        let spec = Catalogue::builtin().resolve("gpt-4.1").unwrap();
        let rules = CacheRules::of(spec, Format::OpenAiChat);
        let rates = Rates::of(&spec.prices, rules.kind, 0);
        Terms { rules, rates }
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
    }
}
