//! Import of other programs' sessions: their logs and requests become conversations.
//!
//! Not here: whole conversations of our own (`transfer`).

use axum::extract::{Request, State};
use contexture::engine::ImportOptions;
use serde::Deserialize;
use utoipa::IntoParams;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::conversation_id;
use crate::api::conventions::error_responses::WriteRefusals;
use crate::api::conventions::idempotency::IdempotencyKeyParam;
use crate::http::extractors::{Json, Query, WriteAccess, read_body, require_content_type};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::SessionsDocument;
use contexture_api::operations::{self, OperationError, SessionImport};
use contexture_api::schema::{BytesSchema, SessionFormatSchema};

/// Content types that a session may have.
const KINDS: [&str; 2] = ["application/json", "application/jsonl"];

/// A log of Claude Code, for the description.
const LOG_EXAMPLE: &str = r#"{"type":"user","uuid":"u1","parentUuid":null,"sessionId":"s1","timestamp":"2026-11-20T09:00:00.000Z","message":{"role":"user","content":"Where is my parcel?"}}
"#;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(import_sessions))
}

/// Options for an import of sessions.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ImportSessionParams {
    /// Format of the sessions: a program's log, or a provider's request. Default: detected.
    #[param(value_type = Option<SessionFormatSchema>)]
    format: Option<String>,
    /// Name of the file, which decides where the text alone does not. Default: none.
    name: Option<String>,
    /// Id of the conversation, for one session. Default: made from the session's own.
    conversation: Option<String>,
    /// Subject of the conversations, such as an end user. Default: none.
    resource: Option<String>,
    /// Whether to leave out and list records that cannot be read, instead of refusing all. Default: no.
    keep_going: Option<bool>,
}

/// Imports sessions of other programs as conversations.
///
/// A session that is sent again is not stored twice; one that grew is extended. Each session is stored completely or
/// not at all; those before one that is refused stay, and some after it may be stored as well.
#[utoipa::path(
    post, path = "/sessions", tag = "transfer", params(ImportSessionParams, IdempotencyKeyParam),
    request_body(
        description = "A session, or several, as the program wrote them",
        content(
            (serde_json::Value = "application/json", example = json!({"model": "gpt-5.4", "messages": [{"role": "user", "content": "Where is my parcel?"}]})),
            (inline(BytesSchema) = "application/jsonl", example = json!(LOG_EXAMPLE))
        )
    ),
    responses((status = 200, description = "They are kept", body = SessionsDocument), WriteRefusals)
)]
async fn import_sessions(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Query(params): Query<ImportSessionParams>,
    request: Request,
) -> Result<Json<SessionsDocument>, Problem> {
    require_content_type(&KINDS, request.headers())?;
    let bytes = read_body(request, &app).await?;
    let text = std::str::from_utf8(&bytes)
        .map_err(|_| Problem::new(Code::BadBody, "the body is not UTF-8"))?;
    let import = SessionImport {
        format: params.format,
        name: params.name,
        keep_going: params.keep_going == Some(true),
        options: ImportOptions {
            owner,
            conversation: params
                .conversation
                .as_deref()
                .map(conversation_id)
                .transpose()?,
            resource: params.resource,
            ..ImportOptions::default()
        },
    };
    let imported = operations::import_sessions(app.engine(), text, &import).await;
    let document = imported.map_err(|error| match error {
        // What it names came as a parameter of the query.
        OperationError::Member { .. } => Problem::new(Code::BadQuery, error.to_string()),
        error => error.into(),
    })?;
    Ok(Json(document))
}
