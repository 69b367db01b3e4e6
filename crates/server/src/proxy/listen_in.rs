//! Listening to a request and its answer, beside their way: both are stored, or it is told why not.
//!
//! One task a request. It is waited for at the server's end; a panic in it is a miss like any other.

use std::time::Duration;

use axum::http::{HeaderMap, StatusCode};
use contexture::ir::Transcript;
use contexture::{Ingested, Matched};
use tokio::sync::oneshot;

use crate::app::App;
use crate::config::PolicyConfig;
use crate::documents::RequestDocument;
use crate::live::Belongs;
use crate::proxy::answer;
use crate::proxy::booking::{Answer, keep};
use crate::proxy::failing::{fail_open, missed};
use crate::proxy::matching::{self, Asked, Miss, Stored};
use crate::proxy::outcome::Telling;
use crate::proxy::own::{Exchange, Rounds};
use crate::proxy::rewrite::{self, Rewritten, Round, Weighed};
use crate::proxy::tee::Heard;

/// An answer that began.
pub(crate) enum Begun {
    /// It is passed on as it comes.
    Heard {
        status: StatusCode,
        headers: HeaderMap,
        heard: Heard,
        /// What was sent in the place of the request.
        sent: Option<Box<Rewritten>>,
    },
    /// It may call tools of ours.
    Own {
        exchange: Box<Exchange>,
        sent: Box<Rewritten>,
    },
}

/// What came of an answer.
enum Came {
    /// The answer, if it could be kept.
    Answer(Result<Option<Transcript>, Miss>, Option<Box<Rewritten>>),
    Own(Box<Exchange>, Box<Rewritten>),
}

/// Where it is told that the answer begins. Dropped, there is none.
pub(crate) type Answering = oneshot::Sender<Begun>;

/// Where it is told what to send in the place of the request.
pub(crate) type Rewriting = oneshot::Receiver<Option<Box<Rewritten>>>;

/// Stores the request now, and the answer once it has come. With a policy it is said beforehand what to send.
pub(crate) fn listen_in(
    app: &App,
    asked: Asked,
    policy: Option<PolicyConfig>,
    telling: Telling,
) -> (Answering, Rewriting) {
    let (answering, begun) = oneshot::channel();
    let (rewritten, rewriting) = oneshot::channel();
    let shared = app.clone();
    let told = telling.clone();
    let work = tokio::spawn(async move {
        let (format, owner) = (asked.call.format, asked.owner.clone());
        let heard = async {
            Some(match begun.await.ok()? {
                Begun::Heard { status, .. } if !status.is_success() => return None,
                Begun::Heard {
                    headers,
                    heard,
                    sent,
                    ..
                } => {
                    let mut teller = shared.live().teller(&owner);
                    let tell = |events| teller.tell(events, || belongs(&told.now()));
                    let heard = answer::hear(format, &headers, heard, tell).await;
                    Came::Answer(heard, sent)
                }
                Begun::Own { exchange, sent } => Came::Own(exchange, sent),
            })
        };
        // Boxed: what is done, or never begins, takes no memory while the answer comes.
        let stored = Box::pin(take_in(&shared, asked, policy, &told, rewritten));
        let (stored, came) = tokio::join!(stored, heard);
        match (stored, came) {
            (Some(taken), Some(Came::Answer(Ok(Some(answer)), sent))) => {
                Box::pin(record(&shared, &told, *taken, answer, sent.as_deref())).await;
            }
            (Some(taken), Some(Came::Own(exchange, sent))) => {
                Box::pin(in_rounds(&shared, &told, *taken, *exchange, *sent)).await;
            }
            (_, Some(Came::Answer(Err(miss), _))) => missed(&told, &miss),
            // Nothing came that could be stored.
            (Some(taken), None | Some(Came::Answer(Ok(None), _))) => {
                Box::pin(withdraw(&told, &taken.stored.ingested)).await;
            }
            // Nothing was asked that could be.
            _ => told.tell(|document| document.done = true),
        }
    });
    app.tasks().spawn(async move {
        if work.await.is_err() {
            missed(&telling, &Miss::panicked());
        }
    });
    (answering, rewriting)
}

