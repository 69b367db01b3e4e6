//! The record of calls in memory: roll-ups and rows, as the other stores have them.

use std::collections::BTreeMap;
use std::collections::btree_map::Entry;
use std::ops::Bound;
use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{CallId, ConversationId, Owner};

use super::MemoryStore;
use crate::contract::{
    CallFilter, CallGroup, CallOrder, CallPage, CallRecord, CallSum, Calls, ConversationCalls,
    Error, Limits, ListCalls, SumCalls, SweepCalls, SweptCalls,
};
use crate::rules::{self, CallKey, CallTotals};

/// Largest number of calls that one step puts into roll-ups, or removes.
const STEP_CALLS: usize = 1000;

/// The calls of each owner.
#[derive(Debug, Default)]
pub(super) struct CallTable(BTreeMap<Owner, OwnerCalls>);

#[derive(Debug, Default)]
struct OwnerCalls {
    /// Each call, and whether it is in no roll-up yet.
    rows: BTreeMap<CallId, (CallRecord, bool)>,
    /// The bodies of calls, where they were stored.
    bodies: BTreeMap<CallId, Arc<[u8]>>,
    roll_ups: BTreeMap<CallKey<Option<ConversationId>>, CallSum>,
}

impl CallTable {
    /// Stores a call, unless its id is taken.
    pub(super) fn record_call(&mut self, owner: &Owner, mut call: CallRecord) {
        let own = self.0.entry(owner.clone()).or_default();
        let body = call.body.take().filter(|_| call.conversation.is_some());
        if let Entry::Vacant(row) = own.rows.entry(call.id) {
            own.bodies.extend(body.map(|body| (call.id, body)));
            row.insert((call, true));
        }
    }

    /// Removes the bodies of a conversation's calls.
    pub(super) fn remove_bodies(&mut self, owner: &Owner, id: &ConversationId) {
        let Some(own) = self.0.get_mut(owner) else {
            return;
        };
        let rows = &own.rows;
        own.bodies.retain(|call, _| {
            let row = rows.get(call);
            row.is_some_and(|(call, _)| call.conversation.as_ref() != Some(id))
        });
    }

    /// Takes a conversation's name, and what is about its content, from its calls.
    pub(super) fn forget_conversation(&mut self, owner: &Owner, id: &ConversationId) {
        self.remove_bodies(owner, id);
        let Some(own) = self.0.get_mut(owner) else {
            return;
        };
        for (call, _) in own.rows.values_mut() {
            if call.conversation.as_ref() == Some(id) {
                call.conversation = None;
                call.response = None;
                call.body_hash = None;
                call.band = None;
            }
        }
        for (mut key, sum) in std::mem::take(&mut own.roll_ups) {
            key.conversation = key.conversation.filter(|of| of != id);
            own.roll_ups.entry(key).or_default().add_sum(&sum);
        }
    }

    pub(super) fn erase_owner(&mut self, owner: &Owner) {
        self.0.remove(owner);
    }
}

fn key_of(call: &CallRecord) -> CallKey<Option<ConversationId>> {
    let conversation = call.conversation.clone();
    CallKey::of_call(call.id, call.outcome, call.names.clone(), conversation)
}

impl OwnerCalls {
    fn list_calls(&self, list: &ListCalls) -> CallPage {
        let (low, high) = rules::page_range(list);
        let limit = list.limit.unwrap_or(100);
        // A page behind the last call there can be begins before its range.
        let range = (low < high).then(|| self.rows.range(low..high));
        let calls = range.into_iter().flatten().map(|(_, (call, _))| call);
        let calls = calls.filter(|call| rules::matches_call(&list.filter, call));
        let mut found: Box<dyn Iterator<Item = &CallRecord>> = match list.order {
            CallOrder::NewestFirst => Box::new(calls.rev()),
            CallOrder::OldestFirst => Box::new(calls),
        };
        let calls: Vec<CallRecord> = found.by_ref().take(limit).cloned().collect();
        let next = found.next().and_then(|_| calls.last()).map(|call| call.id);
        CallPage { calls, next }
    }

    fn sum_calls(
        &self,
        sum: &SumCalls,
        limits: &Limits,
    ) -> Result<Vec<(CallGroup, CallSum)>, Error> {
        let mut totals = CallTotals::new(&sum.by, limits);
        let mut add = |key: &CallKey<Option<ConversationId>>, part: &CallSum| {
            let conversation = key.conversation.as_ref();
            let key = CallKey {
                hour: key.hour,
                outcome: key.outcome,
                names: key.names.clone(),
                conversation: conversation.map_or("", ConversationId::as_str),
            };
            totals.add_sum(key, part)
        };
        for (key, part) in &self.roll_ups {
            if matches_roll_up(&sum.filter, key) {
                add(key, part)?;
            }
        }
        for (call, is_open) in self.rows.values() {
            if *is_open && rules::matches_call(&sum.filter, call) {
                add(
                    &key_of(call),
                    &CallSum::of_call(call.outcome, &call.details),
                )?;
            }
        }
        Ok(totals.into_groups())
    }

    fn sum_conversation(&self, id: &ConversationId) -> ConversationCalls {
        let mut sum = CallSum::default();
        for (key, part) in &self.roll_ups {
            if key.conversation.as_ref() == Some(id) {
                sum.add_sum(part);
            }
        }
        let mut last_model = None;
        for (call, is_open) in self.rows.values() {
            if call.conversation.as_ref() != Some(id) {
                continue;
            }
            if *is_open {
                sum.add_sum(&CallSum::of_call(call.outcome, &call.details));
            }
            if !call.names.model.is_empty() {
                last_model = Some(call.names.model.clone());
            }
        }
        ConversationCalls { sum, last_model }
    }

