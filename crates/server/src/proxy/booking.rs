//! An answer is stored, with its entry in the ledger.
//!
//! Not here: what the ledger is (`ledger`), who waits for the answer (`listen_in`, `own`).

use contexture::engine::AnswerOptions;
use contexture::ir::Transcript;
use contexture::{EngineError, Ingested, OwnCall, Recorded};

use crate::app::App;
use crate::proxy::failing::unbooked;
use crate::proxy::ledger::{ATTEMPTS, Books, Called};
use crate::proxy::matching::Miss;
use crate::proxy::outcome::Telling;
use crate::proxy::rewrite::{Rewritten, Round, Weighed};

/// An answer to be stored.
#[derive(Clone, Copy)]
pub(crate) struct Answer<'a> {
    /// Under a policy: what was looked at before it was asked for.
    pub(crate) weighed: Option<&'a Weighed>,
    /// What was sent in the place of the client's.
    pub(crate) sent: Option<&'a Rewritten>,
    pub(crate) round: Round,
    pub(crate) said: &'a Transcript,
    /// The calls in it that are ours.
    pub(crate) own: &'a [OwnCall],
}

/// Stores an answer behind its request, and enters what it cost, if somebody looked at it. What cannot be entered is
/// stored all the same.
///
/// # Errors
/// The answer is not stored.
pub(crate) async fn keep(
    app: &App,
    told: &Telling,
    ingested: &mut Ingested,
    answer: Answer<'_>,
) -> Result<Recorded, Miss> {
    let Answer { said, own, .. } = answer;
    let options = AnswerOptions {
        call: answer.sent.map(|sent| &sent.call),
        own,
        ..AnswerOptions::default()
    };
    let store = |error: EngineError| Miss::of("store", &error);
    let Some(weighed) = answer.weighed else {
        return ingested.record_with(said, options).await.map_err(store);
    };
    let usage = said.response.as_ref();
    let usage = usage.and_then(|info| info.usage.as_ref());
    let owner = ingested.chat.owner().clone();
    let books = Books {
        store: app.engine().store().as_ref(),
        turns: app.turns(),
        owner: &owner,
        at_ms: app.engine().now_ms(),
    };
    let called = Called {
        response: ingested.response_id(said, own),
        model: &weighed.account.2,
        policy: &told.now().policy.unwrap_or_default(),
        usage,
        rewritten: answer.sent.is_some(),
        booked: weighed.book(app.accounts(), answer.sent, answer.round),
        reported: ingested.cost(said),
    };
    let entry = called.entry(books.at_ms);
    let conversation = ingested.chat.id().clone();
    let turn = books.turns.of(&(&owner, &conversation)).await;
    let mut attempts = ATTEMPTS;
    let recorded: Recorded = loop {
        attempts -= 1;
        let mut options = options.clone();
        match books.of_answer(&conversation, &entry).await {
            Ok(entries) if attempts > 0 => options.entries = entries,
            Ok(_) => unbooked(told, &Miss::new("ledger", "others write the same sum")),
            Err(miss) => unbooked(told, &miss),
        }
        let is_entered = !options.entries.is_empty();
        match ingested.record_with(said, options).await {
            Err(error) if is_entered && error.is_stale_state() => {}
            Err(error) => return Err(store(error)),
            Ok(recorded) => break recorded,
        }
    };
    drop(turn);
    if answer.sent.is_none() {
        ingested.chat.learn(&weighed.counting, usage).await;
    }
    if !recorded.replayed
        && let Err(miss) = books.add_to_day(&entry).await
    {
        unbooked(told, &miss);
    }
    Ok(recorded)
}