/// Where an answer belongs, once its request is stored.
fn belongs(document: &RequestDocument) -> Option<Belongs> {
    document.matched.as_ref()?;
    Some(Belongs {
        request: document.id.clone(),
        conversation: document.conversation.as_ref()?.parse().ok()?,
        branch: document.branch.clone()?,
    })
}

/// A request that is stored, and looked at if there is a policy.
struct TakenIn {
    stored: Stored,
    weighed: Option<Weighed>,
}

/// How long a request that is passed on has the machine for itself, before it is read.
const HEAD_START: Duration = Duration::from_millis(3);

/// Stores the request, and says what to send in its place. What came, and its room, are given back at the end.
async fn take_in(
    app: &App,
    mut asked: Asked,
    policy: Option<PolicyConfig>,
    told: &Telling,
    rewritten: oneshot::Sender<Option<Box<Rewritten>>>,
) -> Option<Box<TakenIn>> {
    if policy.is_none() {
        tokio::time::sleep(HEAD_START).await;
    }
    let (mut stored, read) = match matching::ingest(&mut asked).await {
        Ok(stored) => stored,
        Err(miss) => {
            missed(told, &miss);
            return None;
        }
    };
    let mut weighed = None;
    if let Some(policy) = policy {
        let format = asked.call.format;
        match rewrite::rewrite(app.accounts(), policy, format, &mut stored, read).await {
            Ok(done) => weighed = done,
            Err(miss) => fail_open(told, &miss),
        }
    }
    told.tell(|document| {
        document.stored(&stored.ingested);
        document.predicted = weighed.as_ref().map(|weighed| weighed.predicted.into());
    });
    let instead = weighed.as_mut().and_then(|one| one.rewritten.take());
    // Whoever waited too long has sent the request as it came.
    let _ = rewritten.send(instead);
    Some(Box::new(TakenIn { stored, weighed }))
}

async fn record(
    app: &App,
    told: &Telling,
    taken: TakenIn,
    mut answer: Transcript,
    sent: Option<&Rewritten>,
) {
    let TakenIn { stored, weighed } = taken;
    // Not every answer says whose it is.
    answer.model = answer.model.or(stored.model);
    let mut ingested = stored.ingested;
    let kept = Answer {
        weighed: weighed.as_ref(),
        sent,
        round: Round::First,
        said: &answer,
        own: &[],
    };
    let recorded = match keep(app, told, &mut ingested, kept).await {
        Ok(recorded) => recorded,
        Err(miss) => return missed(told, &miss),
    };
    told.tell(|document| {
        document.answered(&recorded, ingested.cost(&answer));
        document.done = true;
    });
}

/// An answer that may call tools of ours.
async fn in_rounds(
    app: &App,
    told: &Telling,
    taken: TakenIn,
    exchange: Exchange,
    mut sent: Rewritten,
) {
    let TakenIn { stored, weighed } = taken;
    let (Some(weighed), Some(recipe)) = (weighed, sent.own.take()) else {
        return told.tell(|document| document.done = true);
    };
    let mut teller = app.live().teller(stored.ingested.chat.owner());
    let rounds = Rounds {
        app,
        told,
        ingested: stored.ingested,
        model: stored.model,
        weighed,
        recipe: *recipe,
        tell: &mut |events| teller.tell(events, || belongs(&told.now())),
    };
    if let Some(unanswered) = rounds.answer(exchange, sent).await {
        withdraw(told, &unanswered).await;
    }
}

/// Forgets a conversation that began with this request, if nobody named it: the client asks again, and each try would
/// leave one behind. What belongs to a conversation that is there stays.
async fn withdraw(told: &Telling, unanswered: &Ingested) {
    let chat = &unanswered.chat;
    if unanswered.matched == Matched::New {
        match chat.engine().delete(chat.owner(), chat.id()).await {
            Ok(()) => told.tell(RequestDocument::withdrawn),
            Err(error) => return missed(told, &Miss::of("store", &error)),
        }
    }
    told.tell(|document| document.done = true);
}
