//! The ledger: an entry a call with its conversation, a sum there, and a sum a day of the owner's.
//!
//! An entry and its conversation's sum are stored with the answer; the day's sum is added to after that, and outlives the
//! conversations. Not here: what a call costs (`accounts`), the answer (`booking`).

use contexture::catalogue::Cost;
use contexture::ir::{ConversationId, ResponseId, Usage};
use contexture::store::{
    Entry, EntryCursor, Error as StoreError, Expected, KeyScope, ListEntries, PutEntry, Store,
};
use contexture::{Engine, Owner};

use crate::documents::{
    LedgerDayDocument, LedgerDocument, LedgerEntryDocument, LedgerSumDocument, instant,
};
use crate::proxy::accounts::Booked;
use crate::proxy::matching::Miss;
use crate::proxy::turns::Turns;

/// What the keys of entries begin with, in a conversation's scope; when and which answer follow.
const ENTRIES: &str = "ledger/call/";
/// The key of a conversation's sum.
const SUM: &str = "ledger/sum";
/// What the keys of an owner's days begin with.
const DAYS: &str = "ledger/day/";
/// How often a write of another process is met with another attempt.
pub(crate) const ATTEMPTS: usize = 32;

/// A call that was answered.
#[derive(Debug)]
pub(crate) struct Called<'a> {
    /// What its answer is stored under.
    pub(crate) response: ResponseId,
    pub(crate) model: &'a str,
    pub(crate) policy: &'a str,
    pub(crate) usage: Option<&'a Usage>,
    pub(crate) rewritten: bool,
    pub(crate) booked: Booked,
    /// By the usage that was reported.
    pub(crate) reported: Option<Cost>,
}

impl Called<'_> {
    pub(crate) fn entry(&self, at_ms: i64) -> LedgerEntryDocument {
        let money = |pico: u128| i64::try_from(pico).unwrap_or(i64::MAX);
        let booked = &self.booked;
        let (sent, passed) = (money(booked.sent_cost), money(booked.passed_cost));
        LedgerEntryDocument {
            response: self.response.to_string(),
            at: instant(at_ms),
            model: self.model.to_owned(),
            policy: self.policy.to_owned(),
            rewritten: self.rewritten,
            sent: booked.sent.into(),
            passed: booked.passed.into(),
            sent_pico_dollars: sent,
            passed_pico_dollars: passed,
            saved_pico_dollars: passed.saturating_sub(sent),
            reported_pico_dollars: self.reported.as_ref().map(|cost| money(cost.pico_dollars)),
            reported_read_tokens: self.usage.and_then(|usage| usage.cache_read_tokens),
        }
    }
}

/// Where a call is entered.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Books<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) turns: &'a Turns,
    pub(crate) owner: &'a Owner,
    pub(crate) at_ms: i64,
}

impl Books<'_> {
    /// What is stored with the answer: the entry, and its conversation's sum with it. Who asks has the conversation's turn.
    ///
    /// # Errors
    /// The store's, or the sum that is there cannot be read.
    pub(crate) async fn of_answer(
        &self,
        conversation: &ConversationId,
        entry: &LedgerEntryDocument,
    ) -> Result<Vec<(KeyScope, PutEntry)>, Miss> {
        let scope = KeyScope::Conversation(conversation.clone());
        let put = PutEntry {
            key: format!("{ENTRIES}{:016}-{}", self.at_ms, entry.response),
            value: Some(json(entry)?.into()),
            expect: Expected::Any,
            at_ms: self.at_ms,
        };
        let sum = self.summed(&scope, SUM, entry).await?;
        Ok(vec![(scope.clone(), put), (scope, sum)])
    }

    /// Adds the entry to the sum of its day.
    ///
    /// # Errors
    /// As above, or others have written it each time.
    pub(crate) async fn add_to_day(&self, entry: &LedgerEntryDocument) -> Result<(), Miss> {
        let day = entry.at.get(..10).unwrap_or_default();
        let key = format!("{DAYS}{day}");
        let _turn = self.turns.of(self.owner).await;
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            let put = self.summed(&KeyScope::Owner, &key, entry).await?;
            match self
                .store
                .put_entry(self.owner, &KeyScope::Owner, put)
                .await
            {
                Err(StoreError::VersionConflict { .. }) if attempts > 0 => {}
                other => return other.map(drop).map_err(|error| miss(&error)),
            }
        }
    }

    /// A sum with one entry more.
    async fn summed(
        &self,
        scope: &KeyScope,
        key: &str,
        entry: &LedgerEntryDocument,
    ) -> Result<PutEntry, Miss> {
        let known = self.store.entry(self.owner, scope, key).await;
        let known = known.map_err(|error| miss(&error))?;
        let sum = match &known {
            Some(known) => serde_json::from_slice(&known.value)
                .map_err(|error| Miss::new("ledger", format!("{key} cannot be read: {error}")))?,
            None => LedgerSumDocument::default(),
        };
        Ok(PutEntry {
            key: key.to_owned(),
            value: Some(json(&sum.with(entry))?.into()),
            expect: known.map_or(Expected::Absent, |known| Expected::Version(known.version)),
            at_ms: self.at_ms,
        })
    }
}

