//! [`EventTail`]: follows the events of a conversation as they are stored.
//!
//! The events are read from the store, a page at a time: nothing is kept for those who follow, so a slow one makes
//! nobody wait and misses nothing. Not here: what a running engine tells beyond what is stored.

use std::sync::Arc;
use std::time::Duration;
use std::vec::IntoIter;

use contexture_ir::{ConversationId, Owner};
use futures_util::Stream;

use super::wait_or_poll;
use crate::contract::{Error, Event, Store};
use crate::wake::StreamSignal;

/// How events are followed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowOptions {
    /// Begin behind this number. Default 0: with the first.
    pub after: u64,
    /// At most so many events at once. Default 256.
    pub limit: usize,
    /// How long at most to wait before looking again, for what other processes write: what is
    /// written through the same store wakes at once. Default 100 ms; `None`: for ever.
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

/// Follows a conversation's events: first what is stored, then what comes, each once and in order.
///
/// Any number of readers follow one conversation, each from where it likes and as fast as it likes. None can lag behind
/// what is kept, for events stay as long as their conversation. Needs tokio's timer, unless [`FollowOptions::poll`] is
/// `None`.
///
/// The numbers are those of one conversation: one that is deleted and made again under its id between two looks is not
/// told from the one before.
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
    /// Read, and not yet told.
    page: IntoIter<Event>,
    over: bool,
}

impl EventTail {
    /// Begins; nothing is read yet.
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
                // A page of nothing would never come to an end.
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

    /// The next event, once there is one; `None` once the conversation is deleted. A call that is
    /// dropped loses nothing.
    ///
    /// # Errors
    ///
    /// Those of [`Store::list_events`]. After one that [may pass](Error::is_retryable) the call may be
    /// repeated; any other ends it.
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

    /// As a stream of events.
    pub fn into_stream(self) -> impl Stream<Item = Result<Event, Error>> + Send {
        futures_util::stream::unfold(self, async |mut tail| {
            let event = tail.next().await?;
            Some((event, tail))
        })
    }
}
