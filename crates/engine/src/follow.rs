//! Following what happens to a conversation, as it is stored.
//!
//! Not here: what a running engine tells beyond that ([`crate::Events`]), whose watchers may miss some.

use std::sync::Arc;

use contexture_store::{Event, EventTail, FollowOptions};
use futures_util::StreamExt as _;
use futures_util::stream::BoxStream;

use crate::conversation::Conversation;
use crate::error::EngineError;

impl Conversation {
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
        let options = FollowOptions {
            after,
            ..FollowOptions::default()
        };
        let store = Arc::clone(self.engine().store());
        let tail = EventTail::open(store, self.owner(), self.id(), options);
        let events = tail.into_stream();
        events.map(|event| Ok(event?)).boxed()
    }
}
