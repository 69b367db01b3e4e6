//! Searching what was said.
//!
//! Not here: what a query means (`contexture_store::rules::Query`).

use contexture_ir::Owner;
use contexture_store::{SearchPage, SearchRequest, SearchScope};

use crate::conversation::Conversation;
use crate::engine::Engine;
use crate::error::EngineError;

impl Engine {
    /// The texts of an owner's conversations that have everything a query asks for, best first.
    ///
    /// Words as they are, "side by side" in double quotes, beginn* with a star; any text is a query.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::Engine;
    /// use contexture_ir::{Owner, user};
    /// use contexture_store::{SearchRequest, SearchScope};
    ///
    /// let engine = Engine::in_memory();
    /// let chat = engine.conversation("support-42").owner("acme/ada").open().await?;
    /// chat.save([user("Refund everything except the gloves")]).await?;
    ///
    /// let request = SearchRequest::new("glov* \"refund everything\"", SearchScope::Owner);
    /// let page = engine.search(&Owner::new("acme/ada")?, request).await?;
    /// let snippet = &page.hits[0].snippet;
    /// assert_eq!(&snippet.text[snippet.matches[0].clone()], "Refund everything");
    /// # Ok::<(), contexture_engine::EngineError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::CannotSearch`] where the store has no search; else as
    /// [`Search::search_nodes`](contexture_store::Search::search_nodes).
    pub async fn search(
        &self,
        owner: &Owner,
        request: SearchRequest,
    ) -> Result<SearchPage, EngineError> {
        let search = self.store().search().ok_or(EngineError::CannotSearch)?;
        Ok(search.search_nodes(owner, request).await?)
    }
}

impl Conversation {
    /// The texts of this conversation, on all its branches, that have everything a query asks for:
    /// the best 20. [`Engine::search`] takes other wishes.
    ///
    /// # Errors
    /// As [`Engine::search`].
    pub async fn search(&self, query: &str) -> Result<SearchPage, EngineError> {
        let scope = SearchScope::Conversation(self.id().clone());
        let request = SearchRequest::new(query, scope);
        self.engine().search(self.owner(), request).await
    }
}
