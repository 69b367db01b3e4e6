//! The live feed: pieces of answers that are still coming, for the followers of their conversations.
//!
//! Pieces go to whoever follows now and are kept for nobody: the complete answer is stored, and comes as an event that
//! nobody misses. A slow follower learns how many pieces it missed, and delays nobody.
//!
//! Not here: answers that do not go through this server, which are unknown until they are stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::Owner;
use contexture::ir::ConversationId;
use contexture::wire::StreamEvent;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use contexture_api::DeltaDocument;

/// Pieces that may wait for a follower; beyond, it misses the oldest.
const FEED_CAPACITY: usize = 1_024;

type FeedKey = (Owner, ConversationId);

/// The followers of each conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveFeed {
    senders: Arc<Mutex<BTreeMap<FeedKey, Sender<DeltaDocument>>>>,
}

impl LiveFeed {
    /// Subscribes to the answers of a conversation from now on.
    pub(crate) fn subscribe_to(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Receiver<DeltaDocument> {
        let mut senders = self.lock_senders();
        // Swept here because a follower that leaves tells nobody.
        senders.retain(|_, sender| sender.receiver_count() > 0);
        let sender = senders.entry((owner.clone(), id.clone()));
        sender
            .or_insert_with(|| channel(FEED_CAPACITY).0)
            .subscribe()
    }

    /// Creates the writer for one answer to a request of this owner.
    pub(crate) fn new_writer(&self, owner: &Owner) -> LiveFeedWriter {
        LiveFeedWriter {
            feed: self.clone(),
            owner: owner.clone(),
            target: None,
            pending: Vec::new(),
        }
    }

    fn lock_senders(&self) -> MutexGuard<'_, BTreeMap<FeedKey, Sender<DeltaDocument>>> {
        self.senders.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The conversation and branch that an answer belongs to.
#[derive(Clone, Debug)]
pub(crate) struct FeedTarget {
    pub(crate) request: String,
    pub(crate) conversation: ConversationId,
    pub(crate) branch: String,
}

/// Publishes the events of one answer.
#[derive(Debug)]
pub(crate) struct LiveFeedWriter {
    feed: LiveFeed,
    owner: Owner,
    /// `None` until the request is stored.
    target: Option<(FeedKey, FeedTarget)>,
    /// Events from before the target was known.
    pending: Vec<StreamEvent>,
}

impl LiveFeedWriter {
    /// Publishes events. Until the target is known they are buffered, up to a limit.
    pub(crate) fn publish(
        &mut self,
        events: Vec<StreamEvent>,
        resolve_target: impl FnOnce() -> Option<FeedTarget>,
    ) {
        // Held for the whole call: nothing in it waits, as a full broadcast channel drops its
        // oldest piece.
        let senders = self.feed.lock_senders();
        if senders.is_empty() {
            // Nobody follows anything: the usual case must not cost memory or a conversion per event.
            return self.pending.clear();
        }
        if self.target.is_none() {
            let target = resolve_target();
            self.target =
                target.map(|target| ((self.owner.clone(), target.conversation.clone()), target));
        }
        let Some((key, target)) = &self.target else {
            // Bounded, as a request that is never stored never gets a target.
            let room = FEED_CAPACITY - self.pending.len();
            return self.pending.extend(events.into_iter().take(room));
        };
        let Some(sender) = senders.get(key) else {
            return self.pending.clear();
        };
        for event in self.pending.drain(..).chain(events) {
            if let Some(delta) = DeltaDocument::from_event(&target.request, &target.branch, event) {
                // An error means that the last follower has just left.
                let _ = sender.send(delta);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(delta: &str) -> Vec<StreamEvent> {
        let delta = delta.to_owned();
        vec![StreamEvent::TextDelta { piece: 0, delta }]
    }

    #[test]
    fn writer_without_target_buffers_events_until_it_is_known() {
        let (live, ada) = (LiveFeed::default(), Owner::new("ada").unwrap());
        let id = ConversationId::new("c").unwrap();
        let mut follower = live.subscribe_to(&ada, &id);
        let mut stranger = live.subscribe_to(&Owner::new("bob").unwrap(), &id);
        let mut teller = live.new_writer(&ada);
        teller.publish(text("one "), || None);
        assert!(follower.try_recv().is_err());
        teller.publish(text("two"), || {
            Some(FeedTarget {
                request: "req_1".to_owned(),
                conversation: id.clone(),
                branch: "main".to_owned(),
            })
        });
        let told = [follower.try_recv().unwrap(), follower.try_recv().unwrap()];
        let told = told.map(|delta| delta.delta.unwrap());
        assert_eq!(told, ["one ", "two"]);
        assert!(follower.try_recv().is_err() && stranger.try_recv().is_err());
    }

    #[test]
    fn whoever_has_left_is_forgotten() {
        let (live, ada) = (LiveFeed::default(), Owner::new("ada").unwrap());
        for name in ["a", "b", "c"] {
            drop(live.subscribe_to(&ada, &ConversationId::new(name).unwrap()));
        }
        assert_eq!(live.lock_senders().len(), 1);
    }
}
