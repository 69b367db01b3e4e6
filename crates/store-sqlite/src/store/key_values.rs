//! [`KeyValues`] on SQLite: reads use the read pool, writes the write thread.

use async_trait::async_trait;
use contexture_ir::Owner;
use contexture_store::{
    EntryPage, Error, KeyScope, KeyValueEntry, KeyValues, ListEntries, PutEntry, rules,
};

use crate::key_values;
use crate::store::SqliteStore;

#[async_trait]
impl KeyValues for SqliteStore {
    async fn get_entry(
        &self,
        owner: &Owner,
        scope: &KeyScope,
        key: &str,
    ) -> Result<Option<KeyValueEntry>, Error> {
        let (owner, scope, key) = (owner.clone(), scope.clone(), key.to_owned());
        self.readers
            .run_read(move |conn| key_values::get_entry(conn, &owner, &scope, &key))
            .await
    }

    async fn list_entries(&self, owner: &Owner, list: ListEntries) -> Result<EntryPage, Error> {
        let owner = owner.clone();
        self.readers
            .run_read(move |conn| key_values::list_entries(conn, &owner, &list))
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
        self.write_transaction(bytes, move |conn| {
            key_values::put_entry(conn, &owner, &scope, &put)
        })
        .await
    }
}
