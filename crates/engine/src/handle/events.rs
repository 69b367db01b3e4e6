//! Events of a running engine, for programs that watch it.
//!
//! Each watcher reads small owned values from a queue of its own; none of its code runs where calls are compiled. A
//! watcher that panics harms only itself; a slow one misses events, learns how many, and delays nobody. The engine's own
//! events hold no content: ids, names, counts.
//!
//! Not here: stored events ([`contexture_store::Event`]), of which nobody misses any; tracing spans (`spans`).

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};
use std::sync::{Arc, Mutex, PoisonError};

use contexture_compile::EpochReason;
use contexture_ir::{ConversationId, NodeId, Owner, ResponseId, Usage};
use contexture_layers::LayerEvent;

use super::output_copies::CopyReport;

/// How many events wait for a watcher at most.
const QUEUE: usize = 1_024;

/// An event of a running engine, about one conversation.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EngineEvent {
    /// The owner of the conversation.
    pub owner: Owner,
    /// Conversation that the event is about.
    pub conversation: ConversationId,
    /// Kind of the event, with its figures.
    pub kind: EngineEventKind,
}

/// The kind of an event, with its figures.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum EngineEventKind {
    /// A compile begins.
    CompileStart {
        /// Model that the call is compiled for.
        model: String,
    },
    /// A compile gave a payload. One that was refused ends without this.
    CompileDone {
        /// Model that the call was compiled for.
        model: String,
        /// The payload's tokens, as budgeted.
        tokens: u64,
        /// The epoch of the payload.
        epoch: u64,
        /// Why it began, if it began with this compile.
        epoch_reason: Option<EpochReason>,
        /// Tokens that the provider is expected to read from its cache.
        cache_read: u64,
        /// How many outputs are shown as previews.
        previewed: usize,
    },
    /// An answer was stored.
    Recorded {
        /// Id of the answer.
        response: ResponseId,
        /// What it used, as reported.
        usage: Option<Usage>,
    },
    /// A span is stood for by a compaction.
    Compacted {
        /// Node of the compaction.
        compaction: NodeId,
    },
    /// A compaction was due, and none was made; the history is sent as it is, or trimmed.
    CompactionDeclined {
        /// Why, in plain words.
        reason: &'static str,
    },
    /// A model is asked for a summary in the background. Prices are in pico-dollars, as far as the catalogue has them.
    SummaryAsked {
        /// Whether it is the conversation's own model, behind what it was sent last.
        is_own: bool,
        /// What the own model's summary is expected to cost; `None` if it cannot be asked, or no price is known.
        own_cost: Option<u128>,
        /// What another model's is expected to cost; `None` if none is named, or no price is known.
        other_cost: Option<u128>,
    },
    /// A summary waits for the compaction to come.
    SummaryReady,
    /// No summary was written in the background; the compaction to come has none.
    SummaryMissing {
        /// Why, in plain words.
        reason: String,
    },
    /// A compaction was taken back.
    Uncompacted {
        /// Node of the compaction.
        compaction: NodeId,
    },
    /// Long outputs were copied to where [`Engine::with_offload`](crate::Engine::with_offload) says.
    Copied {
        /// How many, and how many could not be.
        report: CopyReport,
    },
    /// A layer told something: which note changed, say. Its facts may quote what the conversation says.
    Layer(LayerEvent),
    /// A model read again what it was shown in part.
    ContextRead,
}

/// A watcher's queue; see [`Engine::subscribe`](crate::Engine::subscribe). Dropping it ends the watch.
#[derive(Debug)]
pub struct Events {
    queue: Receiver<EngineEvent>,
    missed: Arc<AtomicU64>,
}

impl Events {
    /// The next event, if one waits.
    #[must_use]
    pub fn try_next(&self) -> Option<EngineEvent> {
        self.queue.try_recv().ok()
    }

    /// How many events found the queue full and were lost.
    #[must_use]
    pub fn missed_count(&self) -> u64 {
        self.missed.load(Ordering::Relaxed)
    }
}

/// The watchers of an engine.
#[derive(Debug, Default)]
pub(crate) struct Watchers(Mutex<Vec<Watcher>>);

#[derive(Debug)]
struct Watcher {
    queue: SyncSender<EngineEvent>,
    missed: Arc<AtomicU64>,
}

impl Watchers {
    pub(crate) fn subscribe(&self) -> Events {
        let (sender, queue) = sync_channel(QUEUE);
        let missed = Arc::new(AtomicU64::new(0));
        let watcher = Watcher {
            queue: sender,
            missed: Arc::clone(&missed),
        };
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        watchers.push(watcher);
        Events { queue, missed }
    }

    /// Tells everybody; the event is made only if somebody watches.
    pub(crate) fn publish(&self, event: impl FnOnce() -> EngineEvent) {
        let mut watchers = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // Most engines are not watched, and then the event is not even built.
        if watchers.is_empty() {
            return;
        }
        let event = event();
        // Sent under the lock, as `try_send` never waits: a watcher can neither block nor reorder others.
        watchers.retain(|watcher| match watcher.queue.try_send(event.clone()) {
            Ok(()) => true,
            Err(TrySendError::Full(_)) => {
                watcher.missed.fetch_add(1, Ordering::Relaxed);
                true
            }
            Err(TrySendError::Disconnected(_)) => false,
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event() -> EngineEvent {
        EngineEvent {
            owner: Owner::local(),
            conversation: "c".parse().unwrap(),
            kind: EngineEventKind::ContextRead,
        }
    }

    #[test]
    fn a_slow_watcher_misses_events_and_holds_nobody_up() {
        let watchers = Watchers::default();
        watchers.publish(|| panic!("nobody watches"));
        let (slow, gone) = (watchers.subscribe(), watchers.subscribe());
        drop(gone);
        for _ in 0..QUEUE + 7 {
            watchers.publish(event);
        }
        assert_eq!(slow.missed_count(), 7);
        assert_eq!(std::iter::from_fn(|| slow.try_next()).count(), QUEUE);
        watchers.publish(event);
        assert_eq!(slow.try_next(), Some(event()));
        drop(slow);
        watchers.publish(event);
        watchers.publish(|| panic!("nobody watches any more"));
    }
}
