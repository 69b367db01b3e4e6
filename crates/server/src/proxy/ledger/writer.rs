//! Writing the ledger: an entry per call, and the sums it is added to.
//!
//! An entry and its conversation's sum are stored with the answer; the day's sum is added to after that, and outlives the
//! conversations. Not here: what a call costs (`state::cost_accounts`), the answer (`capture::store_answer`).

use contexture::Owner;
use contexture::catalogue::Cost;
use contexture::ir::{ConversationId, ResponseId, Usage};
use contexture::store::{Error as StoreError, ExpectedVersion, KeyScope, PutEntry, Store};

use crate::proxy::failure::ProxyFailure;
use crate::proxy::ledger::{DAY_PREFIX, ENTRY_PREFIX, SUM_KEY};
use crate::state::cost_accounts::BookedCall;
use crate::state::keyed_lock::KeyedLocks;
use contexture_api::{LedgerEntryDocument, LedgerSumDocument, format_timestamp};

/// Attempts to write a sum that other processes write too.
pub(crate) const MAX_ATTEMPTS: usize = 32;

/// A call that was answered, to be entered in the ledger.
#[derive(Debug)]
pub(crate) struct LedgerCall<'a> {
    /// The id that its answer is stored under.
    pub(crate) response: ResponseId,
    pub(crate) model: &'a str,
    pub(crate) policy: &'a str,
    pub(crate) usage: Option<&'a Usage>,
    pub(crate) rewritten: bool,
    pub(crate) booked: BookedCall,
    /// Its cost by the usage that the provider reported.
    pub(crate) reported: Option<Cost>,
}

impl LedgerCall<'_> {
    pub(crate) fn ledger_entry(&self, at_ms: i64) -> LedgerEntryDocument {
        // The documents have 64 bits for money, more than nine million dollars a call.
        let money = |pico: u128| i64::try_from(pico).unwrap_or(i64::MAX);
        let booked = &self.booked;
        let (sent, passed) = (money(booked.sent_cost), money(booked.passed_cost));
        LedgerEntryDocument {
            response: self.response.to_string(),
            at: format_timestamp(at_ms),
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

/// Writes entries and sums of an owner.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LedgerWriter<'a> {
    pub(crate) store: &'a dyn Store,
    pub(crate) locks: &'a KeyedLocks,
    pub(crate) owner: &'a Owner,
    pub(crate) at_ms: i64,
}

impl LedgerWriter<'_> {
    /// Prepares what is stored with the answer: the entry, and the conversation's sum with it. The caller holds the
    /// conversation's lock.
    ///
    /// # Errors
    /// The store's, or the sum that is there cannot be read.
    pub(crate) async fn prepare_entries(
        &self,
        conversation: &ConversationId,
        entry: &LedgerEntryDocument,
    ) -> Result<Vec<(KeyScope, PutEntry)>, ProxyFailure> {
        let scope = KeyScope::Conversation(conversation.clone());
        let put = PutEntry {
            // Padded with zeros, so that keys sort by time as texts.
            key: format!("{ENTRY_PREFIX}{:016}-{}", self.at_ms, entry.response),
            value: Some(to_json(entry)?.into()),
            // The key holds the response id: an answer that is stored again overwrites its own entry.
            expect: ExpectedVersion::Any,
            at_ms: self.at_ms,
        };
        let sum = self.add_to_sum(&scope, SUM_KEY, entry).await?;
        Ok(vec![(scope.clone(), put), (scope, sum)])
    }

    /// Adds the entry to the sum of its day.
    ///
    /// # Errors
    /// As above, or others have written it each time.
    pub(crate) async fn add_to_day(&self, entry: &LedgerEntryDocument) -> Result<(), ProxyFailure> {
        let day = entry.at.get(..10).unwrap_or_default();
        let key = format!("{DAY_PREFIX}{day}");
        // Writers of this process queue here; only those of other processes are left to conflict
        // with.
        let _lock = self.locks.lock_key(self.owner).await;
        let mut attempts = MAX_ATTEMPTS;
        loop {
            attempts -= 1;
            let put = self.add_to_sum(&KeyScope::Owner, &key, entry).await?;
            match self
                .store
                .put_entry(self.owner, &KeyScope::Owner, put)
                .await
            {
                Err(StoreError::VersionConflict { .. }) if attempts > 0 => {}
                other => return other.map(drop).map_err(|error| ledger_failure(&error)),
            }
        }
    }

    /// Reads a sum and returns the write that adds an entry to it, conditional on the version that was read.
    async fn add_to_sum(
        &self,
        scope: &KeyScope,
        key: &str,
        entry: &LedgerEntryDocument,
    ) -> Result<PutEntry, ProxyFailure> {
        let known = self.store.get_entry(self.owner, scope, key).await;
        let known = known.map_err(|error| ledger_failure(&error))?;
        let sum = match &known {
            Some(known) => serde_json::from_slice(&known.value).map_err(|error| {
                ProxyFailure::new("ledger", format!("{key} cannot be read: {error}"))
            })?,
            None => LedgerSumDocument::default(),
        };
        Ok(PutEntry {
            key: key.to_owned(),
            value: Some(to_json(&sum.with_entry(entry))?.into()),
            expect: known.map_or(ExpectedVersion::Absent, |known| {
                ExpectedVersion::Version(known.version)
            }),
            at_ms: self.at_ms,
        })
    }
}

fn to_json(document: &impl serde::Serialize) -> Result<Vec<u8>, ProxyFailure> {
    serde_json::to_vec(document).map_err(|error| ledger_failure(&error))
}

fn ledger_failure(error: &dyn std::error::Error) -> ProxyFailure {
    ProxyFailure::from_error("ledger", error)
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
        let store = Faulty::with_seed(Arc::new(MemoryStore::new()), 7, chances);
        let (turns, owner) = (KeyedLocks::default(), Owner::local());
        let books = LedgerWriter {
            store: &store,
            locks: &turns,
            owner: &owner,
            at_ms: 0,
        };
        let called = LedgerCall {
            response: ResponseId::derive("one", &[]),
            model: "gpt-4.1",
            policy: "small",
            usage: None,
            rewritten: false,
            booked: BookedCall::default(),
            reported: None,
        };
        let entry = called.ledger_entry(0);
        let added = join_all((0..200).map(|_| books.add_to_day(&entry))).await;
        assert_eq!(added, vec![Ok(()); 200]);
        let day = store.get_entry(&owner, &KeyScope::Owner, "ledger/day/1970-01-01");
        let entry = day.await.unwrap().unwrap();
        let sum: LedgerSumDocument = serde_json::from_slice(&entry.value).unwrap();
        assert_eq!(sum.calls, 200);
    }
}
