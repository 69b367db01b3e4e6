//! Stores an answer behind its request, with its entry in the ledger.
//!
//! Not here: what the ledger is (`ledger`), who waits for the answer (`task`, `server_tools`).

use contexture::EngineError;
use contexture::engine::{AnswerOptions, Ingested, InterceptedCall, Recorded};
use contexture::ir::Transcript;

use crate::proxy::failure::ProxyFailure;
use crate::proxy::failure::count_not_booked;
use crate::proxy::ledger::writer::{LedgerCall, LedgerWriter, MAX_ATTEMPTS};
use crate::proxy::rewrite::{PricedRequest, RewrittenRequest, ToolRound};
use contexture_api::LedgerEntryDocument;

use crate::state::App;
use crate::state::request_outcomes::OutcomeRecorder;

/// An answer to be stored.
#[derive(Clone, Copy)]
pub(crate) struct PendingAnswer<'a> {
    /// Under a policy: the priced request.
    pub(crate) priced: Option<&'a PricedRequest>,
    /// The request that was sent in the place of the client's.
    pub(crate) sent: Option<&'a RewrittenRequest>,
    pub(crate) round: ToolRound,
    pub(crate) transcript: &'a Transcript,
    /// The calls of server tools in it, with their outputs.
    pub(crate) server_calls: &'a [InterceptedCall],
}

/// Stores an answer behind its request, with its ledger entry if the request was priced. An entry that cannot be made does
/// not keep the answer from being stored.
///
/// # Errors
/// The answer is not stored.
pub(crate) async fn store_answer(
    app: &App,
    outcome: &OutcomeRecorder,
    ingested: &mut Ingested,
    answer: PendingAnswer<'_>,
) -> Result<Recorded, ProxyFailure> {
    let PendingAnswer {
        transcript,
        server_calls,
        ..
    } = answer;
    let options = AnswerOptions {
        call: answer.sent.map(|sent| &sent.call),
        intercepted: server_calls,
        ..AnswerOptions::default()
    };
    let Some(priced) = answer.priced else {
        let recorded = ingested.record_with(transcript, options).await;
        return recorded.map_err(|error| store_failure(&error));
    };
    let usage = transcript.response.as_ref();
    let usage = usage.and_then(|info| info.usage.as_ref());
    // Cloned, because `ingested` is changed while the ledger's writer is in use.
    let owner = ingested.chat.owner().clone();
    let ledger = LedgerWriter {
        store: app.engine().store().as_ref(),
        locks: app.ledger_locks(),
        owner: &owner,
        at_ms: app.engine().now_ms(),
    };
    let call = LedgerCall {
        response: ingested.response_id(transcript, server_calls),
        model: &priced.account.2,
        policy: &outcome.current_outcome().policy.unwrap_or_default(),
        usage,
        rewritten: answer.sent.is_some(),
        booked: priced.record_call(app.cost_accounts(), answer.sent, answer.round),
        reported: ingested.answer_cost(transcript),
    };
    let entry = call.ledger_entry(ledger.at_ms);
    let recorded =
        record_with_entry(outcome, &ledger, ingested, transcript, &options, &entry).await?;
    // Counts of a rewritten request are learned from by the engine, which compiled it.
    if answer.sent.is_none() {
        ingested
            .chat
            .learn_from_usage(&priced.counting, usage)
            .await;
    }
    // A replayed answer was stored before, and its day already has the call.
    if !recorded.replayed
        && let Err(failure) = ledger.add_to_day(&entry).await
    {
        count_not_booked(outcome, &failure);
    }
    Ok(recorded)
}

/// Stores an answer and its ledger entry in one append, so that neither exists without the other. Retried while others write
/// the same sum; after the last attempt the answer is stored alone.
async fn record_with_entry(
    outcome: &OutcomeRecorder,
    ledger: &LedgerWriter<'_>,
    ingested: &mut Ingested,
    transcript: &Transcript,
    options: &AnswerOptions<'_>,
    entry: &LedgerEntryDocument,
) -> Result<Recorded, ProxyFailure> {
    let conversation = ingested.chat.id().clone();
    // Writers of this process queue here; only those of other processes are left to conflict with.
    let _lock = ledger.locks.lock_key(&(ledger.owner, &conversation)).await;
    let mut attempts = MAX_ATTEMPTS;
    loop {
        attempts -= 1;
        let mut options = options.clone();
        match ledger.prepare_entries(&conversation, entry).await {
            Ok(entries) if attempts > 0 => options.entries = entries,
            Ok(_) => count_not_booked(
                outcome,
                &ProxyFailure::new("ledger", "others write the same sum"),
            ),
            Err(failure) => count_not_booked(outcome, &failure),
        }
        let has_entry = !options.entries.is_empty();
        match ingested.record_with(transcript, options).await {
            // The sum moved between reading and writing it.
            Err(error) if has_entry && error.is_stale_state() => {}
            Err(error) => return Err(store_failure(&error)),
            Ok(recorded) => return Ok(recorded),
        }
    }
}

fn store_failure(error: &EngineError) -> ProxyFailure {
    ProxyFailure::from_error("store", error)
}
