//! Export and import: conversations as lines of JSON, byte for byte the same, or one branch in another format.

use std::future::Future;
use std::ops::ControlFlow;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use contexture::sessions::SessionFormat;
use contexture::store::{
    EntityKind, Error as StoreError, Export, ExportValues, Import, ImportAll, Store, list_all,
};
use contexture::{EngineError, Owner};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::select;
use tokio::sync::mpsc::{self, Sender};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::open_conversation;
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess, require_content_type};
use crate::http::panics::{Panicked, catch_panic};
use crate::problem::{Code, Problem, error_chain};
use crate::state::App;
use crate::state::body_memory::{MemoryLease, estimate_work_bytes_of_length};
use contexture_api::schema::{BytesSchema, SessionFormatSchema};

const JSON_LINES: &str = "application/jsonl";
/// What generated clients send, which know no lines of JSON.
const BYTES: &str = "application/octet-stream";
/// An export of a conversation without messages, for the description.
const EXAMPLE: &str = r#"{"conversation":{"format":1,"owner":"local","id":"support-7","active":"main","created_ms":1795466132426,"updated_ms":1795466132426}}
{"branch":{"name":"main","created_ms":1795466132426}}
{"end":{"lines":2,"branches":1,"checkpoints":0,"blobs":0,"nodes":0,"entries":0,"blake3":"f2813ed84eaa595feb3daea88b052ad006fa542e82806744bf0ce98e6b72e2c8"}}
"#;
/// Number of pieces that wait for a slow reader. Few, as each may be megabytes; beyond, the store is read no further.
const CHANNEL_CAPACITY: usize = 2;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(export_conversation))
        .routes(routes!(export_everything))
}

/// Returns the routes that may run longer than the time limit of others.
pub(crate) fn long_router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(import_conversations))
}

/// The format and the branch of an export.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportParams {
    /// Format of a session or a document. Default: all there is, as lines of JSON.
    #[param(value_type = Option<SessionFormatSchema>)]
    format: Option<String>,
    /// With `format`: the name of the branch. Default: the active one.
    branch: Option<String>,
}

/// Exports a conversation: all of it as lines of JSON for an import, or one branch in another format.
#[utoipa::path(
    get, path = "/conversations/{conversation}/export", tag = "transfer",
    params(("conversation" = String, Path, description = "Its id"), ExportParams),
    responses((status = 200, description = "It", content((inline(BytesSchema) = "application/jsonl"), (String = "text/plain"))), ReadRefusals)
)]
async fn export_conversation(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(form): Query<ExportParams>,
) -> Result<Response, Problem> {
    let chat = open_conversation(&app, &owner, &id, form.branch.as_deref()).await?;
    if let Some(name) = &form.format {
        let format: SessionFormat = name.parse().map_err(EngineError::from)?;
        let text = chat.export(format).await?;
        return Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response());
    }
    // The stream outlives this handler, so it owns its store and id.
    let store = Arc::clone(app.engine().store());
    let id = chat.id().clone();
    Ok(stream_lines(&app, move |sender| async move {
        send_export(Export::new(&*store, &owner, &id).await?, &sender).await
    }))
}

/// The conversations and values to export.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ExportAllParams {
    /// Only conversations and values of this resource. Default: all.
    resource: Option<String>,
}

/// Exports everything of the owner: conversations and values, as lines of JSON for an import.
///
/// Conversations that are deleted before their turn are left out.
#[utoipa::path(
    get, path = "/export", tag = "transfer", params(ExportAllParams),
    responses((status = 200, description = "All there is", body = inline(BytesSchema), content_type = "application/jsonl"), ReadRefusals)
)]
async fn export_everything(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Query(which): Query<ExportAllParams>,
) -> Result<Response, Problem> {
    let store = Arc::clone(app.engine().store());
    let ids = list_all(&*store, &owner, which.resource.as_deref()).await?;
    Ok(stream_lines(&app, move |sender| async move {
        for id in ids {
            match Export::new(&*store, &owner, &id).await {
                // Deleted since the ids were listed.
                Err(StoreError::NotFound {
                    what: EntityKind::Conversation,
                    ..
                }) => {}
                export => send_export(export?, &sender).await?,
            }
            // `send_export` also ends without an error when the client has left: opening the next
            // is pointless then.
            if sender.is_closed() {
                return Ok(());
            }
        }
        let mut export = ExportValues::new(&*store, &owner, which.resource);
        while let Some(lines) = export.next_lines().await? {
            if sender.send(Ok(lines.into())).await.is_err() {
                break;
            }
        }
        Ok(())
    }))
}

type ExportChunk = Result<Bytes, std::io::Error>;

async fn send_export(
    mut export: Export<'_>,
    sender: &Sender<ExportChunk>,
) -> Result<(), StoreError> {
    while let Some(lines) = export.next_lines().await? {
        // The client has disconnected: what is left need not be read.
        if sender.send(Ok(lines.into())).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Streams lines as they are read from the store, a piece at a time. A failure cuts the answer off, so that nobody takes a
/// part for the whole.
fn stream_lines<F>(app: &App, write: impl FnOnce(Sender<ExportChunk>) -> F) -> Response
where
    F: Future<Output = Result<(), StoreError>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(CHANNEL_CAPACITY);
    // A long export must not hold up a shutdown.
    let closing = app.shutdown_token().clone();
    let writing = write(sender.clone());
    tokio::spawn(async move {
        let failed = match closing.run_until_cancelled(writing).await {
            Some(Ok(())) => return,
            Some(Err(error)) => std::io::Error::other(error_chain(&error)),
            None => std::io::Error::other("the server stops"),
        };
        tracing::warn!(error = %failed, "an export was cut off");
        // A client that has disconnected is no failure.
        let _ = sender.send(Err(failed)).await;
    });
    let pieces = stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    });
    ([(CONTENT_TYPE, JSON_LINES)], Body::from_stream(pieces)).into_response()
}

