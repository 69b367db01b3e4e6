//! The capture task of a request: stores the request and its answer beside their way, or records why not.
//!
//! There is one task per request. The server waits for all of them when it shuts down.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use contexture::engine::Ingested;
use contexture::ir::Transcript;
use contexture::{Format, Owner};
use tokio::sync::oneshot;

use crate::proxy::capture::ingest::{self, CaptureRequest, IngestedRequest};
use crate::proxy::capture::parse_answer::{self, ParsedAnswer};
use crate::proxy::capture::store_answer::{PendingAnswer, store_answer};
use crate::proxy::capture::tee::CapturedBody;
use crate::proxy::failure::ProxyFailure;
use crate::proxy::failure::{count_failed_open, count_not_stored, count_wait};
use crate::proxy::refusal::ProxyRefusal;
use crate::proxy::rewrite::{self, PricedRequest, RefusedRequest, RewrittenRequest, ToolRound};
use crate::proxy::server_tools::{ToolLoop, ToolLoopStart};
use crate::state::App;
use crate::state::call_log::CallRecorder;
use crate::state::live_feed::FeedTarget;
use crate::state::request_outcomes::OutcomeRecorder;
use crate::state::spending::check_conversation;
use contexture_api::RequestDocument;
use contexture_api::policy::PolicyConfig;

/// How an answer begins, as the request's side tells its capture task.
pub(crate) enum AnswerStart {
    /// The client gets it as it comes.
    Passthrough {
        status: StatusCode,
        headers: HeaderMap,
        captured: CapturedBody,
        /// The request that was sent in the place of the client's, if one was.
        sent: Option<Box<RewrittenRequest>>,
    },
    /// It may call server tools, so the task itself answers the client.
    ToolLoop {
        exchange: Box<ToolLoopStart>,
        sent: Box<RewrittenRequest>,
    },
}

/// What the capture of an answer gave.
enum CapturedAnswer {
    /// The answer; `None` if nothing came that could be stored.
    Passthrough(
        Result<Option<ParsedAnswer>, ProxyFailure>,
        Option<Box<RewrittenRequest>>,
    ),
    ToolLoop(Box<ToolLoopStart>, Box<RewrittenRequest>),
}

/// Sends the start of the answer to the task. Dropped, there is no answer.
pub(crate) type AnswerSender = oneshot::Sender<AnswerStart>;

/// The request to send in the place of the client's; `None`: the client's own. Or why none may be sent.
pub(crate) type RewriteReply = Result<Option<Box<RewrittenRequest>>, ProxyRefusal>;

/// Receives what to send.
pub(crate) type RewriteReceiver = oneshot::Receiver<RewriteReply>;

/// A request that was refused as too long, and where the shorter one goes that is sent in its place.
#[derive(Debug)]
pub(crate) struct ShorterRequest {
    pub(crate) refused: RefusedRequest,
    pub(crate) reply: oneshot::Sender<Option<Box<RewrittenRequest>>>,
}

/// Asks the task for a shorter request. Dropped, none is needed.
pub(crate) type ShorterSender = oneshot::Sender<ShorterRequest>;

/// What the request's side holds of its capture task.
pub(crate) struct CaptureChannels {
    pub(crate) answer: AnswerSender,
    pub(crate) rewrite: RewriteReceiver,
    pub(crate) shorter: ShorterSender,
}

/// Starts the capture task of a request: it stores the request now, and the answer once it has come. With a policy it first
/// sends back the request to use instead.
pub(crate) fn capture(
    app: &App,
    request: CaptureRequest,
    policy: Option<PolicyConfig>,
    outcome: OutcomeRecorder,
    call: CallRecorder,
) -> CaptureChannels {
    let (answer_sender, answer_start) = oneshot::channel();
    let (rewrite_sender, rewrite) = oneshot::channel();
    let (shorter_sender, shorter) = oneshot::channel();
    let task = CaptureTask {
        app: app.clone(),
        outcome: outcome.clone(),
        call,
    };
    // On a task of its own: the client may leave before everything is stored.
    let work = tokio::spawn(task.run(request, policy, answer_start, (rewrite_sender, shorter)));
    // A second task watches the first: a panic in it is recorded like any other failure, and the server waits for both
    // when it shuts down.
    app.background_tasks().spawn(async move {
        if work.await.is_err() {
            count_not_stored(&outcome, &ProxyFailure::from_panic());
        }
    });
    CaptureChannels {
        answer: answer_sender,
        rewrite,
        shorter: shorter_sender,
    }
}

