//! An answer is stored, with its entry in the ledger.
//!
//! Not here: what the ledger is (`ledger`), who waits for the answer (`listen_in`, `own`).

use contexture::engine::AnswerOptions;
use contexture::ir::Transcript;
use contexture::{EngineError, Ingested, InterceptedCall, Recorded};

use crate::proxy::failure::ProxyFailure;
use crate::proxy::failure::count_not_booked;
use crate::proxy::ledger::writer::{LedgerCall, LedgerWriter, MAX_ATTEMPTS};
use crate::proxy::rewrite::{PricedRequest, RewrittenRequest, ToolRound};
use crate::state::App;
use crate::state::request_outcomes::OutcomeRecorder;

/// An answer to be stored.
#[derive(Clone, Copy)]
pub(crate) struct PendingAnswer<'a> {
    /// Under a policy: what was looked at before it was asked for.
    pub(crate) priced: Option<&'a PricedRequest>,
    /// What was sent in the place of the client's.
    pub(crate) sent: Option<&'a RewrittenRequest>,
    pub(crate) round: ToolRound,
    pub(crate) transcript: &'a Transcript,
    /// The calls in it that are ours.
    pub(crate) server_calls: &'a [InterceptedCall],
}

/// Stores an answer behind its request, and enters what it cost, if somebody looked at it. What cannot be entered is
/// stored all the same.
///
/// # Errors
/// The answer is not stored.
pub(crate) async fn store_answer(
    app: &App,
    told: &OutcomeRecorder,
    ingested: &mut Ingested,
    answer: PendingAnswer<'_>,
) -> Result<Recorded, ProxyFailure> {
    let PendingAnswer {
        transcript: said,
        server_calls: own,
        ..
    } = answer;
    let options = AnswerOptions {
        call: answer.sent.map(|sent| &sent.call),
        own,
        ..AnswerOptions::default()
    };
    let store = |error: EngineError| ProxyFailure::from_error("store", &error);
    let Some(weighed) = answer.priced else {
        return ingested.record_with(said, options).await.map_err(store);
    };
    let usage = said.response.as_ref();
    let usage = usage.and_then(|info| info.usage.as_ref());
    let owner = ingested.chat.owner().clone();
    let books = LedgerWriter {
        store: app.engine().store().as_ref(),
        locks: app.ledger_locks(),
        owner: &owner,
        at_ms: app.engine().now_ms(),
    };
    let called = LedgerCall {
        response: ingested.response_id(said, own),
        model: &weighed.account.2,
        policy: &told.current_outcome().policy.unwrap_or_default(),
        usage,
        rewritten: answer.sent.is_some(),
        booked: weighed.record_call(app.cost_accounts(), answer.sent, answer.round),
        reported: ingested.answer_cost(said),
    };
    let entry = called.ledger_entry(books.at_ms);
    let conversation = ingested.chat.id().clone();
    let turn = books.locks.lock_key(&(&owner, &conversation)).await;
    let mut attempts = MAX_ATTEMPTS;
    let recorded: Recorded = loop {
        attempts -= 1;
        let mut options = options.clone();
        match books.prepare_entries(&conversation, &entry).await {
            Ok(entries) if attempts > 0 => options.entries = entries,
            Ok(_) => count_not_booked(
                told,
                &ProxyFailure::new("ledger", "others write the same sum"),
            ),
            Err(miss) => count_not_booked(told, &miss),
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
        ingested
            .chat
            .learn_from_usage(&weighed.counting, usage)
            .await;
    }
    if !recorded.replayed
        && let Err(miss) = books.add_to_day(&entry).await
    {
        count_not_booked(told, &miss);
    }
    Ok(recorded)
}
