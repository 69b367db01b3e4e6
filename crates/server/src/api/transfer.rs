//! Conversations out and in: whole as lines of JSON, byte for byte the same, or one branch in another format.

use std::future::Future;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::response::{IntoResponse as _, Response};
use contexture::sessions::SessionFormat;
use contexture::store::{
    Error as StoreError, Export, ExportValues, Import, ImportError, ImportValues, Store, Thing,
    list_all,
};
use contexture::{EngineError, Owner};
use futures_util::{StreamExt as _, stream};
use serde::{Deserialize, Serialize};
use tokio::sync::mpsc::{self, Sender};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::chat::open;
use crate::api::refusals::{ReadRefusals, WriteRefusals};
use crate::app::App;
use crate::extract::{Json, Path, Query, Reader, Writer, must_be};
use crate::panics::{Panicked, caught};
use crate::problem::{Code, Problem, chain};

const LINES: &str = "application/jsonl";
/// Pieces that wait for a slow reader.
const AHEAD: usize = 2;
/// How values of an export begin.
const VALUES: &str = r#"{"values":{"format":"#;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(export))
        .routes(routes!(export_all))
}

/// What may take longer than an answer may.
pub(crate) fn long_router() -> OpenApiRouter<App> {
    OpenApiRouter::new().routes(routes!(import))
}

/// In which form.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Form {
    /// A session's or document's format: `openai-chat`, `anthropic`, `items`, …. Default: all there is, as lines of JSON.
    format: Option<String>,
    /// With a format: the branch. Default: the active one.
    branch: Option<String>,
}

/// A conversation: all of it as lines of JSON for an import, or one branch in another format.
#[utoipa::path(
    get, path = "/conversations/{conversation}/export", tag = "transfer",
    params(("conversation" = String, Path, description = "Its id"), Form),
    responses((status = 200, description = "It", content((String = "application/jsonl"), (String = "text/plain"))), ReadRefusals)
)]
async fn export(
    State(app): State<App>,
    Reader(owner): Reader,
    Path(id): Path<String>,
    Query(form): Query<Form>,
) -> Result<Response, Problem> {
    let chat = open(&app, &owner, &id, form.branch.as_deref()).await?;
    if let Some(name) = &form.format {
        let format: SessionFormat = name.parse().map_err(EngineError::from)?;
        let text = chat.export(format).await?;
        return Ok(([(CONTENT_TYPE, "text/plain; charset=utf-8")], text).into_response());
    }
    let store = Arc::clone(app.engine().store());
    let id = chat.id().clone();
    Ok(lines(&app, move |sender| async move {
        write(Export::new(&*store, &owner, &id).await?, &sender).await
    }))
}

/// Of whom.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Everything {
    /// Only conversations and values of this resource.
    resource: Option<String>,
}

/// Everything of the owner: conversations and values, as lines of JSON for an import. Conversations that are deleted before their
/// turn are left out.
#[utoipa::path(
    get, path = "/export", tag = "transfer", params(Everything),
    responses((status = 200, description = "All there is", body = String, content_type = "application/jsonl"), ReadRefusals)
)]
async fn export_all(
    State(app): State<App>,
    Reader(owner): Reader,
    Query(which): Query<Everything>,
) -> Result<Response, Problem> {
    let store = Arc::clone(app.engine().store());
    let ids = list_all(&*store, &owner, which.resource.as_deref()).await?;
    Ok(lines(&app, move |sender| async move {
        for id in ids {
            match Export::new(&*store, &owner, &id).await {
                // It was deleted meanwhile.
                Err(StoreError::NotFound {
                    what: Thing::Conversation,
                    ..
                }) => {}
                export => write(export?, &sender).await?,
            }
            if sender.is_closed() {
                return Ok(());
            }
        }
        let mut export = ExportValues::new(&*store, &owner, which.resource);
        while let Some(lines) = export.next().await? {
            if sender.send(Ok(lines.into())).await.is_err() {
                break;
            }
        }
        Ok(())
    }))
}

type Piece = Result<Bytes, std::io::Error>;

async fn write(mut export: Export<'_>, sender: &Sender<Piece>) -> Result<(), StoreError> {
    while let Some(lines) = export.next().await? {
        // Nobody reads on.
        if sender.send(Ok(lines.into())).await.is_err() {
            break;
        }
    }
    Ok(())
}

/// Lines as they are read from the store, a piece at a time. One that fails cuts the answer off, so that nobody takes
/// a part for the whole.
fn lines<F>(app: &App, write: impl FnOnce(Sender<Piece>) -> F) -> Response
where
    F: Future<Output = Result<(), StoreError>> + Send + 'static,
{
    let (sender, receiver) = mpsc::channel(AHEAD);
    let closing = app.closing().clone();
    let writing = write(sender.clone());
    tokio::spawn(async move {
        let failed = match closing.run_until_cancelled(writing).await {
            Some(Ok(())) => return,
            Some(Err(error)) => std::io::Error::other(chain(&error)),
            None => std::io::Error::other("the server stops"),
        };
        tracing::warn!(error = %failed, "an export was cut off");
        // Nobody reading on is no failure.
        let _ = sender.send(Err(failed)).await;
    });
    let pieces = stream::unfold(receiver, async |mut receiver| {
        Some((receiver.recv().await?, receiver))
    });
    ([(CONTENT_TYPE, LINES)], Body::from_stream(pieces)).into_response()
}

