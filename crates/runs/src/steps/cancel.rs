//! Cancelling a run by its id, whoever drives it.
//!
//! A request is an entry beside the tree, so that it reaches a driver in any process: a driver looks for one every 2 s, and whoever
//! resumes a run looks before its first step. A run that nobody drives is ended at once. The request of a run that ends by itself
//! meanwhile may stay stored; nobody reads it. Not here: aborting a run that this program
//! drives ([`RunHandle::abort`](crate::RunHandle::abort)).

use std::time::Duration;

use contexture_engine::{Conversation, EngineError};
use contexture_ir::RunId;
use contexture_store::ExpectedVersion;
use serde::{Deserialize, Serialize};

use crate::error::RunError;
use crate::execution::json_bytes;
use crate::record::{RunEntry, RunStatus, StoredRunEnd, cancel_key, load_value, put_value};
use crate::steps::abandon::{abandon_run, close_entry};
use crate::tasks::Abort;

/// Time between two looks for a request.
const LOOK_EVERY: Duration = Duration::from_secs(2);

/// A request to cancel a run, as it is stored.
#[derive(Debug, Serialize, Deserialize)]
struct CancelRequest {
    reason: String,
}

/// Cancels an open run, whoever drives it. One that nobody drives, such as one that waits for a decision, is ended with its open
/// child runs. One that is driven, in this process or another, is asked to end: its driver cuts off what is in progress within
/// 2 s, and keeps what is finished. In both cases it ends as aborted, for this reason.
///
/// Returns the entry of the run, which is still open if its driver was asked. If that process turns out to be dead, the run ends
/// once it is taken up, or once it is cancelled again. A run that had ended before stays as it is.
///
/// ```
/// # use std::sync::Arc;
/// # use contexture_models::ScriptedModel;
/// use contexture_runs::{Agent, Run, RunStatus, cancel_run};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let model = Arc::new(ScriptedModel::with_texts(contexture_wire::Format::OpenAiChat, ["Sunny."]));
/// # let agent = Agent::new("guide", model, contexture_compile::Target::openai_chat("gpt-4o"));
/// # let chat = contexture_engine::Engine::in_memory().conversation("trip").owner("ada").open().await?;
/// let run = Run::begin(&chat, &agent, []).await?;
/// let id = run.id();
/// drop(run);
/// let entry = cancel_run(&chat, id, "the user has left").await?;
/// assert_eq!(entry.status, RunStatus::Aborted);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// [`RunError::ItemMismatch`] if the conversation has no such run; an error of the store.
pub async fn cancel_run(
    chat: &Conversation,
    run: RunId,
    reason: &str,
) -> Result<RunEntry, RunError> {
    if let Some(entry) = RunEntry::load(chat, run).await?
        && entry.status.is_open()
    {
        // First: whoever takes the run up from here on sees it.
        let request = CancelRequest {
            reason: reason.to_owned(),
        };
        put_request(chat, run, Some(json_bytes(&request))).await?;
    }
    match abandon_run(chat, run, reason).await {
        Err(busy @ RunError::Busy { .. }) => {
            let entry = RunEntry::load(chat, run).await?.ok_or(busy)?;
            match entry.status {
                // Behind one that is driven. Whoever begins it at this moment finds the request.
                RunStatus::Queued => {
                    let now = chat.engine().now_ms();
                    let ended = StoredRunEnd::aborted_before_start(now, reason);
                    Ok(close_entry(chat, run, entry, ended).await?)
                }
                _ => Ok(entry),
            }
        }
        Ok(entry) => {
            clear_request(chat, run).await;
            Ok(entry)
        }
        Err(error) => Err(error),
    }
}

/// Waits for a request to cancel the run, and aborts it. A store that fails meanwhile is asked again.
pub(crate) async fn watch_for_cancel(chat: Conversation, run: RunId, abort: Abort) {
    loop {
        tokio::time::sleep(LOOK_EVERY).await;
        match abort_if_requested(&chat, run, &abort).await {
            Ok(false) => {}
            Ok(true) => return,
            Err(error) => {
                tracing::warn!(%run, %error, "it is not known whether the run is to be cancelled");
            }
        }
    }
}

/// Aborts a run if that is requested. Returns whether it is.
pub(crate) async fn abort_if_requested(
    chat: &Conversation,
    run: RunId,
    abort: &Abort,
) -> Result<bool, EngineError> {
    let Some(reason) = cancel_reason(chat, run).await? else {
        return Ok(false);
    };
    abort.abort(reason);
    Ok(true)
}

/// Returns the reason for which somebody asked to cancel the run; `None` if nobody did.
pub(crate) async fn cancel_reason(
    chat: &Conversation,
    run: RunId,
) -> Result<Option<String>, EngineError> {
    let Some(value) = load_value(chat, &cancel_key(run)).await? else {
        return Ok(None);
    };
    let request: Option<CancelRequest> = serde_json::from_slice(&value).ok();
    let reason = request.map_or_else(|| "it was cancelled".to_owned(), |request| request.reason);
    Ok(Some(reason))
}

/// Removes the request of a run that has ended. If that fails, an entry that nobody reads stays.
pub(crate) async fn clear_request(chat: &Conversation, run: RunId) {
    if let Err(error) = put_request(chat, run, None).await {
        tracing::warn!(%run, %error, "the request to cancel a run that has ended stays stored");
    }
}

async fn put_request(
    chat: &Conversation,
    run: RunId,
    value: Option<Vec<u8>>,
) -> Result<(), EngineError> {
    put_value(chat, cancel_key(run), value, ExpectedVersion::Any).await
}