/// The background work for one captured request.
struct CaptureTask {
    app: App,
    outcome: OutcomeRecorder,
    call: CallRecorder,
}

impl CaptureTask {
    /// Stores the request while the answer comes, then the answer behind it.
    async fn run(
        self,
        request: CaptureRequest,
        policy: Option<PolicyConfig>,
        answer_start: oneshot::Receiver<AnswerStart>,
        (rewrite_sender, shorter): (
            oneshot::Sender<RewriteReply>,
            oneshot::Receiver<ShorterRequest>,
        ),
    ) {
        let Self { app, outcome, call } = &self;
        let (format, owner) = (request.endpoint.format, request.owner.clone());
        // Kept until everything is stored: requests that hold the answer wait for that.
        let exchange = request.exchange.clone();
        // Boxed: what is done, or never begins, takes no memory while the answer comes.
        let stored = Box::pin(ingest_request(
            app,
            request,
            policy,
            (outcome, call),
            (rewrite_sender, shorter),
        ));
        let answer = self.capture_answer(format, owner, answer_start);
        // Both at once: the answer may begin before the request is stored, and must not be lost by then.
        let (stored, answer) = tokio::join!(stored, answer);
        match (stored, answer) {
            (Some(stored), Some(CapturedAnswer::Passthrough(Ok(Some(answer)), sent))) => {
                exchange.wait_while_client_reads(READING_TIME).await;
                let ParsedAnswer {
                    transcript,
                    is_heavy,
                } = answer;
                // Owned, as the pool's work may outlive this task.
                let recorders = (outcome.clone(), call.clone());
                let owner = stored.stored.ingested.chat.owner().clone();
                let record = record_answer(app.clone(), recorders, stored, transcript, sent);
                let record = Box::pin(record);
                match is_heavy {
                    true => app.work_pool().run(&owner, |_| record).await,
                    false => record.await,
                }
            }
            (Some(stored), Some(CapturedAnswer::ToolLoop(exchange, sent))) => {
                let recorders = (outcome, call);
                Box::pin(run_tool_loop(app, recorders, *stored, *exchange, *sent)).await;
            }
            (_, Some(CapturedAnswer::Passthrough(Err(failure), _))) => {
                count_not_stored(outcome, &failure);
            }
            // Nothing came that could be stored: the provider refused, or the client left before it answered.
            (Some(stored), None | Some(CapturedAnswer::Passthrough(Ok(None), _))) => {
                call.forget_conversation();
                Box::pin(withdraw_unanswered(outcome, &stored.stored.ingested)).await;
            }
            // It has no place to be stored, but what it cost is known.
            (None, Some(CapturedAnswer::Passthrough(Ok(Some(answer)), _))) => {
                let answer = answer.transcript;
                call.set_answer(&answer, app.engine().answer_cost(&answer).as_ref());
                outcome.update_outcome(|document| document.done = true);
            }
            // The request itself could not be stored, so its answer has no place; why is recorded already.
            _ => outcome.update_outcome(|document| document.done = true),
        }
    }

    /// Reads the copy of the answer, and publishes its events to the live feed. `None` if there is no answer to store.
    async fn capture_answer(
        &self,
        format: Format,
        owner: Owner,
        answer_start: oneshot::Receiver<AnswerStart>,
    ) -> Option<CapturedAnswer> {
        Some(match answer_start.await.ok()? {
            // A provider's error is no answer of a model.
            AnswerStart::Passthrough { status, .. } if !status.is_success() => return None,
            AnswerStart::Passthrough {
                headers,
                captured,
                sent,
                ..
            } => {
                let mut writer = self.app.live_feed().new_writer(&owner);
                let publish = |events| {
                    writer.publish(events, || feed_target(&self.outcome.current_outcome()))
                };
                let answer = parse_answer::capture_answer(
                    (&self.app, &owner),
                    format,
                    &headers,
                    captured,
                    (&self.outcome, &self.call),
                    publish,
                )
                .await;
                CapturedAnswer::Passthrough(answer, sent)
            }
            AnswerStart::ToolLoop { exchange, sent } => CapturedAnswer::ToolLoop(exchange, sent),
        })
    }
}

/// Returns the branch that an answer is published on; `None` until its request is stored.
fn feed_target(document: &RequestDocument) -> Option<FeedTarget> {
    document.matched.as_ref()?;
    Some(FeedTarget {
        request: document.id.clone(),
        conversation: document.conversation.as_ref()?.parse().ok()?,
        branch: document.branch.clone()?,
    })
}

