//! The stored events of all conversations of an owner, as they come.
//!
//! Stores number events within a conversation, and have no order across conversations. So the conversations that were written
//! to since the last look are listed, and of each the events behind the last one seen are read. A place in these events is the
//! time of a look: whoever comes back with it is told again what was dated up to [`SLACK_MS`] before.
//!
//! Not here: the events of one conversation ([`follow`](crate::Conversation::follow)).

use std::collections::BTreeMap;
use std::time::Duration;
use std::vec::IntoIter;

use contexture_ir::{ConversationId, Owner};
use contexture_store::{
    Conversation as Record, ConversationCursor, Error as StoreError, Event, ListConversations,
};

use crate::error::EngineError;
use crate::handle::Engine;

/// Milliseconds between the time that a writer gives a write and the time by which it can be read, with the difference of the
/// writers' clocks.
const SLACK_MS: i64 = 10_000;

/// Conversations of a page. They are held in memory until their events are read.
const CONVERSATIONS: usize = 256;

/// Events of a page.
const EVENTS: usize = 256;

/// Where to begin in the events of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum FollowFrom {
    /// With what comes.
    Now,
    /// With what is dated at or after this time, in milliseconds since the Unix epoch.
    Since(i64),
    /// Behind a [place](OwnerTail::place_ms) of an earlier follower.
    Place(i64),
}

/// Options for following the events of an owner.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FollowOwner {
    /// Where to begin. Default: with what comes.
    pub from: FollowFrom,
    /// Pause between two looks. Default 500 ms; `None`: the events end with what is there.
    pub poll: Option<Duration>,
}

impl Default for FollowOwner {
    fn default() -> Self {
        Self {
            from: FollowFrom::Now,
            poll: Some(Duration::from_millis(500)),
        }
    }
}

/// Event of one of an owner's conversations.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwnerEvent {
    /// Id of the conversation.
    pub conversation: ConversationId,
    /// What happened to it; its number is the conversation's.
    pub event: Event,
}

/// Follows the events of all conversations of an owner.
#[derive(Debug)]
pub struct OwnerTail {
    engine: Engine,
    owner: Owner,
    poll: Option<Duration>,
    /// The time from which conversations are listed.
    floor_ms: i64,
    place_ms: i64,
    /// What was seen of the conversations that are dated at or after the floor.
    seen: BTreeMap<ConversationId, Seen>,
    look: Option<Look>,
    /// Conversation whose events are read, and those that were read but not returned yet.
    page: Option<(ConversationId, IntoIter<Event>)>,
    over: bool,
}

/// What was seen of a conversation.
#[derive(Clone, Copy, Debug)]
struct Seen {
    /// Number of its last event that was seen.
    seq: u64,
    updated_ms: i64,
}

/// A look at what was written since the one before.
#[derive(Debug)]
struct Look {
    began_ms: i64,
    /// Listed conversations whose events are to be read, the next one last.
    waiting: Vec<Record>,
    next: NextPage,
    reading: Option<Span>,
}

/// The page of conversations that a look lists next.
#[derive(Debug)]
enum NextPage {
    First,
    After(ConversationCursor),
    None,
}

/// Events of a conversation that are to be read.
#[derive(Clone, Debug)]
struct Span {
    id: ConversationId,
    after: u64,
    last: u64,
}