/// What was imported.
#[derive(Default, Serialize, ToSchema)]
struct ImportedDocument {
    /// The conversations, in order.
    conversations: Vec<String>,
    /// How many lots of values.
    values: usize,
}

/// Keeps conversations and values of an export. Each conversation is kept whole or not at all; those before one that
/// is refused stay.
#[utoipa::path(
    post, path = "/import", tag = "transfer",
    request_body(content = String, content_type = "application/jsonl", description = "Lines as an export gives them"),
    responses((status = 200, description = "They are kept", body = ImportedDocument), WriteRefusals)
)]
async fn import(
    State(app): State<App>,
    Writer(owner): Writer,
    request: Request,
) -> Result<Json<ImportedDocument>, Problem> {
    must_be(&[LINES], request.headers())?;
    let store = Arc::clone(app.engine().store());
    let taking = take(store, owner, request.into_body());
    // Beside the request: if the caller goes away, what is half here is still taken back.
    match app.tasks().spawn(caught(taking)).await {
        Ok(Ok(taken)) => taken.map(Json),
        _ => Err(Panicked.into()),
    }
}

async fn take(
    store: Arc<dyn Store>,
    owner: Owner,
    body: Body,
) -> Result<ImportedDocument, Problem> {
    let mut taking = Taking::new(&*store, &owner);
    let taken = taking.all(body).await;
    if taken.is_err() {
        // What is not at its end is refused there, and taken back.
        let _ = taking.end().await;
    }
    taken.map(|()| taking.done)
}

/// One conversation or lot of values on its way in.
enum Incoming<'a> {
    Conversation(Box<Import<'a>>),
    Values(Box<ImportValues<'a>>),
}

struct Taking<'a> {
    store: &'a dyn Store,
    owner: &'a Owner,
    incoming: Option<Incoming<'a>>,
    /// Lines read, and those before the one that comes in.
    number: u64,
    before: u64,
    done: ImportedDocument,
}

impl<'a> Taking<'a> {
    fn new(store: &'a dyn Store, owner: &'a Owner) -> Self {
        Self {
            store,
            owner,
            incoming: None,
            number: 0,
            before: 0,
            done: ImportedDocument::default(),
        }
    }

    async fn all(&mut self, body: Body) -> Result<(), Problem> {
        let longest = Import::longest_line(self.store.limits());
        let mut coming = body.into_data_stream();
        let mut held: Vec<u8> = Vec::new();
        while let Some(piece) = coming.next().await {
            let piece =
                piece.map_err(|_| Problem::new(Code::BadBody, "the body ended before its end"))?;
            // What was held before has no line end.
            let (mut done, mut searched) = (0, held.len());
            held.extend_from_slice(&piece);
            while let Some(end) = held
                .get(searched..)
                .and_then(|rest| rest.iter().position(|byte| *byte == b'\n'))
            {
                let end = searched + end;
                self.line(held.get(done..end).unwrap_or_default()).await?;
                done = end + 1;
                searched = done;
            }
            held.drain(..done);
            if held.len() > longest {
                let detail = format!("line {} is longer than {longest} bytes", self.number + 1);
                return Err(Problem::new(Code::BodyTooLarge, detail));
            }
        }
        if !held.is_empty() {
            self.line(&held).await?;
        }
        self.end().await
    }

    async fn line(&mut self, line: &[u8]) -> Result<(), Problem> {
        self.number += 1;
        let line = std::str::from_utf8(line).map_err(|_| {
            Problem::new(Code::BadBody, format!("line {} is not UTF-8", self.number))
        })?;
        let (store, owner) = (self.store, self.owner);
        let incoming = self
            .incoming
            .get_or_insert_with(|| match line.starts_with(VALUES) {
                true => Incoming::Values(Box::new(ImportValues::new(store, owner))),
                false => Incoming::Conversation(Box::new(Import::new(store, owner))),
            });
        let taken = match incoming {
            Incoming::Conversation(import) => import.line(line).await,
            Incoming::Values(import) => import.line(line).await,
        };
        taken.map_err(|error| self.refused(error))?;
        if line.starts_with(r#"{"end":"#) {
            self.end().await?;
        }
        Ok(())
    }

    async fn end(&mut self) -> Result<(), Problem> {
        match self.incoming.take() {
            None => {}
            Some(Incoming::Conversation(import)) => {
                let done = import.finish().await.map_err(|error| self.refused(error))?;
                self.done.conversations.push(done.id.to_string());
            }
            Some(Incoming::Values(import)) => {
                import.finish().await.map_err(|error| self.refused(error))?;
                self.done.values += 1;
            }
        }
        self.before = self.number;
        Ok(())
    }

    fn refused(&self, error: ImportError) -> Problem {
        let line = self.before + error.line;
        let problem = Problem::from(error.source).with("line", line.into());
        problem.with("imported", serde_json::json!(self.done.conversations))
    }
}
