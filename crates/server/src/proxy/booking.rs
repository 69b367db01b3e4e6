//! An answer that is stored, in the ledger.

use contexture::ir::Transcript;
use contexture::{Ingested, Recorded};

use crate::app::App;
use crate::proxy::failing::fail_open;
use crate::proxy::ledger::{self, Called};
use crate::proxy::matching::Miss;
use crate::proxy::outcome::Telling;
use crate::proxy::rewrite::{Rewritten, Round, Weighed};

/// An answer that was looked at before it was asked for.
pub(crate) struct Entry<'a> {
    pub(crate) ingested: &'a Ingested,
    pub(crate) weighed: &'a Weighed,
    /// What was sent in the place of the client's.
    pub(crate) sent: Option<&'a Rewritten>,
    pub(crate) round: Round,
    pub(crate) answer: &'a Transcript,
    pub(crate) recorded: &'a Recorded,
}

/// Enters what it cost.
pub(crate) async fn enter(app: &App, told: &Telling, entry: Entry<'_>) {
    let Entry {
        ingested,
        weighed,
        sent,
        round,
        ..
    } = entry;
    if sent.is_none() {
        let usage = entry.recorded.usage.as_ref();
        ingested.chat.learn(&weighed.counting, usage).await;
    }
    let called = Called {
        owner: ingested.chat.owner(),
        conversation: ingested.chat.id(),
        model: &weighed.account.2,
        policy: &told.now().policy.unwrap_or_default(),
        recorded: entry.recorded,
        rewritten: sent.is_some(),
        booked: weighed.book(app.accounts(), sent, round),
        reported: ingested.cost(entry.answer),
    };
    if let Err(error) = ledger::enter(app.engine(), &called).await {
        fail_open(told, &Miss::of("ledger", &error));
    }
}