impl OwnerTail {
    /// Opens a follower of the stored events of all conversations of an owner, those that are made later included.
    ///
    /// Events of one conversation come in order, each once; between conversations there is no order. The store is looked at
    /// every 500 ms, and only at what was written since the last look. Whoever comes back with a
    /// [place](Self::place_ms) misses nothing, and is told again what is dated up to 10 s before it: such an event has the
    /// same conversation and number. Not told are deletions, which leave no event, and writes that are dated more than 10 s
    /// back: an import may date a conversation earlier. Needs tokio's timer.
    ///
    /// # Errors
    /// The store's.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use contexture_engine::{Engine, FollowOwner, OwnerTail};
    /// use contexture_ir::Owner;
    ///
    /// let (engine, owner) = (Engine::in_memory(), Owner::new("acme/ada")?);
    /// let mut events = OwnerTail::open(&engine, &owner, FollowOwner::default()).await?;
    /// engine.conversation("c").owner("acme/ada").open().await?;
    /// let created = events.next().await.unwrap()?;
    /// assert_eq!((created.conversation.as_str(), created.event.seq), ("c", 1));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub async fn open(
        engine: &Engine,
        owner: &Owner,
        options: FollowOwner,
    ) -> Result<Self, EngineError> {
        let now = engine.now_ms();
        let (place_ms, floor_ms) = match options.from {
            FollowFrom::Now => (now, now.saturating_sub(SLACK_MS)),
            FollowFrom::Since(ms) => (ms, ms),
            FollowFrom::Place(ms) => (ms, ms.saturating_sub(SLACK_MS)),
        };
        let mut tail = Self {
            engine: engine.clone(),
            owner: owner.clone(),
            poll: options.poll,
            floor_ms,
            place_ms,
            seen: BTreeMap::new(),
            look: None,
            page: None,
            over: false,
        };
        if options.from == FollowFrom::Now {
            tail.skip_stored(now).await?;
        }
        Ok(tail)
    }

    /// Returns the place behind what was returned, in milliseconds since the Unix epoch: who follows from it misses nothing.
    #[must_use]
    pub const fn place_ms(&self) -> i64 {
        self.place_ms
    }

    /// Waits for the next event; `None` where no more are waited for. A dropped call loses nothing.
    ///
    /// # Errors
    /// The store's. One ends the follower; another one goes on from its place.
    pub async fn next(&mut self) -> Option<Result<OwnerEvent, EngineError>> {
        loop {
            if let Some((id, events)) = &mut self.page {
                if let Some(event) = events.next() {
                    let conversation = id.clone();
                    return Some(Ok(OwnerEvent {
                        conversation,
                        event,
                    }));
                }
                self.page = None;
            }
            if self.over {
                return None;
            }
            if let Err(error) = self.step().await {
                self.over = true;
                return Some(Err(error));
            }
        }
    }

    /// Does the next thing: begins a look, lists conversations, reads events, or ends the look.
    async fn step(&mut self) -> Result<(), EngineError> {
        let Some(look) = &mut self.look else {
            self.look = Some(Look::new(self.engine.now_ms()));
            return Ok(());
        };
        // Nothing is taken out before its events are there: the future may be dropped in between.
        if let Some(span) = look.reading.clone() {
            return self.read_events(span).await;
        }
        if let Some(record) = look.waiting.last().cloned() {
            let after = self.unseen_after(&record).await?;
            self.mark_seen(&record);
            if let Some(look) = &mut self.look {
                look.waiting.pop();
                look.reading = (after < record.events).then_some(Span {
                    id: record.id,
                    after,
                    last: record.events,
                });
            }
            return Ok(());
        }
        if !matches!(look.next, NextPage::None) {
            return self.list_page().await;
        }
        self.end_look();
        match self.poll {
            Some(pause) => tokio::time::sleep(pause).await,
            None => self.over = true,
        }
        Ok(())
    }

    /// Marks all that is stored as seen.
    async fn skip_stored(&mut self, now_ms: i64) -> Result<(), EngineError> {
        self.look = Some(Look::new(now_ms));
        while let Some(look) = &mut self.look {
            let listed = std::mem::take(&mut look.waiting);
            let is_last = matches!(look.next, NextPage::None);
            listed.iter().for_each(|record| self.mark_seen(record));
            match is_last {
                true => self.end_look(),
                false => self.list_page().await?,
            }
        }
        Ok(())
    }

    async fn list_page(&mut self) -> Result<(), EngineError> {
        let Some(look) = &mut self.look else {
            return Ok(());
        };
        let after = match &look.next {
            NextPage::First => None,
            NextPage::After(cursor) => Some(cursor.clone()),
            NextPage::None => return Ok(()),
        };
        let list = ListConversations {
            updated_since: Some(self.floor_ms),
            limit: Some(CONVERSATIONS),
            after,
            ..ListConversations::default()
        };
        let page = self.engine.list_conversations(&self.owner, list).await?;
        // The last is taken first: of a page, what was written first comes first.
        look.waiting = page.conversations;
        look.next = page.next.map_or(NextPage::None, NextPage::After);
        Ok(())
    }

    async fn read_events(&mut self, mut span: Span) -> Result<(), EngineError> {
        let limit = usize::try_from(span.last - span.after).unwrap_or(EVENTS);
        let store = self.engine.store();
        let read = store.list_events(&self.owner, &span.id, span.after, limit.min(EVENTS));
        let events = match read.await {
            Ok(events) => events,
            // It was deleted since it was listed.
            Err(StoreError::NotFound { .. }) => Vec::new(),
            Err(error) => return Err(error.into()),
        };
        span.after = events.last().map_or(span.last, |last| last.seq);
        self.page = Some((span.id.clone(), events.into_iter()));
        if let Some(look) = &mut self.look {
            look.reading = (span.after < span.last).then_some(span);
        }
        Ok(())
    }

    /// Returns the number of the event behind which a conversation has not been seen.
    async fn unseen_after(&self, record: &Record) -> Result<u64, EngineError> {
        // A number that went back is of a conversation that was deleted and made again.
        if let Some(seen) = self.seen.get(&record.id)
            && seen.seq <= record.events
        {
            return Ok(seen.seq);
        }
        let mut last = record.events;
        while last > 0 {
            let after = last.saturating_sub(EVENTS as u64);
            let limit = usize::try_from(last - after).unwrap_or(EVENTS);
            let store = self.engine.store();
            let events = match store
                .list_events(&self.owner, &record.id, after, limit)
                .await
            {
                Ok(events) => events,
                Err(StoreError::NotFound { .. }) => return Ok(record.events),
                Err(error) => return Err(error.into()),
            };
            let is_older = |event: &&Event| event.at_ms < self.floor_ms;
            if let Some(older) = events.iter().rev().find(is_older) {
                return Ok(older.seq);
            }
            last = after;
        }
        Ok(0)
    }

    /// Remembers what is seen of a conversation, if the next look may list it again.
    fn mark_seen(&mut self, record: &Record) {
        if record.updated_ms < self.next_floor_ms() {
            self.seen.remove(&record.id);
            return;
        }
        let seen = Seen {
            seq: record.events,
            updated_ms: record.updated_ms,
        };
        self.seen.insert(record.id.clone(), seen);
    }

    fn next_floor_ms(&self) -> i64 {
        let began_ms = self.look.as_ref().map(|look| look.began_ms);
        let next = began_ms.map_or(self.floor_ms, |ms| ms.saturating_sub(SLACK_MS));
        // Never back, though clocks may go back: what is below the floor is no longer remembered.
        next.max(self.floor_ms)
    }

    fn end_look(&mut self) {
        self.floor_ms = self.next_floor_ms();
        if let Some(look) = self.look.take() {
            self.place_ms = self.place_ms.max(look.began_ms);
        }
        let floor_ms = self.floor_ms;
        self.seen.retain(|_, seen| seen.updated_ms >= floor_ms);
    }
}

impl Look {
    const fn new(began_ms: i64) -> Self {
        Self {
            began_ms,
            waiting: Vec::new(),
            next: NextPage::First,
            reading: None,
        }
    }
}
