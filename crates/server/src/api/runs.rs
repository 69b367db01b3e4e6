//! Runs of agents: queued, listed, looked at, decided about and cancelled. They are carried out by programs that have the agents.

use axum::extract::State;
use axum::http::StatusCode;
use axum::http::header::LOCATION;
use axum::response::IntoResponse;
use contexture::Conversation;
use contexture::ir::RunId;
use contexture::runs::{
    self, ApprovalDecision, Decision, RunEntry, RunError, RunQuery, RunStatus, list_runs_with,
    run_timeline, store_decision, waiting_calls,
};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::{node_id, open_conversation};
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::api::conventions::idempotency::{IdempotencyKeyParam, OperationId};
use crate::api::conventions::page::{PageParams, encode_cursor};
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::operations;
use contexture_api::schema::RunStatusSchema;
use contexture_api::{
    DecidedDocument, QueueRunDocument, RunDocument, RunTimelineDocument, RunsDocument,
};

/// Name of the list in its cursors.
const RUNS: &str = "runs by time";

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_runs, queue_run))
        .routes(routes!(show_run))
        .routes(routes!(show_run_timeline))
        .routes(routes!(decide_call))
        .routes(routes!(cancel_run))
}

/// The runs to list.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListRunsParams {
    /// Id of the only conversation whose runs are listed. Default: all.
    conversation: Option<String>,
    /// Only runs of this status. Default: all.
    #[param(value_type = Option<RunStatusSchema>)]
    status: Option<RunStatus>,
    /// Only runs of agents of this name. Default: all.
    agent: Option<String>,
    /// Maximum number of runs. Default: all of them, or 100 with `after`.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// Lists the owner's runs, the newest first.
#[utoipa::path(
    get, path = "/runs", tag = "runs", params(ListRunsParams),
    responses((status = 200, description = "A page, or all of them", body = RunsDocument), ReadRefusals)
)]
async fn list_runs(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Query(asked): Query<ListRunsParams>,
) -> Result<Json<RunsDocument>, Problem> {
    let conversation = match asked.conversation {
        Some(id) => {
            let chat = open_conversation(&app, &owner, &id, None).await?;
            Some(chat.id().clone())
        }
        None => None,
    };
    let page = PageParams {
        limit: asked.limit,
        after: asked.after,
    };
    let query = RunQuery {
        conversation,
        statuses: asked.status.into_iter().collect(),
        agent: asked.agent,
        roots_only: false,
        limit: page.length()?,
        after: page.cursor_position(&owner, RUNS)?,
    };
    let found = list_runs_with(app.engine(), &owner, &query).await?;
    let next = found.next.map(|next| encode_cursor(&owner, RUNS, &next));
    let mut runs = Vec::with_capacity(found.runs.len());
    for run in found.runs {
        let waiting = waiting_calls(app.engine(), &owner, &run).await?;
        runs.push(RunDocument::new(&run, &waiting));
    }
    Ok(Json(RunsDocument { runs, next }))
}

/// Queues a run: it begins once a program that has an agent of this name takes it up, and is `queued` until then. Runs that are queued on one branch begin one after the other.
#[utoipa::path(
    post, path = "/runs", tag = "runs",
    request_body(content = QueueRunDocument, example = json!({"conversation": "support-42", "agent": "desk", "input": "Where is my parcel?"})),
    params(IdempotencyKeyParam),
    responses(
        (status = 201, description = "It is queued", body = RunDocument, headers(("location" = String, description = "Its path"))),
        WriteRefusals
    )
)]
async fn queue_run(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    operation: OperationId,
    Json(asked): Json<QueueRunDocument>,
) -> Result<impl IntoResponse, Problem> {
    let branch = asked.branch.as_deref();
    let chat = open_conversation(&app, &owner, &asked.conversation, branch).await?;
    let id = RunId::from_bytes(operation.0);
    let limit = app.config().server.limits.append_items;
    let queued = operations::queue_run(&chat, id, &asked, limit).await?;
    let location = format!(
        "/api/v1/conversations/{}/runs/{}",
        asked.conversation, queued.run
    );
    let document = RunDocument::new(&queued, &[]);
    Ok((StatusCode::CREATED, [(LOCATION, location)], Json(document)))
}

/// Returns a run of a conversation.
#[utoipa::path(
    get, path = "/conversations/{conversation}/runs/{run}", tag = "runs",
    params(("conversation" = String, Path, description = "Its conversation"), ("run" = String, Path, description = "Its id")),
    responses((status = 200, description = "It", body = RunDocument), ReadRefusals)
)]
async fn show_run(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path((id, run)): Path<(String, String)>,
) -> Result<Json<RunDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, None).await?;
    let found = find_run(&chat, &run).await?;
    let waiting = waiting_calls(app.engine(), &owner, &found).await?;
    Ok(Json(RunDocument::new(&found, &waiting)))
}

