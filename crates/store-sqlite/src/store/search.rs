//! Searches of [`SqliteStore`]: by text ([`Search`]) and by the hash of a path ([`PathIndex`]).

use std::sync::Arc;

use async_trait::async_trait;
use contexture_ir::{ConversationId, Owner};
use contexture_store::{
    Error, PathIndex, PathMark, PathMatch, PathQuery, Search, SearchPage, SearchRequest,
    SearchScope, rules,
};
use rusqlite::Connection;

use crate::error::RowError;
use crate::path_index;
use crate::refs::resolve_end;
use crate::rows::conversation_row::ConversationRow;
use crate::search::{self, SearchArea, index};
use crate::store::SqliteStore;
use crate::worker::call_queue::CallLoad;
use crate::worker::read_pool::ReadKind;

#[async_trait]
impl Search for SqliteStore {
    async fn search_nodes(
        &self,
        owner: &Owner,
        request: SearchRequest,
    ) -> Result<SearchPage, Error> {
        rules::check_search(&request, &self.limits.search)?;
        let page = self.search_indexed(owner, request.clone()).await?;
        if page.indexing.is_none() {
            return Ok(page);
        }
        // One step, with which a small database is whole, and with which a large one becomes so by commands that do nothing
        // but search. Where it cannot be taken, as in a file that is only read, the page says what it has.
        let step = self.write_transaction(CallLoad::OWN, |conn| {
            index::index_next_nodes(conn)?;
            Ok(index::IndexedRange::load(conn)?.is_everything())
        });
        match step.await {
            Ok(true) => self.search_indexed(owner, request).await,
            Ok(false) | Err(_) => Ok(page),
        }
    }
}

impl SqliteStore {
    /// Searches what is in the index.
    async fn search_indexed(
        &self,
        owner: &Owner,
        request: SearchRequest,
    ) -> Result<SearchPage, Error> {
        let (of, limits) = (owner.clone(), Arc::clone(&self.limits));
        self.read_transaction(ReadKind::Scan, Some(owner), move |conn| {
            let area = resolve_scope(conn, &of, &request.scope)?;
            let indexing = area.load_progress(conn)?;
            let page = search::search_nodes(conn, &area, request, &limits)?;
            Ok(SearchPage { indexing, ..page })
        })
        .await
    }
}

/// Resolves the scope of a search.
fn resolve_scope(
    conn: &Connection,
    owner: &Owner,
    scope: &SearchScope,
) -> Result<SearchArea, RowError> {
    let conv = |id| ConversationRow::load(conn, owner, id);
    match scope {
        SearchScope::Owner => SearchArea::of_owner(conn, owner, None),
        SearchScope::Resource(resource) => SearchArea::of_owner(conn, owner, Some(resource)),
        SearchScope::Conversation(id) => Ok(SearchArea::of_conversation(&conv(id)?)),
        SearchScope::Path { conversation, at } => {
            let conv = conv(conversation)?;
            let end = resolve_end(conn, &conv, at)?;
            SearchArea::of_path(conn, &conv, &end)
        }
    }
}

#[async_trait]
impl PathIndex for SqliteStore {
    async fn find_path_hashes(
        &self,
        owner: &Owner,
        query: PathQuery,
    ) -> Result<Vec<PathMatch>, Error> {
        rules::check_path_hashes(query.hashes.len(), &self.limits)?;
        let of = owner.clone();
        let find = move |conn: &Connection| path_index::find_path_hashes(conn, &of, &query);
        self.read_transaction(ReadKind::Point, Some(owner), find)
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
        self.write_transaction(
            CallLoad::of(&owner)
                .with_bytes(std::mem::size_of_val(marks.as_slice()))
                .with_rows(marks.len()),
            move |conn| {
                let conv = ConversationRow::load(conn, &owner, &id)?;
                path_index::put_paths(conn, &conv, version, &marks)
            },
        )
        .await
    }
}