/// A request that is stored, and priced if there is a policy.
struct CapturedRequest {
    stored: IngestedRequest,
    priced: Option<PricedRequest>,
    /// Why it may not be sent, if it may not.
    refusal: Option<ProxyRefusal>,
}

/// Longest time that storing a request leaves the CPU to its forwarding, which the client waits for.
const MAX_HEAD_START: Duration = Duration::from_millis(3);
/// Time after the delivery of an answer in which nothing is stored for it, because kernels run what a thread wakes on its
/// own processor: storing at once would come before the client's reading, even on an idle machine.
const READING_TIME: Duration = Duration::from_millis(1);

/// Stores a request, and sends back what to use in its place; a large one's turn is waited for. Its body and its memory are
/// released at the end.
async fn ingest_request(
    app: &App,
    request: CaptureRequest,
    policy: Option<PolicyConfig>,
    (outcome, call): (&OutcomeRecorder, &CallRecorder),
    (rewrite_sender, shorter): (
        oneshot::Sender<RewriteReply>,
        oneshot::Receiver<ShorterRequest>,
    ),
) -> Option<Box<CapturedRequest>> {
    if !request.is_awaited {
        let client_reads = request.exchange.wait_while_client_reads(READING_TIME);
        let _ = tokio::time::timeout(MAX_HEAD_START, client_reads).await;
    }
    let owner = request.owner.clone();
    // Pools of their own: what is forwarded never waits for storing, and a small request never for a large one.
    let pool = match (request.body.is_heavy(), request.is_awaited) {
        (true, _) => app.work_pool(),
        (false, true) => app.rewrite_pool(),
        (false, false) => app.capture_pool(),
    };
    let recorders = (outcome.clone(), call.clone());
    let app_of_work = app.clone();
    // Made when its turn comes: until then a request takes no more memory than its body.
    let work =
        async move { Box::pin(store_and_rewrite(app_of_work, request, policy, recorders)).await };
    let mut captured = pool.run(&owner, |_| work).await?;
    let priced = captured.priced.as_mut();
    let rewritten = priced.and_then(|priced| priced.rewritten.take());
    let reply = captured.refusal.take().map_or(Ok(rewritten), Err);
    // A receiver that timed out has sent the request as it came.
    let _ = rewrite_sender.send(reply);
    if captured.priced.is_some() {
        // The answer of most requests begins at once, and no shorter one is asked for.
        if let Ok(request) = shorter.await {
            // Owned, as the pool's work may outlive this task.
            let work = shorten_request(app.clone(), captured, request, outcome.clone());
            captured = pool.run(&owner, |_| Box::pin(work)).await;
        }
    }
    if let Some(priced) = captured.priced.as_mut() {
        // What it would have been shortened by takes memory, and the answer has begun.
        priced.own = None;
    }
    Some(captured)
}

/// Makes and sends back the shorter request in the place of one that was refused as too long.
async fn shorten_request(
    app: App,
    mut captured: Box<CapturedRequest>,
    request: ShorterRequest,
    outcome: OutcomeRecorder,
) -> Box<CapturedRequest> {
    let CapturedRequest { stored, priced, .. } = &mut *captured;
    let Some(priced) = priced.as_mut() else {
        return captured;
    };
    let ingested = &mut stored.ingested;
    let owner = ingested.chat.owner().clone();
    let _permit = app.stored_work().acquire_permit(Some(&owner)).await;
    let shorter = priced.shorten(app.cost_accounts(), ingested, request.refused);
    let shorter = shorter.await.unwrap_or_else(|failure| {
        count_failed_open(&outcome, &failure);
        None
    });
    // A receiver that is gone has left with its client.
    let _ = request.reply.send(shorter);
    captured
}

