//! The notes that the layer `memory` keeps.

use axum::extract::State;
use axum::http::StatusCode;
use contexture::layers::builtin::Memory;
use contexture::layers::builtin::memory::{Edit, Moment, NoteError, Notes, Ttl};
use contexture::layers::{Layers, Scope};
use contexture::{Conversation, EngineError, Owner};
use serde::Deserialize;
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::chat::open;
use crate::api::refusals::{ReadRefusals, WriteRefusals};
use crate::app::App;
use crate::documents::{NoteDocument, NoteDoneDocument, NotesDocument};
use crate::extract::{Json, Path, Query, Reader, Writer};
use crate::problem::{Code, Problem};

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(show, set, delete))
}

/// Whose notes.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Whose {
    /// `resource` (the default): those of the conversation's resource, or its own if it has none. `owner`: those of the owner.
    /// `path`: those that rewind.
    #[param(inline)]
    scope: Option<Keeper>,
    /// With `path`: the branch. Default: the active one.
    branch: Option<String>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum Keeper {
    Resource,
    Owner,
    Path,
}

/// A conversation and the layer that keeps its notes.
struct Opened {
    chat: Conversation,
    memory: Memory,
}

impl Opened {
    async fn new(app: &App, owner: &Owner, id: &str, whose: &Whose) -> Result<Self, Problem> {
        let chat = open(app, owner, id, whose.branch.as_deref()).await?;
        let memory = Memory::new().scoped(match whose.scope {
            None | Some(Keeper::Resource) => Scope::Resource,
            Some(Keeper::Owner) => Scope::Global,
            Some(Keeper::Path) => Scope::Path,
        });
        let layers = Layers::new()
            .with(memory.clone())
            .map_err(EngineError::from)?;
        chat.set_layers(layers);
        Ok(Self { chat, memory })
    }

    /// The notes, and when it is for them.
    async fn read(&self) -> Result<(Notes, Moment), Problem> {
        let session = self.chat.layer_session(None).await?;
        let notes = session.state::<Memory>().map_err(EngineError::from)?;
        let at = self.memory.moment(notes, session.context());
        Ok((notes.clone(), at))
    }
}

fn missing(key: &str) -> Problem {
    Problem::new(
        Code::Of("no_note", StatusCode::NOT_FOUND),
        format!("no note {key:?}"),
    )
}

fn refused(error: &NoteError) -> Problem {
    let (word, status) = match error {
        NoteError::NoNote { .. } => ("no_note", StatusCode::NOT_FOUND),
        NoteError::TooMany { .. } | NoteError::Full { .. } => {
            ("memory_full", StatusCode::UNPROCESSABLE_ENTITY)
        }
        _ => ("invalid_note", StatusCode::UNPROCESSABLE_ENTITY),
    };
    Problem::new(Code::Of(word, status), error.to_string())
}

/// The notes that have not expired.
#[utoipa::path(
    get, path = "/conversations/{conversation}/memory", tag = "memory",
    params(("conversation" = String, Path, description = "Its id"), Whose),
    responses((status = 200, description = "By key", body = NotesDocument), ReadRefusals)
)]
async fn list(
    State(app): State<App>,
    Reader(owner): Reader,
    Path(id): Path<String>,
    Query(whose): Query<Whose>,
) -> Result<Json<NotesDocument>, Problem> {
    let (notes, at) = Opened::new(&app, &owner, &id, &whose).await?.read().await?;
    let notes = notes
        .iter(at)
        .map(|(key, note)| NoteDocument::new(key, note, at))
        .collect();
    Ok(Json(NotesDocument { notes }))
}

/// A note.
#[utoipa::path(
    get, path = "/conversations/{conversation}/memory/{note}", tag = "memory",
    params(("conversation" = String, Path, description = "Its id"), ("note" = String, Path, description = "Its key"), Whose),
    responses((status = 200, description = "It", body = NoteDocument), ReadRefusals)
)]
async fn show(
    State(app): State<App>,
    Reader(owner): Reader,
    Path((id, key)): Path<(String, String)>,
    Query(whose): Query<Whose>,
) -> Result<Json<NoteDocument>, Problem> {
    let (notes, at) = Opened::new(&app, &owner, &id, &whose).await?.read().await?;
    let note = notes.live(&key, at).ok_or_else(|| missing(&key))?;
    Ok(Json(NoteDocument::new(&key, note, at)))
}

/// What a note says; what is not given stays as it is.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
struct NoteEdit {
    /// What it says; needed for a new note.
    value: Option<String>,
    /// What it is about; empty: nothing.
    description: Option<String>,
    /// How important it is, 0 to 100: the larger, the later it gives way where there is no room.
    #[schema(maximum = 100)]
    importance: Option<u8>,
    /// When it is forgotten. Default: as it is, of a new note never.
    #[schema(inline)]
    expires: Option<Expires>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Expires {
    /// Never.
    Never,
    /// After so many answers of the model.
    Answers(u64),
    /// After so many milliseconds.
    Ms(u64),
}

/// Makes a note, or changes one.
#[utoipa::path(
    put, path = "/conversations/{conversation}/memory/{note}", tag = "memory", request_body = NoteEdit,
    params(("conversation" = String, Path, description = "Its id"), ("note" = String, Path, description = "Its key"), Whose),
    responses((status = 200, description = "What became of it", body = NoteDoneDocument), WriteRefusals)
)]
async fn set(
    State(app): State<App>,
    Writer(owner): Writer,
    Path((id, key)): Path<(String, String)>,
    Query(whose): Query<Whose>,
    Json(asked): Json<NoteEdit>,
) -> Result<Json<NoteDoneDocument>, Problem> {
    let edit = Edit {
        value: asked.value,
        description: asked.description,
        importance: asked.importance,
        ttl: asked.expires.map(|expires| match expires {
            Expires::Never => Ttl::Never,
            Expires::Answers(count) => Ttl::Responses(count),
            Expires::Ms(ms) => Ttl::Ms(ms),
        }),
    };
    let opened = Opened::new(&app, &owner, &id, &whose).await?;
    let handle = opened.chat.layer::<Memory>()?;
    let done = handle.update(|notes, context| {
        let at = opened.memory.moment(notes, context);
        Ok(notes.set(&key, edit.clone(), at))
    });
    let done = done.await?.map_err(|error| refused(&error))?.as_str();
    Ok(Json(NoteDoneDocument { key, done }))
}

/// Deletes a note.
#[utoipa::path(
    delete, path = "/conversations/{conversation}/memory/{note}", tag = "memory",
    params(("conversation" = String, Path, description = "Its id"), ("note" = String, Path, description = "Its key"), Whose),
    responses((status = 204, description = "It is gone"), WriteRefusals)
)]
async fn delete(
    State(app): State<App>,
    Writer(owner): Writer,
    Path((id, key)): Path<(String, String)>,
    Query(whose): Query<Whose>,
) -> Result<StatusCode, Problem> {
    let opened = Opened::new(&app, &owner, &id, &whose).await?;
    let handle = opened.chat.layer::<Memory>()?;
    let gone = handle.update(|notes, context| {
        let at = opened.memory.moment(notes, context);
        let there = notes.live(&key, at).is_some();
        Ok(there.then(|| notes.delete(&key)).flatten())
    });
    gone.await?
        .map(|_| StatusCode::NO_CONTENT)
        .ok_or_else(|| missing(&key))
}
