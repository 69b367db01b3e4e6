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

use crate::documents::DeltaDocument;

/// How many pieces wait for a follower.
const BEHIND: usize = 1_024;

type Place = (Owner, ConversationId);

/// Who follows which conversation.
#[derive(Clone, Debug, Default)]
pub(crate) struct Live {
    followed: Arc<Mutex<BTreeMap<Place, Sender<DeltaDocument>>>>,
}

impl Live {
    /// What comes of this conversation's answers from now on.
    pub(crate) fn follow(&self, owner: &Owner, id: &ConversationId) -> Receiver<DeltaDocument> {
        let mut followed = self.followed();
        followed.retain(|_, told| told.receiver_count() > 0);
        let told = followed.entry((owner.clone(), id.clone()));
        told.or_insert_with(|| channel(BEHIND).0).subscribe()
    }

    /// Tells of one answer to a request of this owner.
    pub(crate) fn teller(&self, owner: &Owner) -> Teller {
        Teller {
            live: self.clone(),
            owner: owner.clone(),
            belongs: None,
            waiting: Vec::new(),
        }
    }

    fn followed(&self) -> MutexGuard<'_, BTreeMap<Place, Sender<DeltaDocument>>> {
        self.followed.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Where an answer belongs.
#[derive(Clone, Debug)]
pub(crate) struct Belongs {
    pub(crate) request: String,
    pub(crate) conversation: ConversationId,
    pub(crate) branch: String,
}

/// Tells of one answer.
#[derive(Debug)]
pub(crate) struct Teller {
    live: Live,
    owner: Owner,
    /// Once it is known.
    belongs: Option<(Place, Belongs)>,
    /// What came before.
    waiting: Vec<StreamEvent>,
}

impl Teller {
    /// Tells what has come. As long as it is not known where it belongs it waits, up to a limit.
    pub(crate) fn tell(
        &mut self,
        events: Vec<StreamEvent>,
        belongs: impl FnOnce() -> Option<Belongs>,
    ) {
        let followed = self.live.followed();
        if followed.is_empty() {
            return self.waiting.clear();
        }
        if self.belongs.is_none() {
            let known = belongs();
            self.belongs = known.map(|it| ((self.owner.clone(), it.conversation.clone()), it));
        }
        let Some((place, belongs)) = &self.belongs else {
            let room = BEHIND - self.waiting.len();
            return self.waiting.extend(events.into_iter().take(room));
        };
        let Some(told) = followed.get(place) else {
            return self.waiting.clear();
        };
        for event in self.waiting.drain(..).chain(events) {
            if let Some(delta) = DeltaDocument::of(&belongs.request, &belongs.branch, event) {
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
    fn what_came_before_its_place_was_known_is_told_then_and_to_nobody_else() {
        let (live, ada) = (Live::default(), Owner::new("ada").unwrap());
        let id = ConversationId::new("c").unwrap();
        let mut follower = live.follow(&ada, &id);
        let mut stranger = live.follow(&Owner::new("bob").unwrap(), &id);
        let mut teller = live.teller(&ada);
        teller.tell(text("one "), || None);
        assert!(follower.try_recv().is_err());
        teller.tell(text("two"), || {
            Some(Belongs {
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
        let (live, ada) = (Live::default(), Owner::new("ada").unwrap());
        for name in ["a", "b", "c"] {
            drop(live.follow(&ada, &ConversationId::new(name).unwrap()));
        }
        assert_eq!(live.followed().len(), 1);
    }
}
