//! Reading a conversation: messages, transcripts, exports, links, search, stored events.

use std::collections::BTreeSet;

use contexture_compile::reading::{PathMatches, ReadReply};
use contexture_compile::{Link, StandingRule};
use contexture_ir::{Fragment, NodeId, Transcript, UiMessage};
use contexture_sessions::{Session, SessionFormat};
use contexture_store::{
    CallFilter, CallRecord, CallSum, Conversation as Record, Event, ListCalls, SearchPage,
};
use futures_util::stream::BoxStream;

use crate::append::{list_rules, load_pins};
use crate::error::EngineError;
use crate::handle::{Conversation, list_fragments, load_info, load_resource};
use crate::search::{follow_events, search_conversation};
use crate::view::{
    LinkTarget, MessagePage, MessageView, OlderMessages, Resolved, export_session, export_text,
    load_message_page, load_messages, load_transcript, read_context, resolve_conversation,
    resolve_link, search_path,
};

impl Conversation {
    /// Loads the fragments that the model reads before the history: those that were [set](Self::set) on this handle, else those
    /// that the path carries, with what was added and removed here.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::hint;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.set([hint("Be brief.")])?;
    /// assert_eq!(chat.fragments().await?.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn fragments(&self) -> Result<Vec<Fragment>, EngineError> {
        list_fragments(self).await
    }

    /// Loads the conversation's record: title, metadata, counts.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Hello")]).await?;
    /// assert_eq!(chat.info().await?.messages, 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn info(&self) -> Result<Record, EngineError> {
        load_info(self).await
    }

    /// Returns the subject of the conversation, such as an end user; `None` if it has none. It never changes, so the store is asked
    /// once for each handle.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let chat = Engine::in_memory().conversation("c").resource("ada").open().await?;
    /// assert_eq!(chat.resource().await?.as_deref(), Some("ada"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn resource(&self) -> Result<Option<String>, EngineError> {
        load_resource(self).await
    }

    /// Loads this branch as a transcript: the leading instructions and the items that models see.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("Hello")]).await?;
    /// let transcript = chat.transcript().await?;
    /// assert_eq!(transcript.items.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn transcript(&self) -> Result<Transcript, EngineError> {
        load_transcript(self).await
    }

    /// Exports the whole conversation in a session format. The format it was imported from gives the same JSON
    /// values, followed by what was stored since; a wire format gives this branch as messages.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_sessions::SessionFormat;
    /// use contexture_wire::Format;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("Hello")]).await?;
    /// let json = chat.export(SessionFormat::Wire(Format::OpenAiChat)).await?;
    /// assert!(json.contains(r#""role":"user""#));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::NotImported`] or [`EngineError::Session`] for a log format the conversation was
    /// not imported from, or the store's.
    pub async fn export(&self, format: SessionFormat) -> Result<String, EngineError> {
        export_text(self, format).await
    }

    /// Exports the whole conversation as a session that can be written as `format`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_sessions::{SessionFormat, write_session};
    /// use contexture_wire::Format;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("Hello")]).await?;
    /// let format = SessionFormat::Wire(Format::OpenAiChat);
    /// let session = chat.export_session(format).await?;
    /// assert_eq!(session.tree.len(), 1);
    /// assert_eq!(write_session(format, &session)?, chat.export(format).await?);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Self::export`].
    pub async fn export_session(&self, format: SessionFormat) -> Result<Session, EngineError> {
        export_session(self, format).await
    }

    /// The stored events behind number `after` (0: from the first): what is there, then what comes, each once and in
    /// order. It ends when the conversation is deleted.
    ///
    /// The store is read, 256 events at a time, so nobody lags: a slow reader misses nothing and makes nobody wait, and
    /// one that comes back goes on behind the last [`Event::seq`] it has seen. What is written through this store is
    /// seen at once, what other processes write within 100 ms. Needs tokio's timer.
    ///
    /// # Errors
    /// The store's. After one that may pass the stream goes on; any other is its last.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
    /// use contexture_engine::Engine;
    /// use futures_util::StreamExt;
    ///
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// let mut events = chat.follow(0);
    /// assert_eq!(events.next().await.unwrap()?.seq, 1);
    /// # Ok::<(), contexture_engine::EngineError>(()) }).unwrap();
    /// ```
    #[must_use]
    pub fn follow(&self, after: u64) -> BoxStream<'static, Result<Event, EngineError>> {
        follow_events(self, after)
    }

    /// Resolves a link to the newest item with its hash on this branch's path.
    ///
    /// The first use reads the path; later ones read only what is new.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_compile::{Link, StandingRule};
    /// use contexture_engine::MessageView;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// let saved = chat.save([user("My order is W8342.")]).await?;
    /// let path = chat.search_path("W8342", 1, MessageView::Model).await?;
    /// let found = chat.resolve_link(path.hits[0].link, MessageView::Model).await?;
    /// assert_eq!(found.node.id, saved.nodes[0]);
    /// # let _: Link = path.hits[0].link;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::NoLink`] if there is no such item for this reader; [`EngineError::Evicted`] if it was redacted.
    pub async fn resolve_link(
        &self,
        link: Link,
        reader: MessageView,
    ) -> Result<LinkTarget, EngineError> {
        resolve_link(self, link, reader).await
    }

    /// Finds items of this branch's path by what was typed ([`typed_request`](contexture_store::rules::typed_request)): a
    /// question, words, an identifier; at most `limit`, best first, with a link to each. Calls of the built-in tool and their
    /// outputs are left out: they say what was looked for, not what was found. Only the first 1,000 bytes of a query are used.
    ///
    /// For other conversations, filters and pages there is [`Engine::search`](crate::Engine::search).
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::{Engine, MessageView};
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("My order is W8342."), user("It is late.")]).await?;
    /// let matches = chat.search_path("W8342", 10, MessageView::Model).await?;
    /// assert!(!matches.more);
    /// assert_eq!(matches.hits[0].text, "My order is W8342.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// [`EngineError::CannotSearch`], or the store's.
    pub async fn search_path(
        &self,
        query: &str,
        limit: usize,
        reader: MessageView,
    ) -> Result<PathMatches, EngineError> {
        search_path(self, query, limit, reader).await
    }

    /// Answers a call of the built-in tool ([`contexture_compile::read_tool`]). What the model did wrong, or asked for in vain,
    /// is an answer too, with `is_error`.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::Engine;
    /// use contexture_ir::user;
    ///
    /// let chat = Engine::in_memory().conversation("support-42").open().await?;
    /// chat.save([user("My order is W8342.")]).await?;
    /// let answer = chat.read_context(r#"{"query":"W8342"}"#).await?;
    /// assert!(answer.text.ends_with("message of the user, line 1:\nMy order is W8342."));
    /// # Ok::<(), contexture_engine::EngineError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// When the store fails.
    pub async fn read_context(&self, arguments: &str) -> Result<ReadReply, EngineError> {
        read_context(self, arguments).await
    }

    /// Lists the newest exchanges of this conversation with providers, newest first, at most `limit`; none if the store keeps no
    /// record of calls.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// assert!(chat.newest_calls(10).await?.is_empty());
    /// # Ok::<(), contexture_engine::EngineError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn newest_calls(&self, limit: usize) -> Result<Vec<CallRecord>, EngineError> {
        let Some(calls) = self.store().calls() else {
            return Ok(Vec::new());
        };
        let list = ListCalls {
            filter: CallFilter {
                conversation: Some(self.id().clone()),
                ..CallFilter::default()
            },
            limit: Some(limit),
            ..ListCalls::default()
        };
        Ok(calls.list_calls(self.owner(), list).await?.calls)
    }

    /// Sums what all exchanges of this conversation with providers used and cost, summaries and failed ones included, whoever made
    /// them: runs, calls of the program, the server. All 0 if the store keeps no record of calls.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// let chat = Engine::in_memory().conversation("c").open().await?;
    /// assert_eq!(chat.usage().await?.input_tokens, 0);
    /// # Ok::<(), contexture_engine::EngineError>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn usage(&self) -> Result<CallSum, EngineError> {
        let Some(calls) = self.store().calls() else {
            return Ok(CallSum::default());
        };
        let of_this = std::slice::from_ref(self.id());
        let sums = calls.sum_conversations(self.owner(), of_this).await?;
        Ok(sums.into_iter().next().unwrap_or_default().sum)
    }

    /// Loads the pinned nodes of this branch.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// let saved = chat.save([user("Never call before noon.")]).await?;
    /// chat.pin(saved.nodes[0]).await?;
    /// assert!(chat.pins().await?.contains(&saved.nodes[0]));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn pins(&self) -> Result<BTreeSet<NodeId>, EngineError> {
        load_pins(self).await
    }

    /// Lists the standing rules of this branch: what a person asked to hold from then on, or said about themselves, and has not taken
    /// back. Oldest first, those that were [dropped](Self::drop_rule) included, at most 300.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Always answer in German. What is a node?")]).await?;
    /// assert_eq!(chat.rules().await?[0].text, "Always answer in German.");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's.
    pub async fn rules(&self) -> Result<Vec<StandingRule>, EngineError> {
        list_rules(self).await
    }

    /// Resolves the branch to the system prompt and the stored messages.
    ///
    /// The system prompt is the one that [`compile`](Self::compile) writes where nothing has to be cut: stored instructions,
    /// fragments, and what the handle and its layers add to it, written by the handle's [renderer](Self::set_renderer). What
    /// layers add at other places depends on a call and is in no message. Layers are asked as for a call of the engine's
    /// default target, and without one as for a model of which nothing is known.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::{hint, user};
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.set([hint("Be brief.")])?;
    /// chat.save([user("Hello")]).await?;
    /// let resolved = chat.resolve().await?;
    /// assert_eq!(resolved.system_prompt, "<hint>Be brief.</hint>");
    /// assert_eq!(resolved.messages.len(), 1);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The renderer's, a layer's that must not fail, or the store's.
    pub async fn resolve(&self) -> Result<Resolved, EngineError> {
        resolve_conversation(self).await
    }

    /// Loads the stored messages of this branch as this reader sees them.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::MessageView;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("Hello")]).await?;
    /// let messages = chat.messages(MessageView::User).await?;
    /// assert_eq!(messages[0].joined_text(), "Hello");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn messages(&self, audience: MessageView) -> Result<Vec<UiMessage>, EngineError> {
        load_messages(self, audience).await
    }

    /// Loads the newest messages of this branch as this reader sees them, or those before a page that was loaded: at most
    /// `limit`, oldest first. It reads about as much as it shows, however long the path is.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::MessageView;
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    ///
    /// chat.save([user("one"), user("two"), user("three")]).await?;
    /// let page = chat.message_page(MessageView::User, None, 2).await?;
    /// assert_eq!(page.messages[0].joined_text(), "two");
    /// let older = chat.message_page(MessageView::User, page.older, 2).await?;
    /// assert_eq!(older.messages[0].joined_text(), "one");
    /// assert_eq!(older.older, None);
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// The store's; a stored item that cannot be read.
    pub async fn message_page(
        &self,
        audience: MessageView,
        before: Option<OlderMessages>,
        limit: usize,
    ) -> Result<MessagePage, EngineError> {
        load_message_page(self, audience, before, limit).await
    }

    /// Searches this conversation on all its branches and returns the best 20 texts that contain everything the
    /// query asks for. [`Engine::search`](crate::Engine::search) takes options.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// # use contexture_engine::Engine;
    /// # use contexture_ir::user;
    /// # let chat = Engine::in_memory().conversation("c").open().await?;
    /// chat.save([user("Refund everything except the gloves")]).await?;
    /// assert_eq!(chat.search("glov*").await?.hits.len(), 1);
    /// assert!(chat.search("shoes").await?.hits.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    ///
    /// # Errors
    /// As [`Engine::search`](crate::Engine::search).
    pub async fn search(&self, query: &str) -> Result<SearchPage, EngineError> {
        search_conversation(self, query).await
    }
}
