//! Searches of [`PostgresStore`], and indexing of what is not indexed yet.
//!
//! Not here: statements.

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};
use contexture_store::{
    Error, PathIndex, PathMark, PathMatch, PathQuery, Search, SearchPage, SearchRequest, rules,
};

use crate::connection::pool::Access;
use crate::path_index;
use crate::search;
use crate::search::index_task;
use crate::store::PostgresStore;

impl PostgresStore {
    /// Indexes the texts of conversations that were written before texts could be searched, or with
    /// other terms; does nothing if there are none.
    ///
    /// A search that meets such conversations starts this in the background and does not wait for it. It runs in steps of
    /// some milliseconds beside other calls, and continues after an interruption.
    ///
    /// # Errors
    ///
    /// Errors of the server; what was indexed stays indexed.
    pub async fn index_texts(&self) -> Result<(), Error> {
        index_task::index_texts(&self.server).await
    }
}

#[async_trait]
impl Search for PostgresStore {
    async fn search_nodes(
        &self,
        owner: &Owner,
        request: SearchRequest,
    ) -> Result<SearchPage, Error> {
        let limits = &self.limits.search;
        rules::check_search(&request, limits)?;
        let page = self
            .server
            .run_transaction(Access::Scan, owner, |tx| {
                Box::pin(search::search_nodes(tx, owner, &request, limits))
            })
            .await?;
        if page.indexing.is_some() {
            self.indexing.wake();
        }
        Ok(page)
    }
}

#[async_trait]
impl PathIndex for PostgresStore {
    async fn find_path_hashes(
        &self,
        owner: &Owner,
        query: PathQuery,
    ) -> Result<Vec<PathMatch>, Error> {
        rules::check_path_hashes(query.hashes.len(), &self.limits)?;
        self.server
            .run_transaction(Access::Read, owner, |tx| {
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
            .run_transaction(Access::Write, owner, |tx| {
                Box::pin(path_index::put_paths(tx, owner, id, version, &marks))
            })
            .await
    }
}