/// Returns what a run and its child runs did when: steps of the model, tools, waits for a decision. Their times are those at which
/// answers, calls, decisions and outputs were stored.
#[utoipa::path(
    get, path = "/conversations/{conversation}/runs/{run}/timeline", tag = "runs",
    params(("conversation" = String, Path, description = "Its conversation"), ("run" = String, Path, description = "Its id")),
    responses((status = 200, description = "What it did", body = RunTimelineDocument), ReadRefusals)
)]
async fn show_run_timeline(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path((id, run)): Path<(String, String)>,
) -> Result<Json<RunTimelineDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, None).await?;
    let found = find_run(&chat, &run).await?;
    let engine = app.engine();
    let waiting = waiting_calls(engine, &owner, &found).await?;
    let spans = run_timeline(engine, &owner, &found).await?;
    let now_ms = engine.now_ms();
    Ok(Json(RunTimelineDocument::new(
        &found, &waiting, &spans, now_ms,
    )))
}

/// A decision about a call that waits.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct DecisionDocument {
    /// Id of the call's node, as in `waiting` of the run.
    call: String,
    /// Whether the call is allowed.
    decision: ApprovalChoice,
    /// With `deny`: the reason, for the model.
    reason: Option<String>,
    /// Who decides, as the list of runs shows it.
    by: Option<String>,
}

/// A choice between allowing and denying a call.
#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Verdict)]
enum ApprovalChoice {
    Allow,
    Deny,
}

/// Allows or denies a call that waits. The first decision holds: another one afterwards is a conflict. Whoever carries the run out goes on by itself once it is taken up.
#[utoipa::path(
    post, path = "/conversations/{conversation}/runs/{run}/decisions", tag = "runs",
    request_body(content = DecisionDocument, example = json!({"call": "019a3c5e7b1d7f0c8e2a4b6d8f0a1c3e", "decision": "deny", "reason": "not before Monday"})),
    params(("conversation" = String, Path, description = "Its conversation"), ("run" = String, Path, description = "Its id"), IdempotencyKeyParam),
    responses((status = 204, description = "It is stored"), WriteRefusals)
)]
async fn decide_call(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, run)): Path<(String, String)>,
    Json(asked): Json<DecisionDocument>,
) -> Result<StatusCode, Problem> {
    let chat = open_conversation(&app, &owner, &id, None).await?;
    let found = find_run(&chat, &run).await?;
    let call = node_id(&asked.call)?;
    let waiting = waiting_calls(app.engine(), &owner, &found).await?;
    let run = found.id().ok_or_else(|| run_not_found(&run))?;
    // Of this run, and of no other one of the conversation.
    if !waiting.iter().any(|waiting| waiting.node == call) {
        return Err(run_problem(RunError::NotWaiting { call, run }));
    }
    let decision = match asked.decision {
        ApprovalChoice::Allow => ApprovalDecision::Allow,
        ApprovalChoice::Deny => ApprovalDecision::Deny {
            reason: asked
                .reason
                .unwrap_or_else(|| "the user said no".to_owned()),
        },
    };
    let decision = Decision {
        decision,
        by: asked.by,
    };
    let stored = store_decision(&chat, run, call, decision).await;
    stored.map_err(run_problem)?;
    Ok(StatusCode::NO_CONTENT)
}

/// Why a run is cancelled.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct CancelDocument {
    /// Reason, as lists of runs show it. Default: that it was cancelled over HTTP.
    reason: Option<String>,
}

/// Cancels a run. One that nobody drives, such as one that waits for a decision, has ended with the response. One that a program drives is still open in it: that program cuts off what is in progress within two seconds. One that had ended stays as it is.
#[utoipa::path(
    post, path = "/conversations/{conversation}/runs/{run}/cancel", tag = "runs",
    request_body(content = CancelDocument, example = json!({"reason": "the user has left"})),
    params(("conversation" = String, Path, description = "Its conversation"), ("run" = String, Path, description = "Its id"), IdempotencyKeyParam),
    responses((status = 200, description = "The run", body = RunDocument), WriteRefusals)
)]
async fn cancel_run(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, run)): Path<(String, String)>,
    Json(asked): Json<CancelDocument>,
) -> Result<Json<RunDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, None).await?;
    let found = find_run(&chat, &run).await?;
    let run = found.id().ok_or_else(|| run_not_found(&run))?;
    let reason = asked.reason.as_deref();
    let reason = reason.unwrap_or("it was cancelled over HTTP");
    let found = runs::cancel_run(&chat, run, reason).await;
    let found = found.map_err(run_problem)?;
    let waiting = waiting_calls(app.engine(), &owner, &found).await?;
    Ok(Json(RunDocument::new(&found, &waiting)))
}

/// Returns why a decision is not stored, or a run not cancelled.
fn run_problem(error: RunError) -> Problem {
    match error {
        RunError::Engine(error) => error.into(),
        error => {
            let problem = Problem::custom(error.kind(), StatusCode::CONFLICT, error.to_string());
            match &error {
                RunError::AlreadyDecided { decided, .. } => {
                    let decided = DecidedDocument::from(decided);
                    problem.with_member("decided", serde_json::json!(decided))
                }
                _ => problem,
            }
        }
    }
}

async fn find_run(chat: &Conversation, run: &str) -> Result<RunEntry, Problem> {
    let found = match run.parse() {
        Ok(id) => RunEntry::load(chat, id).await?,
        // What is no id names no run: not found, as any other.
        Err(_) => None,
    };
    found.ok_or_else(|| run_not_found(run))
}

fn run_not_found(run: &str) -> Problem {
    Problem::new(Code::NotFound, format!("no run {run:?}"))
}
