//! Listening to a request and its answer, beside their way: both are stored, or it is told why not.
//!
//! One task a request. It is waited for at the server's end; a panic in it is a miss like any other.

use axum::http::{HeaderMap, StatusCode};
use contexture::ir::Transcript;
use contexture::{Ingested, Matched};
use tokio::sync::oneshot;

use crate::app::App;
use crate::documents::RequestDocument;
use crate::proxy::answer;
use crate::proxy::matching::{self, Asked, Miss, Stored};
use crate::proxy::outcome::Telling;
use crate::proxy::tee::Heard;

/// An answer that began.
pub(crate) struct Begun {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) heard: Heard,
}

/// Where it is told that the answer begins. Dropped, there is none.
pub(crate) type Answering = oneshot::Sender<Begun>;

/// Stores the request now, and the answer once it has come.
pub(crate) fn listen_in(app: &App, asked: Asked, telling: Telling) -> Answering {
    let (answering, begun) = oneshot::channel();
    let engine = app.engine().clone();
    let told = telling.clone();
    let work = tokio::spawn(async move {
        let format = asked.call.format;
        let heard = async {
            let begun: Begun = begun.await.ok()?;
            if !begun.status.is_success() {
                return None;
            }
            Some(answer::hear(format, &begun.headers, begun.heard).await)
        };
        let stored = async {
            let stored = matching::ingest(&engine, asked).await;
            match &stored {
                Ok(stored) => told.tell(|document| document.stored(&stored.ingested)),
                Err(miss) => missed(&told, miss),
            }
            stored.ok()
        };
        let (stored, heard) = tokio::join!(stored, heard);
        match (stored, heard) {
            (Some(stored), Some(Ok(Some(answer)))) => record(&told, stored, answer).await,
            (_, Some(Err(miss))) => missed(&told, &miss),
            (Some(stored), None) => withdraw(&told, &stored.ingested).await,
            // Nothing was asked that could be stored, or nothing came that could.
            _ => told.tell(|document| document.done = true),
        }
    });
    app.tasks().spawn(async move {
        if let Err(error) = work.await {
            missed(&telling, &Miss::of("fault", &error));
        }
    });
    answering
}

async fn record(told: &Telling, stored: Stored, mut answer: Transcript) {
    // Not every answer says whose it is.
    answer.model = answer.model.or(stored.model);
    let ingested = stored.ingested;
    match ingested.record(&answer).await {
        Ok(recorded) => told.tell(|document| {
            document.answered(&recorded, ingested.cost(&answer));
            document.done = true;
        }),
        Err(error) => missed(told, &Miss::of("store", &error)),
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

fn missed(told: &Telling, miss: &Miss) {
    tracing::warn!(
        what = miss.what,
        why = miss.why,
        "a request was passed on, but is not stored"
    );
    metrics::counter!("contexture_proxy_missed_total", "what" => miss.what).increment(1);
    told.tell(|document| {
        document.failed = Some(miss.what.to_owned());
        document.why = Some(miss.why.clone());
        document.done = true;
    });
}
