//! The index of histories: the contract's calls.

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};
use contexture_store::{Error, PathIndex, PathMark, PathMatch, PathQuery, rules};

use crate::conv::ConversationRow;
use crate::path_index;
use crate::store::SqliteStore;

#[async_trait]
impl PathIndex for SqliteStore {
    async fn find_path_hashes(
        &self,
        owner: &Owner,
        query: PathQuery,
    ) -> Result<Vec<PathMatch>, Error> {
        rules::check_path_hashes(query.hashes.len(), &self.limits)?;
        let owner = owner.clone();
        self.read_transaction(move |conn| path_index::find_path_hashes(conn, &owner, &query))
            .await
    }

    async fn put_paths(
        &self,
        owner: &Owner,
        id: &ConversationId,
        version: u32,
        marks: Vec<PathMark>,
    ) -> Result<(), Error> {
        rules::check_path_hashes(marks.len(), &self.limits)?;
        let (owner, id) = (owner.clone(), id.clone());
        self.write_transaction(std::mem::size_of_val(marks.as_slice()), move |conn| {
            let conv = ConversationRow::load(conn, &owner, &id)?;
            path_index::put_paths(conn, &conv, version, &marks)
        })
        .await
    }
}