/// Stores a request, and prices and rewrites it if there is a policy; `None` if it was not stored.
async fn store_and_rewrite(
    app: App,
    mut request: CaptureRequest,
    policy: Option<PolicyConfig>,
    (outcome, call): (OutcomeRecorder, CallRecorder),
) -> Option<Box<CapturedRequest>> {
    let (mut stored, parsed) = match ingest::store_request(&mut request).await {
        Ok(stored) => stored,
        Err(failure) => {
            count_not_stored(&outcome, &failure);
            return None;
        }
    };
    count_wait(&outcome, &stored.ingested);
    call.set_model(stored.model.as_deref());
    note_body(&request, &stored, &call).await;
    let mut priced = None;
    let spent =
        check_conversation(&app, &request.owner, stored.ingested.chat.id(), call.id()).await;
    let refusal = spent.err().map(ProxyRefusal::from);
    // What may not be sent is not rewritten.
    if let Some(policy) = policy.filter(|_| refusal.is_none()) {
        let format = request.endpoint.format;
        let accounts = app.cost_accounts();
        // Compiling reads the whole conversation, however short the request is.
        let _permit = app.stored_work().acquire_permit(Some(&request.owner)).await;
        let rewriting = Box::pin(rewrite::rewrite_request(
            accounts,
            policy,
            format,
            &mut stored,
            parsed,
            rewrite::HostTraits {
                refuses_overflow: request.refuses_overflow,
                summary: request.summary.take(),
            },
        ));
        // Boxed: most requests have no policy, and while they wait for the store they take no memory for one.
        match rewriting.await {
            Ok(done) => priced = done,
            Err(failure) => count_failed_open(&outcome, &failure),
        }
    }
    outcome.update_outcome(|document| {
        document.set_ingested(&stored.ingested);
        document.predicted = priced.as_ref().map(|priced| priced.predicted.into());
    });
    Some(Box::new(CapturedRequest {
        stored,
        priced,
        refusal,
    }))
}

/// Notes the body of a request for its row, and encodes it where bodies are kept.
async fn note_body(request: &CaptureRequest, stored: &IngestedRequest, call: &CallRecorder) {
    // It was read before: to be stored.
    let came = request.body.read_text().await.unwrap_or_default();
    call.set_request(stored.ingested.chat.id(), came.as_bytes());
    let without_secrets = request.redacted.as_deref().map(str::from_utf8);
    let kept = without_secrets.map_or(came, Result::unwrap_or_default);
    match stored.ingested.encode_body(call.id().0, kept).await {
        Ok(body) => call.set_body(body),
        // It is shown as it can be made again of its items.
        Err(error) => tracing::warn!(%error, "the body of a request is not kept"),
    }
}

/// Stores the answer of a request that was forwarded, and records what it used.
async fn record_answer(
    app: App,
    (outcome, call): (OutcomeRecorder, CallRecorder),
    captured: Box<CapturedRequest>,
    mut answer: Transcript,
    sent: Option<Box<RewrittenRequest>>,
) {
    let CapturedRequest { stored, priced, .. } = *captured;
    // Not every provider names the model in its answer.
    answer.model = answer.model.or(stored.model);
    let mut ingested = stored.ingested;
    let pending = PendingAnswer {
        priced: priced.as_ref(),
        sent: sent.as_deref(),
        round: ToolRound::First,
        transcript: &answer,
        server_calls: &[],
    };
    let recorded = match store_answer(&app, &call, &mut ingested, pending).await {
        Ok(recorded) => recorded,
        Err(failure) => return count_not_stored(&outcome, &failure),
    };
    outcome.update_outcome(|document| {
        document.set_answer(&recorded, ingested.answer_cost(&answer));
        document.done = true;
    });
}

/// Answers the client through the tool loop, and stores each of its rounds.
async fn run_tool_loop(
    app: &App,
    (outcome, call): (&OutcomeRecorder, &CallRecorder),
    captured: CapturedRequest,
    exchange: ToolLoopStart,
    mut sent: RewrittenRequest,
) {
    let CapturedRequest { stored, priced, .. } = captured;
    let (Some(priced), Some(plan)) = (priced, sent.plan.take()) else {
        return outcome.update_outcome(|document| document.done = true);
    };
    let mut writer = app.live_feed().new_writer(stored.ingested.chat.owner());
    let tool_loop = ToolLoop {
        app,
        outcome,
        call: call.clone(),
        ingested: stored.ingested,
        model: stored.model,
        priced,
        plan: *plan,
        publish: &mut |events| writer.publish(events, || feed_target(&outcome.current_outcome())),
    };
    if let Some(unanswered) = tool_loop.run_rounds(exchange, sent).await {
        call.forget_conversation();
        withdraw_unanswered(outcome, &unanswered).await;
    }
}

/// Takes back a request that no model answered. Otherwise the client's retries would each leave something behind.
async fn withdraw_unanswered(outcome: &OutcomeRecorder, unanswered: &Ingested) {
    match unanswered.withdraw().await {
        Ok(withdrawal) => outcome.update_outcome(|document| {
            document.set_withdrawal(withdrawal);
            document.done = true;
        }),
        Err(error) => count_not_stored(outcome, &ProxyFailure::from_error("store", &error)),
    }
}
