//! Listening to a request and its answer, beside their way: both are stored, or it is told why not.
//!
//! One task a request. It is waited for at the server's end; a panic in it is a miss like any other.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use contexture::ir::Transcript;
use contexture::{Ingested, MatchKind};
use tokio::sync::oneshot;

use crate::config::PolicyConfig;
use crate::proxy::capture::ingest::{self, CaptureRequest, IngestedRequest};
use crate::proxy::capture::parse_answer;
use crate::proxy::capture::store_answer::{PendingAnswer, store_answer};
use crate::proxy::capture::tee::CapturedBody;
use crate::proxy::failure::ProxyFailure;
use crate::proxy::failure::{count_failed_open, count_not_stored};
use crate::proxy::rewrite::{self, PricedRequest, RewrittenRequest, ToolRound};
use crate::proxy::server_tools::{ToolLoop, ToolLoopStart};
use crate::state::App;
use crate::state::live_feed::FeedTarget;
use crate::state::request_outcomes::OutcomeRecorder;
use contexture_api::RequestDocument;

/// An answer that began.
pub(crate) enum AnswerStart {
    /// It is passed on as it comes.
    Passthrough {
        status: StatusCode,
        headers: HeaderMap,
        heard: CapturedBody,
        /// What was sent in the place of the request.
        sent: Option<Box<RewrittenRequest>>,
    },
    /// It may call tools of ours.
    ToolLoop {
        exchange: Box<ToolLoopStart>,
        sent: Box<RewrittenRequest>,
    },
}

/// What came of an answer.
enum CapturedAnswer {
    /// The answer, if it could be kept.
    Passthrough(
        Result<Option<Transcript>, ProxyFailure>,
        Option<Box<RewrittenRequest>>,
    ),
    ToolLoop(Box<ToolLoopStart>, Box<RewrittenRequest>),
}

/// Where it is told that the answer begins. Dropped, there is none.
pub(crate) type AnswerSender = oneshot::Sender<AnswerStart>;

/// Where it is told what to send in the place of the request.
pub(crate) type RewriteReceiver = oneshot::Receiver<Option<Box<RewrittenRequest>>>;

/// Stores the request now, and the answer once it has come. With a policy it is said beforehand what to send.
pub(crate) fn capture(
    app: &App,
    asked: CaptureRequest,
    policy: Option<PolicyConfig>,
    telling: OutcomeRecorder,
) -> (AnswerSender, RewriteReceiver) {
    let (answering, begun) = oneshot::channel();
    let (rewritten, rewriting) = oneshot::channel();
    let shared = app.clone();
    let told = telling.clone();
    let work = tokio::spawn(async move {
        let (format, owner) = (asked.endpoint.format, asked.owner.clone());
        let heard = async {
            Some(match begun.await.ok()? {
                AnswerStart::Passthrough { status, .. } if !status.is_success() => return None,
                AnswerStart::Passthrough {
                    headers,
                    heard,
                    sent,
                    ..
                } => {
                    let mut teller = shared.live_feed().new_writer(&owner);
                    let tell =
                        |events| teller.publish(events, || feed_target(&told.current_outcome()));
                    let heard = parse_answer::capture_answer(format, &headers, heard, tell).await;
                    CapturedAnswer::Passthrough(heard, sent)
                }
                AnswerStart::ToolLoop { exchange, sent } => {
                    CapturedAnswer::ToolLoop(exchange, sent)
                }
            })
        };
        // Boxed: what is done, or never begins, takes no memory while the answer comes.
        let stored = Box::pin(ingest_request(&shared, asked, policy, &told, rewritten));
        let (stored, came) = tokio::join!(stored, heard);
        match (stored, came) {
            (Some(taken), Some(CapturedAnswer::Passthrough(Ok(Some(answer)), sent))) => {
                Box::pin(record_answer(
                    &shared,
                    &told,
                    *taken,
                    answer,
                    sent.as_deref(),
                ))
                .await;
            }
            (Some(taken), Some(CapturedAnswer::ToolLoop(exchange, sent))) => {
                Box::pin(run_tool_loop(&shared, &told, *taken, *exchange, *sent)).await;
            }
            (_, Some(CapturedAnswer::Passthrough(Err(miss), _))) => count_not_stored(&told, &miss),
            // Nothing came that could be stored.
            (Some(taken), None | Some(CapturedAnswer::Passthrough(Ok(None), _))) => {
                Box::pin(withdraw_unanswered(&told, &taken.stored.ingested)).await;
            }
            // Nothing was asked that could be.
            _ => told.update_outcome(|document| document.done = true),
        }
    });
    app.background_tasks().spawn(async move {
        if work.await.is_err() {
            count_not_stored(&telling, &ProxyFailure::from_panic());
        }
    });
    (answering, rewriting)
}

