//! Wakes readers that wait for a stream, or for a conversation's events, within one process.
//!
//! A backend has one [`StreamSignals`]. Each write holds a [`WakeOnDrop`] that is dropped once the
//! write is visible, or when it fails. A superfluous wake costs one read; a missing one would leave
//! a reader asleep until it polls. Not here: writes by other processes, which wake nobody.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use contexture_ir::{ConversationId, Owner, StreamId};
use tokio::sync::watch;

/// Key of a listener; without a stream it stands for the conversation's events.
type SignalKey = (Owner, ConversationId, Option<StreamId>);
type Listeners = BTreeMap<SignalKey, watch::Sender<()>>;

/// Registry of the listeners of streams and events. Clones share one registry.
#[derive(Clone, Debug, Default)]
pub struct StreamSignals(Arc<Mutex<Listeners>>);

impl StreamSignals {
    /// Listens to a stream, which need not exist yet.
    #[must_use]
    pub fn listen_stream(
        &self,
        owner: &Owner,
        id: &ConversationId,
        stream: StreamId,
    ) -> StreamSignal {
        self.listen_to((owner.clone(), id.clone(), Some(stream)))
    }

    /// Listens to a conversation's events; the conversation need not exist yet.
    #[must_use]
    pub fn listen_events(&self, owner: &Owner, id: &ConversationId) -> StreamSignal {
        self.listen_to((owner.clone(), id.clone(), None))
    }

    fn listen_to(&self, key: SignalKey) -> StreamSignal {
        let mut listeners = self.lock_listeners();
        // No check that the conversation exists: a listener may register before the first write.
        let sender = listeners.entry(key.clone()).or_default();
        // Under the lock, so that the entry cannot be removed before it has a receiver.
        let changes = sender.subscribe();
        StreamSignal(Some(ListenerGuard {
            changes: Some(changes),
            key,
            signals: self.clone(),
        }))
    }

    /// Wakes the listeners of this stream when the result is dropped.
    #[must_use = "it wakes when it is dropped"]
    pub fn wake_stream(&self, owner: &Owner, id: &ConversationId, stream: StreamId) -> WakeOnDrop {
        self.wake_scope(WakeScope::Stream(owner.clone(), id.clone(), stream))
    }

    /// Wakes the listeners of this conversation's events and of all its streams when the result is
    /// dropped.
    #[must_use = "it wakes when it is dropped"]
    pub fn wake_conversation(&self, owner: &Owner, id: &ConversationId) -> WakeOnDrop {
        self.wake_scope(WakeScope::Conversation(owner.clone(), id.clone()))
    }

    /// Wakes all listeners in `scope` when the result is dropped.
    #[must_use = "it wakes when it is dropped"]
    pub fn wake_scope(&self, scope: WakeScope) -> WakeOnDrop {
        // Listeners are looked up at the drop, so those that register during the write are woken
        // too.
        WakeOnDrop {
            scope,
            signals: self.clone(),
        }
    }

    fn lock_listeners(&self) -> MutexGuard<'_, Listeners> {
        // No foreign code runs under this lock, so a poisoned map is still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Listeners that a write wakes.
#[derive(Clone, Debug)]
pub enum WakeScope {
    /// Listeners of this stream.
    Stream(Owner, ConversationId, StreamId),
    /// Listeners of this conversation's events and of all its streams.
    Conversation(Owner, ConversationId),
    /// All listeners of this owner.
    Owner(Owner),
}

/// Guard that wakes its listeners when it is dropped.
#[derive(Debug)]
pub struct WakeOnDrop {
    scope: WakeScope,
    signals: StreamSignals,
}

impl Drop for WakeOnDrop {
    fn drop(&mut self) {
        let listeners = self.signals.lock_listeners();
        // The common case: nobody listens.
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
                // `None` sorts before every stream, so the range begins with the events' entry.
                let first = (owner.clone(), id.clone(), None);
                let all = listeners.range(first..);
                for (_, sender) in all.take_while(|((of, one, _), _)| of == owner && one == id) {
                    sender.send_replace(());
                }
            }
            // A full scan is fine: only an erasure has this scope.
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

/// Signal for changes of one stream, or for new events of one conversation.
///
/// A reader calls [`StreamSignal::mark_unchanged`], reads, and then calls
/// [`StreamSignal::wait_for_change`]. A change between the two calls ends the wait at once.
pub struct StreamSignal(Option<ListenerGuard>);

struct ListenerGuard {
    /// Receiver of the wakes; `None` only while the guard is being dropped.
    changes: Option<watch::Receiver<()>>,
    key: SignalKey,
    signals: StreamSignals,
}

impl StreamSignal {
    /// Returns a signal that never fires.
    #[must_use]
    pub fn never() -> Self {
        Self(None)
    }

    /// Forgets all changes so far; call it before reading.
    pub fn mark_unchanged(&mut self) {
        if let Some(changes) = self.change_receiver() {
            changes.mark_unchanged();
        }
    }

    /// Waits for a change after [`StreamSignal::mark_unchanged`]. The future may be dropped and
    /// called again.
    pub async fn wait_for_change(&mut self) {
        if let Some(changes) = self.change_receiver()
            && changes.changed().await.is_ok()
        {
            return;
        }
        // There is no sender, so no change can arrive any more.
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
        // The receiver is dropped first, so that it is not counted below.
        self.changes = None;
        // The last listener removes the entry, or the map would grow with every conversation ever
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
