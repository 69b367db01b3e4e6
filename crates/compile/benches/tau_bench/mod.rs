//! The conversation that is measured: the 200 sessions of tau-bench end to end.

use contexture_compile::PathItem;
use contexture_wire::{Format, lift};
use serde::Deserialize;
use serde_json::value::RawValue;

#[derive(Deserialize)]
struct Session {
    traj: Box<RawValue>,
}

/// The sessions, then repeated up to `items` items.
pub(crate) fn path(items: usize) -> Vec<PathItem> {
    let text = contexture_testdata::tau_bench();
    let sessions: Vec<Session> = serde_json::from_str(&text).unwrap();
    let lifted = sessions.iter().flat_map(|session| {
        let lifted = lift(Format::OpenAiChat, session.traj.get()).unwrap();
        lifted.transcript.items
    });
    let path = PathItem::from_items(lifted);
    let items = items.max(path.len());
    path.iter().cycle().take(items).cloned().collect()
}
