//! The index of histories: the contract's calls.

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};
use contexture_store::{Error, PathIndex, PathMark, PathMatch, PathQuery, rules};

use crate::path_index;
use crate::pool::Access;
use crate::store::PostgresStore;

#[async_trait]
impl PathIndex for PostgresStore {
    async fn find_path_hashes(
        &self,
        owner: &Owner,
        query: PathQuery,
    ) -> Result<Vec<PathMatch>, Error> {
        rules::check_path_hashes(query.hashes.len(), &self.limits)?;
        self.server
            .run_transaction(Access::Read, |tx| {
                Box::pin(path_index::find_path_hashes(tx, owner, &query))
            })
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
        self.server
            .run_transaction(Access::Write, |tx| {
                Box::pin(path_index::put_paths(tx, owner, id, version, &marks))
            })
            .await
    }
}
