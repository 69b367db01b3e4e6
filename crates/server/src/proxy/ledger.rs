//! The ledger: an entry a call with its conversation, a sum there, and a sum a day of the owner's.
//!
//! Sums outlive the conversations they are of. Not here: what a call costs (`accounts`).

use contexture::catalogue::Cost;
use contexture::ir::ConversationId;
use contexture::store::{
    Entry, EntryCursor, Error as StoreError, Expected, KeyScope, ListEntries, PutEntry, Store,
};
use contexture::{Engine, Owner, Recorded};

use crate::documents::{
    LedgerDayDocument, LedgerDocument, LedgerEntryDocument, LedgerSumDocument, instant,
};
use crate::proxy::accounts::Booked;

/// What the keys of entries begin with, in a conversation's scope; when and which answer follow.
const ENTRIES: &str = "ledger/call/";
/// The key of a conversation's sum.
const SUM: &str = "ledger/sum";
/// What the keys of an owner's days begin with.
const DAYS: &str = "ledger/day/";
/// How often a concurrent write is met with another attempt.
const ATTEMPTS: usize = 32;

/// A call whose answer is stored.
#[derive(Debug)]
pub(crate) struct Called<'a> {
    pub(crate) owner: &'a Owner,
    pub(crate) conversation: &'a ConversationId,
    pub(crate) model: &'a str,
    pub(crate) policy: &'a str,
    pub(crate) recorded: &'a Recorded,
    pub(crate) rewritten: bool,
    pub(crate) booked: Booked,
    /// By the usage that was reported.
    pub(crate) reported: Option<Cost>,
}

/// Stores a call's entry, and adds it to the sums.
///
/// # Errors
/// The store's.
pub(crate) async fn enter(engine: &Engine, called: &Called<'_>) -> Result<(), StoreError> {
    let at_ms = engine.now_ms();
    let entry = called.entry(at_ms);
    let store = engine.store().as_ref();
    let scope = KeyScope::Conversation(called.conversation.clone());
    let key = format!("{ENTRIES}{at_ms:016}-{}", entry.response);
    let value = serde_json::to_vec(&entry).unwrap_or_default();
    let put = PutEntry {
        key,
        value: Some(value.into()),
        expect: Expected::Any,
        at_ms,
    };
    store.put_entry(called.owner, &scope, put).await?;
    let sums = Sums {
        store,
        owner: called.owner,
        at_ms,
    };
    sums.add(&scope, SUM, &entry).await?;
    let day = entry.at.get(..10).unwrap_or_default();
    sums.add(&KeyScope::Owner, &format!("{DAYS}{day}"), &entry)
        .await
}

impl Called<'_> {
    fn entry(&self, at_ms: i64) -> LedgerEntryDocument {
        let money = |pico: u128| i64::try_from(pico).unwrap_or(i64::MAX);
        let booked = &self.booked;
        let usage = self.recorded.usage.as_ref();
        let (sent, passed) = (money(booked.sent_cost), money(booked.passed_cost));
        LedgerEntryDocument {
            response: self.recorded.response.to_string(),
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
            reported_read_tokens: usage.and_then(|usage| usage.cache_read_tokens),
        }
    }
}

struct Sums<'a> {
    store: &'a dyn Store,
    owner: &'a Owner,
    at_ms: i64,
}

impl Sums<'_> {
    async fn add(
        &self,
        scope: &KeyScope,
        key: &str,
        entry: &LedgerEntryDocument,
    ) -> Result<(), StoreError> {
        let mut attempts = ATTEMPTS;
        loop {
            attempts -= 1;
            let known = self.store.entry(self.owner, scope, key).await?;
            let sum: LedgerSumDocument = known.as_ref().map(read).unwrap_or_default();
            let value = serde_json::to_vec(&sum.with(entry)).unwrap_or_default();
            let put = PutEntry {
                key: key.to_owned(),
                value: Some(value.into()),
                expect: known.map_or(Expected::Absent, |known| Expected::Version(known.version)),
                at_ms: self.at_ms,
            };
            match self.store.put_entry(self.owner, scope, put).await {
                Err(StoreError::VersionConflict { .. }) if attempts > 0 => {}
                other => return other.map(drop),
            }
        }
    }
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