/// The result of an import.
#[derive(Default, Serialize, ToSchema)]
struct ImportedDocument {
    /// Ids of the imported conversations, in order.
    conversations: Vec<String>,
    /// Number of imported batches of values.
    values: usize,
}

/// Imports the conversations and values of an export.
///
/// Each conversation is stored completely or not at all. Where one is refused, those before it stay, some after it may be
/// stored as well, and the problem's `imported` names them all.
#[utoipa::path(
    post, path = "/import", tag = "transfer",
    request_body(
        description = "Lines as an export gives them",
        content((inline(BytesSchema) = "application/jsonl", example = json!(EXAMPLE)), (inline(BytesSchema) = "application/octet-stream", example = json!(EXAMPLE)))
    ),
    responses((status = 200, description = "They are kept", body = ImportedDocument), WriteRefusals)
)]
async fn import_conversations(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    request: Request,
) -> Result<Json<ImportedDocument>, Problem> {
    require_content_type(&[JSON_LINES, BYTES], request.headers())?;
    let importing = import_in_pool(app.clone(), owner, request.into_body());
    // On a task of its own: dropping the request would leave half an import behind instead of undoing it.
    match app.background_tasks().spawn(catch_panic(importing)).await {
        Ok(Ok(imported)) => imported.map(Json),
        _ => Err(Panicked.into()),
    }
}

/// Imports on the threads for heavy work: a line may have megabytes.
async fn import_in_pool(app: App, owner: Owner, body: Body) -> Result<ImportedDocument, Problem> {
    let store = Arc::clone(app.engine().store());
    let memory = app.body_memory().lease(&owner);
    let whose = owner.clone();
    let import = |_| import_lines(store, whose, memory, body);
    app.work_pool().run(&owner, import).await
}

async fn import_lines(
    store: Arc<dyn Store>,
    owner: Owner,
    memory: MemoryLease,
    body: Body,
) -> Result<ImportedDocument, Problem> {
    let mut importer = LineImporter {
        longest: Import::longest_line(store.limits()),
        memory,
        line_count: 0,
        import: ImportAll::new(&*store, &owner),
    };
    let read = importer.import_body(body).await;
    // Finishing an incomplete import is refused, which undoes what was stored of it.
    let done = importer.import.finish_import().await;
    let ids = done.conversations.iter().map(|one| one.id.to_string());
    let imported = ImportedDocument {
        conversations: ids.collect(),
        values: done.values.len(),
    };
    let refused = match (read, done.error) {
        (Ok(()), None) => return Ok(imported),
        // What the body itself lacks explains more than the missing end of its last conversation.
        (Err(problem), _) => problem,
        (Ok(()), Some(error)) => Problem::from(error.source).with_member("line", error.line.into()),
    };
    // What is stored is named, so that the caller sends only the rest.
    Err(refused.with_member("imported", serde_json::json!(imported.conversations)))
}

struct LineImporter<'a> {
    /// The longest line that is legal, in bytes.
    longest: usize,
    /// For the lines that are held, as text and parsed.
    memory: MemoryLease,
    line_count: u64,
    import: ImportAll<'a>,
}

impl LineImporter<'_> {
    /// Imports the lines of a body, up to the first that is refused.
    async fn import_body(&mut self, body: Body) -> Result<(), Problem> {
        let mut pieces = body.into_data_stream();
        let mut buffer: Vec<u8> = Vec::new();
        loop {
            let piece = select! {
                piece = pieces.next() => piece,
                // What has come is stored, be it that the rest takes its time.
                () = self.import.wait_for_progress() => continue,
            };
            let Some(piece) = piece else { break };
            let piece =
                piece.map_err(|_| Problem::new(Code::BadBody, "the body ended before its end"))?;
            // What was buffered before has no line end, so it is not searched again.
            let (mut done, mut searched) = (0, buffer.len());
            let held = self.import.held_bytes() + buffer.len() + piece.len();
            self.memory
                .grow_to(estimate_work_bytes_of_length(held))
                .await?;
            buffer.extend_from_slice(&piece);
            while let Some(end) = buffer
                .get(searched..)
                .and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
            {
                let end = searched + end;
                let line = buffer.get(done..end).unwrap_or_default();
                if self.import_line(line).await?.is_break() {
                    return Ok(());
                }
                done = end + 1;
                searched = done;
            }
            buffer.drain(..done);
            // Checked after complete lines are gone: the bound is on one line, not on a piece of the body.
            if buffer.len() > self.longest {
                let detail = format!(
                    "line {} is longer than {} bytes",
                    self.line_count + 1,
                    self.longest
                );
                return Err(Problem::new(Code::BodyTooLarge, detail));
            }
        }
        // A last line without a line end is a line too.
        if !buffer.is_empty() {
            // The importer tells of a refusal.
            let _ = self.import_line(&buffer).await?;
        }
        Ok(())
    }

    async fn import_line(&mut self, line: &[u8]) -> Result<ControlFlow<()>, Problem> {
        self.line_count += 1;
        let line = std::str::from_utf8(line).map_err(|_| {
            let detail = format!("line {} is not UTF-8", self.line_count);
            Problem::new(Code::BadBody, detail)
        })?;
        Ok(self.import.import_line(line).await)
    }
}
