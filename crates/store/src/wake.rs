//! Waking those who wait for a stream, or for a conversation's events, within one process.
//!
//! A backend has one [`StreamSignals`]. It hands a [`WakeOnDrop`] to whatever writes, and drops it once
//! the write is visible, on every way out: a call too many costs one read, a call too few would
//! leave a reader asleep. Not here: changes made by other processes; nobody is woken for them.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_ir::{ConversationId, Owner, StreamId};
use tokio::sync::watch;

/// Without a stream: the conversation's events.
type SignalKey = (Owner, ConversationId, Option<StreamId>);
type Listeners = BTreeMap<SignalKey, watch::Sender<()>>;

/// Who waits for which stream. Clones are the same.
#[derive(Clone, Debug, Default)]
pub struct StreamSignals(Arc<Mutex<Listeners>>);

impl StreamSignals {
    /// Listens to a stream, there or not.
    #[must_use]
    pub fn listen_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
    ) -> StreamSignal {
        self.listen_to((owner.clone(), id.clone(), Some(stream)))
    }

    /// Listens to a conversation's events, there or not.
    #[must_use]
    pub fn listen_events(&self, owner: &Owner, id: &ConversationId) -> StreamSignal {
        self.listen_to((owner.clone(), id.clone(), None))
    }

    fn listen_to(&self, key: SignalKey) -> StreamSignal {
        let mut listeners = self.lock_listeners();
        // Whether the conversation exists is not asked: a listener may come before the first write.
        let sender = listeners.entry(key.clone()).or_default();
        // Under the lock, so that the entry cannot be removed between being made and being used.
        let changes = sender.subscribe();
        StreamSignal(Some(ListenerGuard {
            changes: Some(changes),
            key,
            signals: self.clone(),
        }))
    }

    /// Wakes those who wait for this stream, when the result is dropped.
    #[must_use = "it wakes when it is dropped"]
    pub fn wake_stream(&self, owner: &Owner, id: &ConversationId, stream: StreamId) -> WakeOnDrop {
        self.wake_scope(WakeScope::Stream(owner.clone(), id.clone(), stream))
    }

    /// Wakes those who wait for this conversation's events or any of its streams, when the result
    /// is dropped.
    #[must_use = "it wakes when it is dropped"]
    pub fn wake_conversation(&self, owner: &Owner, id: &ConversationId) -> WakeOnDrop {
        self.wake_scope(WakeScope::Conversation(owner.clone(), id.clone()))
    }

    /// Wakes all who wait for what `scope` says, when the result is dropped.
    #[must_use = "it wakes when it is dropped"]
    pub fn wake_scope(&self, scope: WakeScope) -> WakeOnDrop {
        // Nothing is looked up yet: who listens is asked at the drop, so late listeners are woken
        // too.
        WakeOnDrop {
            scope,
            signals: self.clone(),
        }
    }

    fn lock_listeners(&self) -> MutexGuard<'_, Listeners> {
        // Never held across code of others, so a poisoned map is still whole.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whom a write concerns.
#[derive(Clone, Debug)]
pub enum WakeScope {
    /// Those who wait for this stream.
    Stream(Owner, ConversationId, StreamId),
    /// Those who wait for this conversation's events or any of its streams.
    Conversation(Owner, ConversationId),
    /// Those who wait for anything of this owner.
    Owner(Owner),
}

/// Wakes when it is dropped.
#[derive(Debug)]
pub struct WakeOnDrop {
    scope: WakeScope,
    signals: StreamSignals,
}

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        let listeners = self.signals.lock_listeners();
        // Mostly nobody waits.
        if listeners.is_empty() {
            return;
        }
        match &self.scope {
            WakeScope::Stream(owner, id, stream) => {
                let key = (owner.clone(), id.clone(), Some(*stream));
                if let Some(sender) = listeners.get(&key) {
                    sender.send_replace(());
                }
            }
            WakeScope::Conversation(owner, id) => {
                // No stream comes before all streams.
                let first = (owner.clone(), id.clone(), None);
                let all = listeners.range(first..);
                for (_, sender) in all.take_while(|((of, one, _), _)| of == owner && one == id) {
                    sender.send_replace(());
                }
            }
            // A rare write: an erasure.
            WakeScope::Owner(owner) => {
                for ((of, ..), sender) in listeners.iter() {
                    if of == owner {
                        sender.send_replace(());
                    }
                }
            }
        }
    }
}

