//! Values outside the tree, in memory.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use contexture_ir::Owner;

use crate::contract::{
    DERIVED_KEYS, EntryCursor, EntryPage, Error, KeyScope, KeyValueEntry, ListEntries, PutEntry,
};
use crate::rules::{self, PageBytes};

/// All values, by owner and scope. A deleted key keeps its version.
#[derive(Debug, Default)]
pub(super) struct KeyValueTable(BTreeMap<(Owner, KeyScope), BTreeMap<String, KeyValueSlot>>);

#[derive(Debug)]
struct KeyValueSlot {
    value: Option<Arc<[u8]>>,
    version: u64,
    at_ms: i64,
}

impl KeyValueTable {
    pub(super) fn get_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Option<KeyValueEntry> {
        let slots = self.0.get(&(owner.clone(), scope.clone()))?;
        slots.get(key)?.to_entry(key)
    }

    pub(super) fn list_entries(
        &self,
        owner: &Owner,
        list: &ListEntries,
        page_bytes: usize,
    ) -> EntryPage {
        let scopes = self.0.iter().filter(|((of, scope), _)| {
            of == owner && list.scope.as_ref().is_none_or(|wanted| wanted == scope)
        });
        let after = list.after.as_ref();
        let found = scopes
            .flat_map(|((_, scope), slots)| {
                let slots = slots
                    .range::<str, _>((Bound::Included(list.prefix.as_str()), Bound::Unbounded));
                slots
                    .map(move |(key, slot)| (scope, key, slot))
                    .take_while(|(_, key, _)| key.starts_with(&list.prefix))
            })
            .filter(|(scope, key, _)| after.is_none_or(|at| (*scope, *key) > (&at.scope, &at.key)))
            .filter_map(|(scope, key, slot)| Some((scope.clone(), slot.to_entry(key)?)));
        let limit = list.limit.unwrap_or(ListEntries::DEFAULT_LIMIT);
        let (mut page, mut bytes) = (EntryPage::default(), PageBytes::new(page_bytes));
        for (scope, entry) in found {
            if page.entries.len() == limit || !bytes.take(entry.value.len()) {
                page.next = EntryCursor::after_last(&page.entries);
                break;
            }
            page.entries.push((scope, entry));
        }
        page
    }

    /// Writes all of them, or none. The caller has checked the limits, and that no key occurs
    /// twice.
    pub(super) fn put_all(
        &mut self,
        owner: &Owner,
        puts: Vec<(KeyScope, PutEntry)>,
    ) -> Result<Vec<u64>, Error> {
        for (scope, put) in &puts {
            let present = self.get_entry(owner, scope, &put.key);
            rules::check_version(put, present.map(|entry| entry.version))?;
        }
        let puts = puts.into_iter();
        puts.map(|(scope, put)| self.put_entry(owner, &scope, put))
            .collect()
    }

    /// Writes or deletes one value and returns its version; the caller has checked the limits.
    pub(super) fn put_entry(
        &mut self,
        owner: &Owner,
        scope: &KeyScope,
        put: PutEntry,
    ) -> Result<u64, Error> {
        let slots = self.0.entry((owner.clone(), scope.clone())).or_default();
        let slot = slots.get(&put.key);
        let present = slot.filter(|slot| slot.value.is_some());
        rules::check_version(&put, present.map(|slot| slot.version))?;
        let version = slot.map_or(0, |slot| slot.version) + 1;
        slots.insert(
            put.key,
            KeyValueSlot {
                value: put.value,
                version,
                at_ms: put.at_ms,
            },
        );
        Ok(version)
    }

    /// Removes the values of a scope that repeat what its items say.
    pub(super) fn remove_derived(&mut self, owner: &Owner, scope: &KeyScope, at_ms: i64) {
        let Some(slots) = self.0.get_mut(&(owner.clone(), scope.clone())) else {
            return;
        };
        let derived = slots.iter_mut();
        let derived =
            derived.filter(|(key, slot)| key.starts_with(DERIVED_KEYS) && slot.value.is_some());
        for (_, slot) in derived {
            (slot.value, slot.version, slot.at_ms) = (None, slot.version + 1, at_ms);
        }
    }

    /// Removes every scope for which `goes` is true, versions included; returns the number of keys.
    pub(super) fn remove_scopes(&mut self, goes: impl Fn(&Owner, &KeyScope) -> bool) -> u64 {
        let mut removed = 0;
        self.0.retain(|(owner, scope), slots| {
            let goes = goes(owner, scope);
            removed += if goes { slots.len() as u64 } else { 0 };
            !goes
        });
        removed
    }
}

impl KeyValueSlot {
    fn to_entry(&self, key: &str) -> Option<KeyValueEntry> {
        Some(KeyValueEntry {
            key: key.to_owned(),
            value: Arc::clone(self.value.as_ref()?),
            version: self.version,
            at_ms: self.at_ms,
        })
    }
}
