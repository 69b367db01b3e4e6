//! What becomes of an event.

/// What becomes of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EventAction {
    /// The client gets it, as it is by now.
    Show,
    /// It does not.
    Drop,
    /// That is known when the round is over.
    Hold,
}
