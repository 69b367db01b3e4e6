//! What a model sees of a conversation: resolved for a program, or compiled into a provider's request.

use std::sync::Arc;

use axum::Extension;
use axum::extract::State;
use contexture::compile::{Scratch, Target};
use contexture::engine::LastTarget;
use contexture::ir::{Cancel, Raw, parse_fragments};
use contexture::render::{Grouping, Renderer};
use contexture::{Conversation, EngineError};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::{BranchParams, open_conversation};
use crate::api::conventions::error_responses::WriteRefusals;
use crate::api::stateless::{parse_format, parse_render_format};
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::{Problem, member_problem};
use crate::state::App;
use contexture_api::operations::{self, CompilePurpose, ExplainDetail};
use contexture_api::schema::{FragmentSchema, RenderFormatSchema, UiMessageSchema};
use contexture_api::{
    CheckDocument, CheckedDocument, CompileDocument, CompiledDocument, ExplainedDocument,
    HandleDocument, HandledDocument, RecordDocument, RecordedDocument, WhatIfDocument,
};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(resolve_conversation))
        .routes(routes!(compile_conversation))
        .routes(routes!(compile_messages))
        .routes(routes!(record_answer))
        .routes(routes!(handle_calls))
        .routes(routes!(check_call))
        .routes(routes!(explain_compile))
        .routes(routes!(compile_what_if))
}

/// Options for resolving a branch.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct ResolveRequest {
    /// Format of the system prompt. Default: `xml`.
    #[schema(value_type = Option<RenderFormatSchema>)]
    format: Option<String>,
    /// Fragments to use instead of those that the path carries.
    #[schema(value_type = Option<Vec<FragmentSchema>>)]
    fragments: Option<Raw>,
}

/// The input of a model, as text and messages.
#[derive(Serialize, ToSchema)]
struct ResolvedDocument {
    /// Text of the system prompt, which comes before the messages.
    system_prompt: String,
    /// Messages of the branch, as `UIMessage` objects of the AI SDK.
    #[schema(value_type = Vec<UiMessageSchema>)]
    messages: Vec<contexture::ir::UiMessage>,
}

/// Returns the system prompt and the messages of a branch.
#[utoipa::path(
    post, path = "/conversations/{conversation}/resolve", tag = "compile",
    request_body(content = ResolveRequest, example = json!({"format": "markdown"})),
    params(("conversation" = String, Path, description = "Its id"), BranchParams),
    responses((status = 200, description = "Both", body = ResolvedDocument), WriteRefusals)
)]
async fn resolve_conversation(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Json(asked): Json<ResolveRequest>,
) -> Result<Json<ResolvedDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    if let Some(fragments) = &asked.fragments {
        chat.set(parse_fragments(fragments.get()).map_err(EngineError::from)?)?;
    }
    chat.set_renderer(parse_renderer(asked.format.as_deref())?);
    let resolved = chat.resolve().await?;
    Ok(Json(ResolvedDocument {
        system_prompt: resolved.system_prompt,
        messages: resolved.messages,
    }))
}

/// Compiles a branch into a provider's request, under a token budget. What cannot fit is refused, with what is required.
#[utoipa::path(
    post, path = "/conversations/{conversation}/compile", tag = "compile",
    request_body(content = CompileDocument, example = json!({
        "model": "claude-sonnet-5", "window": 100000, "reserve": 4000,
        "policy": {"preview": 5000, "clear": {"keep_recent": 3}, "compact": "manifest"},
        "tools": [{"name": "track", "description": "Tells where a parcel is.", "input_schema": {"type": "object", "properties": {"order": {"type": "string"}}}}],
    })),
    params(("conversation" = String, Path, description = "Its id"), BranchParams),
    responses((status = 200, description = "The request, and what is in it", body = CompiledDocument), WriteRefusals)
)]
async fn compile_conversation(
    State(app): State<App>,
    ReadAccess(_): ReadAccess,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Extension(cancel): Extension<Cancel>,
    Json(asked): Json<CompileDocument>,
) -> Result<Json<CompiledDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let (host, purpose) = (app.host(), CompilePurpose::Call);
    let compiled = operations::compile_conversation(&chat, &asked, &host, purpose, &cancel).await?;
    Ok(Json(operations::keep_compiled(&chat, compiled).await?))
}

/// Compiles a history that its caller keeps. Nothing is stored: what was decided is in the `plan`, which the next call takes.
#[utoipa::path(
    post, path = "/compile", tag = "compile",
    request_body(content = CompileDocument, example = json!({
        "model": "gpt-5.4", "window": 100000,
        "messages": [{"role": "user", "content": "Where is my parcel?"}],
    })),
    responses((status = 200, description = "The request, what is in it, and the plan of the next call", body = CompiledDocument), WriteRefusals)
)]
async fn compile_messages(
    State(app): State<App>,
    ReadAccess(_): ReadAccess,
    Extension(cancel): Extension<Cancel>,
    Json(asked): Json<CompileDocument>,
) -> Result<Json<CompiledDocument>, Problem> {
    let (catalogue, host) = (app.engine().catalogue(), app.host());
    let mut scratch = Scratch::new();
    let compiled = operations::compile_document(catalogue, &asked, &host, &cancel, &mut scratch)?;
    Ok(Json(compiled))
}

