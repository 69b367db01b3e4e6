//! [`EventTail`]: follows the events of a conversation as they are stored.
//!
//! Events are read from the store page by page. Nothing is buffered for followers, so a slow one
//! blocks nobody and misses nothing. Not here: events of a running engine that are not stored.

use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;

use contexture_ir::{ConversationId, Owner};
use futures_util::Stream;

use super::wait_or_poll;
use crate::contract::{Error, Event, Store};
use crate::wake::StreamSignal;

/// Options for following events.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowOptions {
    /// Number of the event after which to begin. Default 0: with the first.
    pub after: u64,
    /// Largest number of events of a page. Default 256.
    pub limit: usize,
    /// Interval at which to poll for writes of other processes; a write through the same store
    /// wakes at once. Default 100 ms; `None`: never.
    pub poll: Option<Duration>,
}

impl Default for FollowOptions {
    fn default() -> Self {
        Self {
            after: 0,
            limit: 256,
            poll: Some(Duration::from_millis(100)),
        }
    }
}

/// Follows a conversation's events: first stored ones, then new ones, each once and in order.
///
/// Any number of readers follow one conversation, each from its own position and at its own speed.
/// None can miss events by being slow, since events stay as long as their conversation. Needs
/// tokio's timer, unless [`FollowOptions::poll`] is `None`.
///
/// Event numbers belong to one conversation. If it is deleted and created again with the same id
/// between two reads, the follower cannot tell the two apart.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use std::sync::Arc;
/// use contexture_ir::{ConversationId, Owner};
/// use contexture_store::{
///     EventKind, EventTail, FollowOptions, MemoryStore, NewConversation, Store,
/// };
///
/// let store: Arc<dyn Store> = Arc::new(MemoryStore::new());
/// let (owner, id) = (Owner::local(), ConversationId::new("chat").unwrap());
/// store.create_conversation(&owner, NewConversation::new(id.clone(), 0)).await?;
/// let mut tail = EventTail::open(Arc::clone(&store), &owner, &id, FollowOptions::default());
/// let event = tail.next().await.unwrap()?;
/// assert_eq!((event.seq, event.kind), (1, EventKind::Created));
/// store.delete_conversation(&owner, &id).await?;
/// assert!(tail.next().await.is_none());
/// # Ok::<(), contexture_store::Error>(()) }).unwrap();
/// ```
#[derive(Debug)]
pub struct EventTail {
    store: Arc<dyn Store>,
    owner: Owner,
    id: ConversationId,
    options: FollowOptions,
    signal: StreamSignal,
    /// Events that were read but not returned yet.
    page: IntoIter<Event>,
    over: bool,
}

impl EventTail {
    /// Creates a follower; nothing is read yet.
    #[must_use]
    pub fn open(
        store: Arc<dyn Store>,
        owner: &Owner,
        id: &ConversationId,
        options: FollowOptions,
    ) -> Self {
        let signal = store.event_signal(owner, id);
        Self {
            store,
            owner: owner.clone(),
            id: id.clone(),
            options: FollowOptions {
                // With a limit of 0 the loop would never make progress.
                limit: options.limit.max(1),
                ..options
            },
            signal,
            page: Vec::new().into_iter(),
            over: false,
        }
    }

    /// The number of the last event that was returned; reading resumes after it.
    #[must_use]
    pub const fn last_seq(&self) -> u64 {
        self.options.after
    }

    /// Waits for the next event; returns `None` once the conversation is deleted. A dropped call
    /// loses nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Store::list_events`]. After a [retryable](Error::is_retryable) one the call may
    /// be repeated; any other ends the follower.
    pub async fn next(&mut self) -> Option<Result<Event, Error>> {
        while !self.over {
            if let Some(event) = self.page.next() {
                self.options.after = event.seq;
                return Some(Ok(event));
            }
            // Before reading: an event between the read and the wait must wake it.
            self.signal.mark_unchanged();
            let FollowOptions { after, limit, poll } = self.options;
            let page = self.store.list_events(&self.owner, &self.id, after, limit);
            match page.await {
                // Deletion is the regular end of a conversation's events, not a failure.
                Err(Error::NotFound { .. }) => self.over = true,
                Err(error) => {
                    self.over = !error.is_retryable();
                    return Some(Err(error));
                }
                Ok(page) if page.is_empty() => wait_or_poll(&mut self.signal, poll).await,
                Ok(page) => self.page = page.into_iter(),
            }
        }
        None
    }

    /// Converts the follower into a stream of events.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, Error>> + Send {
        futures_util::stream::unfold(self, async |mut tail| {
            let event = tail.next().await?;
            Some((event, tail))
        })
    }
}
