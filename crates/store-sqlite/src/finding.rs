//! The index of histories: the contract's calls.

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};
use contexture_store::{Error, PathIndex, PathMark, PathPlace, PathQuery, rules};

use crate::conv::Conv;
use crate::path_index;
use crate::store::SqliteStore;

#[async_trait]
impl PathIndex for SqliteStore {
    async fn find_paths(&self, owner: &Owner, query: PathQuery) -> Result<Vec<PathPlace>, Error> {
        rules::check_path_hashes(query.hashes.len(), &self.limits)?;
        let owner = owner.clone();
        self.view(move |conn| path_index::find(conn, &owner, &query))
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
        self.write(std::mem::size_of_val(marks.as_slice()), move |conn| {
            let conv = Conv::load(conn, &owner, &id)?;
            path_index::put(conn, &conv, version, &marks)
        })
        .await
    }
}