/// Tells of changes of one stream, or of new events of one conversation.
///
/// A reader calls [`StreamSignal::mark_unchanged`], looks, and waits by [`StreamSignal::wait_for_change`]: a change between
/// the two calls ends the wait at once.
pub struct StreamSignal(Option<ListenerGuard>);

struct ListenerGuard {
    /// `None` only while it is dropped.
    changes: Option<watch::Receiver<()>>,
    key: SignalKey,
    signals: StreamSignals,
}

impl StreamSignal {
    /// A signal that never comes.
    #[must_use]
    pub fn never() -> Self {
        Self(None)
    }

    /// Forgets the changes until now: to be called before looking.
    pub fn mark_unchanged(&mut self) {
        if let Some(changes) = self.change_receiver() {
            changes.mark_unchanged();
        }
    }

    /// Waits for a change since [`StreamSignal::mark_unchanged`]. May be dropped and called again.
    pub async fn wait_for_change(&mut self) {
        if let Some(changes) = self.change_receiver()
            && changes.changed().await.is_ok()
        {
            return;
        }
        // No sender is left, or there was none: no change can come any more.
        std::future::pending().await
    }

    fn change_receiver(&mut self) -> Option<&mut watch::Receiver<()>> {
        self.0.as_mut()?.changes.as_mut()
    }
}

impl fmt::Debug for StreamSignal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let stream = self.0.as_ref().map(|listening| listening.key.2);
        f.debug_tuple("StreamSignal").field(&stream).finish()
    }
}

impl Drop for ListenerGuard {
    fn drop(&mut self) {
        let mut listeners = self.signals.lock_listeners();
        // The receiver goes first, so that it is not counted below.
        self.changes = None;
        // The entry goes with its last listener, or the map would grow with every conversation ever
        // followed.
        let last = |sender: &watch::Sender<()>| sender.receiver_count() == 0;
        if listeners.get(&self.key).is_some_and(last) {
            listeners.remove(&self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::pin::pin;
    use std::task::{Context, Poll, Waker};

    use super::*;

    fn is_woken(signal: &mut StreamSignal) -> bool {
        let woken = pin!(signal.wait_for_change()).poll(&mut Context::from_waker(Waker::noop()));
        woken == Poll::Ready(())
    }

    #[test]
    fn a_wake_reaches_those_it_concerns() {
        let signals = StreamSignals::default();
        let (ada, bob) = (Owner::new("ada").unwrap(), Owner::new("bob").unwrap());
        let (one, two) = ("one".parse().unwrap(), "two".parse().unwrap());
        let stream = |n: u8| StreamId::from_bytes([n; 16]);
        let mut all = [
            signals.listen_stream(&ada, &one, stream(1)),
            signals.listen_stream(&ada, &one, stream(1)),
            signals.listen_stream(&ada, &one, stream(2)),
            signals.listen_stream(&ada, &two, stream(1)),
            signals.listen_stream(&bob, &one, stream(1)),
            signals.listen_events(&ada, &one),
            signals.listen_events(&bob, &two),
            StreamSignal::never(),
        ];
        let mut check = |wake: WakeOnDrop, wanted: [bool; 8]| {
            drop(wake);
            assert_eq!(all.each_mut().map(is_woken), wanted);
            all.iter_mut().for_each(StreamSignal::mark_unchanged);
        };
        let of_stream = signals.wake_stream(&ada, &one, stream(1));
        check(
            of_stream,
            [true, true, false, false, false, false, false, false],
        );
        let of_conversation = signals.wake_conversation(&ada, &one);
        check(
            of_conversation,
            [true, true, true, false, false, true, false, false],
        );
        let of_owner = signals.wake_scope(WakeScope::Owner(ada));
        check(
            of_owner,
            [true, true, true, true, false, true, false, false],
        );
        drop(all);
        assert!(signals.lock_listeners().is_empty());
    }

    #[test]
    fn what_was_before_marking_is_forgotten() {
        let signals = StreamSignals::default();
        let (owner, id) = (Owner::local(), ConversationId::new("c").unwrap());
        let stream = StreamId::from_bytes([0; 16]);
        let wake = || drop(signals.wake_stream(&owner, &id, stream));
        wake();
        let mut signal = signals.listen_stream(&owner, &id, stream);
        assert!(!is_woken(&mut signal));
        wake();
        signal.mark_unchanged();
        assert!(!is_woken(&mut signal));
        wake();
        assert!(is_woken(&mut signal));
    }
}