fn json(document: &impl serde::Serialize) -> Result<Vec<u8>, Miss> {
    serde_json::to_vec(document).map_err(|error| miss(&error))
}

fn miss(error: &dyn std::error::Error) -> Miss {
    Miss::of("ledger", error)
}

fn read<T: serde::de::DeserializeOwned + Default>(entry: &Entry) -> T {
    serde_json::from_slice(&entry.value).unwrap_or_default()
}

/// The calls of a conversation, so many, behind the one of this key. Gives the key of the last as well, if there are more.
///
/// # Errors
/// The store's.
pub(crate) async fn of_conversation(
    engine: &Engine,
    owner: &Owner,
    conversation: &ConversationId,
    limit: usize,
    after: Option<String>,
) -> Result<(LedgerDocument, Option<String>), StoreError> {
    let scope = KeyScope::Conversation(conversation.clone());
    let store = engine.store();
    let sum = store.entry(owner, &scope, SUM).await?;
    let list = ListEntries {
        limit: Some(limit),
        after: after.map(|key| EntryCursor {
            scope: scope.clone(),
            key,
        }),
        ..ListEntries::of(scope, ENTRIES)
    };
    let page = store.entries(owner, list).await?;
    let entries = page.entries.iter();
    let document = LedgerDocument {
        conversation: Some(conversation.to_string()),
        total: sum.as_ref().map(read).unwrap_or_default(),
        entries: entries
            .filter_map(|(_, entry)| serde_json::from_slice(&entry.value).ok())
            .collect(),
        ..LedgerDocument::default()
    };
    Ok((document, page.next.map(|next| next.key)))
}

/// The days of an owner.
///
/// # Errors
/// The store's.
pub(crate) async fn of_owner(engine: &Engine, owner: &Owner) -> Result<LedgerDocument, StoreError> {
    let mut document = LedgerDocument::default();
    let mut list = ListEntries::of(KeyScope::Owner, DAYS);
    loop {
        let page = engine.store().entries(owner, list.clone()).await?;
        for (_, entry) in &page.entries {
            let sum: LedgerSumDocument = read(entry);
            let day = entry.key.strip_prefix(DAYS).unwrap_or_default().to_owned();
            document.total = document.total.and(&sum);
            document.days.push(LedgerDayDocument { day, sum });
        }
        match page.next {
            Some(next) => list.after = Some(next),
            None => return Ok(document),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use contexture::store::{KeyValues as _, MemoryStore};
    use contexture_store_testkit::{Chances, Faulty};
    use futures_util::future::join_all;

    use super::*;

    #[tokio::test]
    async fn calls_at_the_same_time_are_all_in_the_day() {
        // Whoever asks the store waits until all others have asked, so that no two writes of a sum go well in a row.
        let chances = Chances {
            delay: 1_000,
            ..Chances::default()
        };
        let store = Faulty::seeded(Arc::new(MemoryStore::new()), 7, chances);
        let (turns, owner) = (Turns::default(), Owner::local());
        let books = Books {
            store: &store,
            turns: &turns,
            owner: &owner,
            at_ms: 0,
        };
        let called = Called {
            response: ResponseId::derive("one", &[]),
            model: "gpt-4.1",
            policy: "small",
            usage: None,
            rewritten: false,
            booked: Booked::default(),
            reported: None,
        };
        let entry = called.entry(0);
        let added = join_all((0..200).map(|_| books.add_to_day(&entry))).await;
        assert_eq!(added, vec![Ok(()); 200]);
        let day = store.entry(&owner, &KeyScope::Owner, "ledger/day/1970-01-01");
        let sum: LedgerSumDocument = read(&day.await.unwrap().unwrap());
        assert_eq!(sum.calls, 200);
    }
}
