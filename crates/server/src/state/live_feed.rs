//! Answers that are still coming, for those who follow their conversations.
//!
//! They are told to whoever listens now and kept for nobody: what is whole is stored, and comes as an event that nobody
//! misses. A follower that is slow is told how many pieces it missed and holds nobody up.
//!
//! Not here: answers that do not go through this server, which tells nothing of them until they are stored.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture::Owner;
use contexture::ir::ConversationId;
use contexture::wire::StreamEvent;
use tokio::sync::broadcast::{Receiver, Sender, channel};

use contexture_api::DeltaDocument;

/// How many pieces wait for a follower.
const FEED_CAPACITY: usize = 1_024;

type FeedKey = (Owner, ConversationId);

/// Who follows which conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct LiveFeed {
    senders: Arc<Mutex<BTreeMap<FeedKey, Sender<DeltaDocument>>>>,
}

impl LiveFeed {
    /// What comes of this conversation's answers from now on.
    pub(crate) fn subscribe_to(
        &self,
        owner: &Owner,
        id: &ConversationId,
    ) -> Receiver<DeltaDocument> {
        let mut followed = self.lock_senders();
        followed.retain(|_, told| told.receiver_count() > 0);
        let told = followed.entry((owner.clone(), id.clone()));
        told.or_insert_with(|| channel(FEED_CAPACITY).0).subscribe()
    }

    /// Tells of one answer to a request of this owner.
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

/// Where an answer belongs.
#[derive(Clone, Debug)]
pub(crate) struct FeedTarget {
    pub(crate) request: String,
    pub(crate) conversation: ConversationId,
    pub(crate) branch: String,
}

/// Tells of one answer.
#[derive(Debug)]
pub(crate) struct LiveFeedWriter {
    feed: LiveFeed,
    owner: Owner,
    /// Once it is known.
    target: Option<(FeedKey, FeedTarget)>,
    /// What came before.
    pending: Vec<StreamEvent>,
}

impl LiveFeedWriter {
    /// Tells what has come. As long as it is not known where it belongs it waits, up to a limit.
    pub(crate) fn publish(
        &mut self,
        events: Vec<StreamEvent>,
        belongs: impl FnOnce() -> Option<FeedTarget>,
    ) {
        let followed = self.feed.lock_senders();
        if followed.is_empty() {
            return self.pending.clear();
        }
        if self.target.is_none() {
            let known = belongs();
            self.target = known.map(|it| ((self.owner.clone(), it.conversation.clone()), it));
        }
        let Some((place, belongs)) = &self.target else {
            let room = FEED_CAPACITY - self.pending.len();
            return self.pending.extend(events.into_iter().take(room));
        };
        let Some(told) = followed.get(place) else {
            return self.pending.clear();
        };
        for event in self.pending.drain(..).chain(events) {
            if let Some(delta) = DeltaDocument::from_event(&belongs.request, &belongs.branch, event)
            {
                // Whoever has left misses nothing.
                let _ = told.send(delta);
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
