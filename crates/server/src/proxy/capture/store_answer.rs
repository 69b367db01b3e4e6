//! Stores an answer behind its request, with the row of its exchange.
//!
//! Not here: the rows of exchanges without an answer (`state::call_log`), who waits for the answer (`task`, `server_tools`).

use contexture::EngineError;
use contexture::engine::{AnswerOptions, Ingested, InterceptedCall, Recorded};
use contexture::ir::{NodeId, Transcript};

use crate::proxy::failure::ProxyFailure;
use crate::proxy::rewrite::{PricedRequest, RewrittenRequest, ToolRound};
use crate::state::App;
use crate::state::call_log::CallRecorder;

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

/// Stores an answer behind its request, with the row of its exchange.
///
/// # Errors
/// The answer is not stored; its row is stored all the same, later.
pub(crate) async fn store_answer(
    app: &App,
    call: &CallRecorder,
    ingested: &mut Ingested,
    answer: PendingAnswer<'_>,
) -> Result<Recorded, ProxyFailure> {
    let PendingAnswer {
        transcript,
        server_calls,
        ..
    } = answer;
    let cost = ingested.answer_cost(transcript);
    if let Some(priced) = answer.priced {
        let booked = priced.record_call(app.cost_accounts(), answer.sent, answer.round);
        call.set_prediction(&booked);
        call.set_band(answer.sent.map(|sent| sent.booked_band(&booked)).as_ref());
    }
    call.set_answer(transcript, cost.as_ref());
    let options = AnswerOptions {
        call: answer.sent.map(|sent| &sent.call),
        intercepted: server_calls,
        exchange: call.current_row(),
        body: call.take_body(),
        ..AnswerOptions::default()
    };
    let head = ingested.head;
    let recorded = ingested.record_with(transcript, options).await;
    let recorded = recorded.map_err(|error| store_failure(&error))?;
    call.set_stored();
    begin_summary(ingested, head, &answer, &recorded);
    let usage = transcript.response.as_ref();
    let usage = usage.and_then(|info| info.usage.as_ref());
    // Counts of a rewritten request are learned from by the engine, which compiled it.
    if let (Some(priced), None) = (answer.priced, answer.sent) {
        ingested
            .chat
            .learn_from_usage(&priced.counting, usage)
            .await;
    }
    Ok(recorded)
}

/// Begins a summary behind an answer that the client goes on from, where one is wanted: nobody waits for it.
fn begin_summary(
    ingested: &Ingested,
    head: Option<NodeId>,
    answer: &PendingAnswer<'_>,
    recorded: &Recorded,
) {
    let order = answer.priced.and_then(|priced| priced.summary.as_ref());
    // With calls of server tools in it, the model goes on with another request.
    let goes_on = answer.server_calls.is_empty() && !recorded.replayed;
    let is_here = goes_on && !recorded.on_sibling_branch;
    if let (Some(order), Some(head)) = (order.filter(|_| is_here), head)
        && let Err(error) = order.begin(&ingested.chat, head, answer.sent)
    {
        tracing::warn!(%error, "no summary was begun");
    }
}

fn store_failure(error: &EngineError) -> ProxyFailure {
    ProxyFailure::from_error("store", error)
}