/// Stores a provider's answer to a compiled call, with the decisions of the call. The same answer again is stored once.
#[utoipa::path(
    post, path = "/conversations/{conversation}/record", tag = "compile",
    request_body(content = RecordDocument, example = json!({
        "response": {"id": "c1", "object": "chat.completion", "model": "gpt-5.4", "choices": [
            {"index": 0, "message": {"role": "assistant", "content": "It arrives today."}, "finish_reason": "stop"},
        ]},
    })),
    params(("conversation" = String, Path, description = "Its id"), BranchParams),
    responses((status = 200, description = "The stored answer, and the calls in it", body = RecordedDocument), WriteRefusals)
)]
async fn record_answer(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Json(asked): Json<RecordDocument>,
) -> Result<Json<RecordedDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let recorded = operations::record_answer(&chat, &asked, &app.host()).await?;
    Ok(Json(recorded))
}

/// Answers the calls at the end of a branch that are the server's: notes, skills, reading what was left out, and calls that
/// are not allowed. Their outputs are stored.
#[utoipa::path(
    post, path = "/conversations/{conversation}/handle", tag = "compile",
    request_body(content = HandleDocument, example = json!({})),
    params(("conversation" = String, Path, description = "Its id"), BranchParams),
    responses((status = 200, description = "What was answered, and what waits for the caller", body = HandledDocument), WriteRefusals)
)]
async fn handle_calls(
    State(app): State<App>,
    ReadAccess(_): ReadAccess,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Json(asked): Json<HandleDocument>,
) -> Result<Json<HandledDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let handled = operations::handle_calls(&chat, &asked, &app.host()).await?;
    Ok(Json(handled))
}

/// Says whether a tool may be called, before it is.
#[utoipa::path(
    post, path = "/conversations/{conversation}/check", tag = "compile",
    request_body(content = CheckDocument, example = json!({"name": "track", "policy": {"tools": {"deny": ["delete_*"]}}})),
    params(("conversation" = String, Path, description = "Its id"), BranchParams),
    responses((status = 200, description = "Whether it may", body = CheckedDocument), WriteRefusals)
)]
async fn check_call(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Json(asked): Json<CheckDocument>,
) -> Result<Json<CheckedDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let checked = operations::check_call(&chat, &asked, &app.host()).await?;
    Ok(Json(checked))
}

/// What an explanation has beside the report.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExplainParams {
    /// `text`: the texts of what is sent and left out, with the ids of their nodes. Default: the report alone.
    #[param(inline)]
    include: Option<ExplainInclude>,
    /// Name of the branch. Default: the active one.
    branch: Option<String>,
}

/// What an explanation has beside the report.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum ExplainInclude {
    /// Texts and ids of nodes.
    Text,
}

/// Explains what a compile sends and what it leaves out, without the request itself.
#[utoipa::path(
    post, path = "/conversations/{conversation}/explain", tag = "compile",
    request_body(content = CompileDocument, example = json!({"to": "openai-chat", "model": "gpt-5.4", "turns": 20})),
    params(("conversation" = String, Path, description = "Its id"), ExplainParams),
    responses((status = 200, description = "The report in three forms", body = ExplainedDocument), WriteRefusals)
)]
async fn explain_compile(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(on): Query<ExplainParams>,
    Extension(cancel): Extension<Cancel>,
    Json(asked): Json<CompileDocument>,
) -> Result<Json<ExplainedDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let detail = match on.include {
        None => ExplainDetail::Report,
        Some(ExplainInclude::Text) => ExplainDetail::Text,
    };
    let host = app.host();
    let explained = operations::explain_conversation(&chat, &asked, &host, detail, &cancel).await?;
    Ok(Json(explained))
}

/// Compiles a call as it would be with another model, window or policy, and compares it with the last call of the branch. Nothing is
/// stored: what a policy would compact is cut instead.
#[utoipa::path(
    post, path = "/conversations/{conversation}/what-if", tag = "compile",
    request_body(content = CompileDocument, example = json!({
        "model": "gpt-5.4", "window": 100000, "policy": {"clear": {"keep_recent": 3}, "preview": 5000},
    })),
    params(("conversation" = String, Path, description = "Its id"), BranchParams),
    responses((status = 200, description = "The call as it would be", body = WhatIfDocument), WriteRefusals)
)]
async fn compile_what_if(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(on): Query<BranchParams>,
    Extension(cancel): Extension<Cancel>,
    Json(asked): Json<CompileDocument>,
) -> Result<Json<WhatIfDocument>, Problem> {
    let chat = open_conversation(&app, &owner, &id, on.branch.as_deref()).await?;
    let told = operations::compile_what_if(&chat, &asked, &app.host(), &cancel).await?;
    Ok(Json(told))
}

/// Returns a target of this format and model. What is not said follows from the newest answer of the branch.
///
/// # Errors
/// `bad_body` for a format that is not known, or without a model where no answer names one.
pub(crate) async fn default_target(
    chat: &Conversation,
    format: Option<&str>,
    model: Option<&str>,
) -> Result<Target, Problem> {
    let target = match model {
        Some(model) => LastTarget {
            model: model.to_owned(),
            format: None,
        },
        None => chat.last_target().await?.ok_or_else(|| {
            let detail = "is missing, and no answer among the last items of this branch names one";
            member_problem("model", detail)
        })?,
    };
    let format = match format {
        Some(name) => parse_format(name)?,
        None => target.request_format(chat.engine().catalogue()),
    };
    Ok(Target::new(format, target.model))
}

fn parse_renderer(format: Option<&str>) -> Result<Arc<dyn Renderer>, Problem> {
    Ok(Arc::from(
        parse_render_format(format)?.renderer(Grouping::Off),
    ))
}
