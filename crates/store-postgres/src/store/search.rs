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
use crate::rows::path::NodePosition;
use crate::search;
use crate::search::index::{self, UnindexedConversation};
use crate::store::PostgresStore;

impl PostgresStore {
    /// Indexes the texts of conversations that were written before texts could be searched, or with
    /// other terms.
    ///
    /// A search does the same for its scope, and waits for it; after a migration of a large
    /// database, call this instead. It runs in steps of some milliseconds beside other calls, and
    /// continues after an interruption.
    ///
    /// # Errors
    ///
    /// Errors of the server; what was indexed stays indexed.
    pub async fn index_texts(&self) -> Result<(), Error> {
        loop {
            let unindexed = self
                .server
                .run_transaction(Access::Read, None, |tx| {
                    Box::pin(index::find_unindexed(tx, None, None, None))
                })
                .await?;
            if unindexed.is_empty() {
                return Ok(());
            }
            self.catch_up(&unindexed).await?;
        }
    }

    async fn catch_up(&self, unindexed: &[UnindexedConversation]) -> Result<(), Error> {
        // One conversation after another: a step locks its row, so appends to it wait for one step
        // at most.
        for conversation in unindexed {
            let mut next = Some(NodePosition::default());
            while let Some(after) = next {
                // Indexing a node again writes the same row, so a step with an unknown outcome may
                // run again.
                let step = self
                    .server
                    .run_transaction(Access::WriteIdempotent, None, |tx| {
                        Box::pin(index::index_step(tx, conversation, after))
                    });
                next = match step.await {
                    // The conversation was deleted meanwhile.
                    Err(Error::NotFound { .. }) => None,
                    next => next?,
                };
            }
        }
        Ok(())
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
        loop {
            let found = self
                .server
                .run_transaction(Access::Scan, owner, |tx| {
                    Box::pin(search::search_nodes(tx, owner, &request, limits))
                })
                .await?;
            match found {
                Ok(page) => return Ok(page),
                Err(unindexed) => self.catch_up(&unindexed).await?,
            }
        }
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
