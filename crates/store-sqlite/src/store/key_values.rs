//! [`KeyValues`] on SQLite: reads use the read pool, writes the write thread.

use async_trait::async_trait;
use contexture_ir::Owner;
use contexture_store::{
    EntryPage, Error, KeyScope, KeyValueEntry, KeyValues, ListEntries, PutEntry, rules,
};
use rusqlite::Connection;

use crate::key_values;
use crate::store::SqliteStore;
use crate::worker::call_queue::CallLoad;
use crate::worker::read_pool::ReadKind;

#[async_trait]
impl KeyValues for SqliteStore {
    async fn get_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Result<Option<KeyValueEntry>, Error> {
        let (of, scope, key) = (owner.clone(), scope.clone(), key.to_owned());
        let get = move |conn: &Connection| key_values::get_entry(conn, &of, &scope, &key);
        self.read_transaction(ReadKind::Point, Some(owner), get)
            .await
    }

    async fn list_entries(&self, owner: &Owner, list: ListEntries) -> Result<EntryPage, Error> {
        let (of, page_bytes) = (owner.clone(), self.limits.page_bytes);
        let read = move |conn: &Connection| key_values::list_entries(conn, &of, &list, page_bytes);
        self.read_transaction(ReadKind::Point, Some(owner), read)
            .await
    }

    async fn put_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        put: PutEntry,
    ) -> Result<u64, Error> {
        rules::check_put_entry(scope, &put, &self.limits)?;
        let (owner, scope) = (owner.clone(), scope.clone());
        let bytes = put.value.as_ref().map_or(0, |value| value.len());
        self.write_transaction(CallLoad::of(&owner).with_bytes(bytes), move |conn| {
            key_values::put_entry(conn, &owner, &scope, &put)
        })
        .await
    }
}