    fn sweep_calls(&mut self, sweep: SweepCalls) -> SweptCalls {
        let before = CallId::first_at(sweep.roll_up_before_ms);
        let open = self.rows.range_mut(..before).map(|(_, row)| row);
        let open = open.filter(|(_, is_open)| *is_open).take(STEP_CALLS);
        let mut swept = SweptCalls::default();
        for (call, is_open) in open {
            let roll_up = self.roll_ups.entry(key_of(call)).or_default();
            roll_up.add_sum(&CallSum::of_call(call.outcome, &call.details));
            *is_open = false;
            swept.rolled_up += 1;
        }
        let before = CallId::first_at(sweep.remove_before_ms);
        let old = self.rows.range(..before).filter(|(_, row)| !row.1);
        let old: Vec<CallId> = old.take(STEP_CALLS).map(|(id, _)| *id).collect();
        for id in &old {
            self.rows.remove(id);
            self.bodies.remove(id);
        }
        swept.removed = old.len() as u64;
        let before = CallId::first_at(sweep.remove_bodies_before_ms);
        let old = self.bodies.range(..before).take(STEP_CALLS);
        let old: Vec<CallId> = old.map(|(id, _)| *id).collect();
        old.iter().for_each(|id| drop(self.bodies.remove(id)));
        swept.removed_bodies = old.len() as u64;
        let most = STEP_CALLS as u64;
        swept.more = [swept.rolled_up, swept.removed, swept.removed_bodies].contains(&most);
        swept
    }
}

/// Whether a filter, whose times are whole hours, accepts the calls of a roll-up.
fn matches_roll_up(filter: &CallFilter, key: &CallKey<Option<ConversationId>>) -> bool {
    let (first, last) = rules::hour_range(filter);
    let call = CallRecord {
        outcome: key.outcome,
        names: key.names.clone(),
        conversation: key.conversation.clone(),
        ..CallRecord::new(CallId::first_at(0), "")
    };
    let names_only = CallFilter {
        since_ms: None,
        until_ms: None,
        ..filter.clone()
    };
    (first..last).contains(&key.hour) && rules::matches_call(&names_only, &call)
}

#[async_trait]
impl Calls for MemoryStore {
    async fn record_calls(&self, owner: &Owner, calls: Vec<CallRecord>) -> Result<(), Error> {
        rules::check_calls(&calls, &self.limits)?;
        let mut tables = self.lock_tables();
        for mut call in calls {
            let named = call.conversation.take();
            call.conversation = named.filter(|id| tables.conversation_tree(owner, id).is_ok());
            tables.calls.record_call(owner, call);
        }
        Ok(())
    }

    async fn load_call(&self, owner: &Owner, id: CallId) -> Result<Option<CallRecord>, Error> {
        let tables = self.lock_tables();
        let own = tables.calls.0.get(owner);
        Ok(own.and_then(|own| Some(own.rows.get(&id)?.0.clone())))
    }

    async fn load_call_body(&self, owner: &Owner, id: CallId) -> Result<Option<Arc<[u8]>>, Error> {
        let tables = self.lock_tables();
        let own = tables.calls.0.get(owner);
        Ok(own.and_then(|own| own.bodies.get(&id).cloned()))
    }

    async fn list_calls(&self, owner: &Owner, list: ListCalls) -> Result<CallPage, Error> {
        let tables = self.lock_tables();
        let own = tables.calls.0.get(owner);
        Ok(own.map_or_else(CallPage::default, |own| own.list_calls(&list)))
    }

    async fn sum_calls(
        &self,
        owner: &Owner,
        sum: SumCalls,
    ) -> Result<Vec<(CallGroup, CallSum)>, Error> {
        rules::check_sum_calls(&sum)?;
        let tables = self.lock_tables();
        let own = tables.calls.0.get(owner);
        own.map_or_else(|| Ok(Vec::new()), |own| own.sum_calls(&sum, &self.limits))
    }

    async fn sum_conversations(
        &self,
        owner: &Owner,
        conversations: &[ConversationId],
    ) -> Result<Vec<ConversationCalls>, Error> {
        rules::check_sum_conversations(conversations, &self.limits)?;
        let tables = self.lock_tables();
        let own = tables.calls.0.get(owner);
        let sum = |id| own.map_or_else(ConversationCalls::default, |own| own.sum_conversation(id));
        Ok(conversations.iter().map(sum).collect())
    }

    async fn list_call_owners(
        &self,
        after: Option<&Owner>,
        limit: usize,
    ) -> Result<Vec<Owner>, Error> {
        let tables = self.lock_tables();
        let behind = after.map_or(Bound::Unbounded, Bound::Excluded);
        let owners = tables.calls.0.range((behind, Bound::Unbounded));
        let owners = owners.filter(|(_, own)| !own.rows.is_empty() || !own.roll_ups.is_empty());
        Ok(owners.take(limit).map(|(owner, _)| owner.clone()).collect())
    }

    async fn sweep_calls(&self, owner: &Owner, sweep: SweepCalls) -> Result<SweptCalls, Error> {
        let mut tables = self.lock_tables();
        let own = tables.calls.0.get_mut(owner);
        Ok(own.map_or_else(SweptCalls::default, |own| own.sweep_calls(sweep)))
    }
}