/// Where an answer belongs, once its request is stored.
fn feed_target(document: &RequestDocument) -> Option<FeedTarget> {
    document.matched.as_ref()?;
    Some(FeedTarget {
        request: document.id.clone(),
        conversation: document.conversation.as_ref()?.parse().ok()?,
        branch: document.branch.clone()?,
    })
}

/// A request that is stored, and looked at if there is a policy.
struct CapturedRequest {
    stored: IngestedRequest,
    priced: Option<PricedRequest>,
}

/// How long a request that is passed on has the machine for itself, before it is read.
const HEAD_START: Duration = Duration::from_millis(3);

/// Stores the request, and says what to send in its place. What came, and its room, are given back at the end.
async fn ingest_request(
    app: &App,
    mut asked: CaptureRequest,
    policy: Option<PolicyConfig>,
    told: &OutcomeRecorder,
    rewritten: oneshot::Sender<Option<Box<RewrittenRequest>>>,
) -> Option<Box<CapturedRequest>> {
    if policy.is_none() {
        tokio::time::sleep(HEAD_START).await;
    }
    let (mut stored, read) = match ingest::store_request(&mut asked).await {
        Ok(stored) => stored,
        Err(miss) => {
            count_not_stored(told, &miss);
            return None;
        }
    };
    let mut weighed = None;
    if let Some(policy) = policy {
        let format = asked.endpoint.format;
        match rewrite::rewrite_request(app.cost_accounts(), policy, format, &mut stored, read).await
        {
            Ok(done) => weighed = done,
            Err(miss) => count_failed_open(told, &miss),
        }
    }
    told.update_outcome(|document| {
        document.set_ingested(&stored.ingested);
        document.predicted = weighed.as_ref().map(|weighed| weighed.predicted.into());
    });
    let instead = weighed.as_mut().and_then(|one| one.rewritten.take());
    // Whoever waited too long has sent the request as it came.
    let _ = rewritten.send(instead);
    Some(Box::new(CapturedRequest {
        stored,
        priced: weighed,
    }))
}

async fn record_answer(
    app: &App,
    told: &OutcomeRecorder,
    taken: CapturedRequest,
    mut answer: Transcript,
    sent: Option<&RewrittenRequest>,
) {
    let CapturedRequest {
        stored,
        priced: weighed,
    } = taken;
    // Not every answer says whose it is.
    answer.model = answer.model.or(stored.model);
    let mut ingested = stored.ingested;
    let kept = PendingAnswer {
        priced: weighed.as_ref(),
        sent,
        round: ToolRound::First,
        transcript: &answer,
        server_calls: &[],
    };
    let recorded = match store_answer(app, told, &mut ingested, kept).await {
        Ok(recorded) => recorded,
        Err(miss) => return count_not_stored(told, &miss),
    };
    told.update_outcome(|document| {
        document.set_answer(&recorded, ingested.answer_cost(&answer));
        document.done = true;
    });
}

/// An answer that may call tools of ours.
async fn run_tool_loop(
    app: &App,
    told: &OutcomeRecorder,
    taken: CapturedRequest,
    exchange: ToolLoopStart,
    mut sent: RewrittenRequest,
) {
    let CapturedRequest {
        stored,
        priced: weighed,
    } = taken;
    let (Some(weighed), Some(recipe)) = (weighed, sent.plan.take()) else {
        return told.update_outcome(|document| document.done = true);
    };
    let mut teller = app.live_feed().new_writer(stored.ingested.chat.owner());
    let rounds = ToolLoop {
        app,
        outcome: told,
        ingested: stored.ingested,
        model: stored.model,
        priced: weighed,
        plan: *recipe,
        publish: &mut |events| teller.publish(events, || feed_target(&told.current_outcome())),
    };
    if let Some(unanswered) = rounds.run_rounds(exchange, sent).await {
        withdraw_unanswered(told, &unanswered).await;
    }
}

/// Forgets a conversation that began with this request, if nobody named it: the client asks again, and each try would
/// leave one behind. What belongs to a conversation that is there stays.
async fn withdraw_unanswered(told: &OutcomeRecorder, unanswered: &Ingested) {
    let chat = &unanswered.chat;
    if unanswered.matched == MatchKind::New {
        match chat
            .engine()
            .delete_conversation(chat.owner(), chat.id())
            .await
        {
            Ok(()) => told.update_outcome(RequestDocument::clear_conversation),
            Err(error) => {
                return count_not_stored(told, &ProxyFailure::from_error("store", &error));
            }
        }
    }
    told.update_outcome(|document| document.done = true);
}
