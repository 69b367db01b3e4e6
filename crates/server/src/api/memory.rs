//! The notes that the layer `memory` keeps.

use axum::extract::State;
use axum::http::StatusCode;
use contexture::layers::builtin::Memory;
use contexture::layers::builtin::memory::{
    EditResult, NoteError, NoteTime, NoteTtl, NoteUpdate, Notes,
};
use contexture::layers::{Layers, StateScope};
use contexture::{Conversation, EngineError, Owner};
use serde::{Deserialize, Serialize};
use utoipa::{IntoParams, ToSchema};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::api::conventions::conversation_path::open_conversation;
use crate::api::conventions::error_responses::{ReadRefusals, WriteRefusals};
use crate::api::conventions::idempotency::IdempotencyKeyParam;
use crate::api::conventions::page::{PageParams, cut_page};
use crate::http::extractors::{Json, Path, Query, ReadAccess, WriteAccess};
use crate::problem::{Code, Problem};
use crate::state::App;
use contexture_api::schema::NoteResultSchema;
use contexture_api::{NoteDocument, NoteDoneDocument, NotesDocument};

const NO_NOTE: &str = "no_note";

/// The most operations of one request.
const MAX_OPERATIONS: usize = 100;

pub(crate) fn router() -> OpenApiRouter<App> {
    OpenApiRouter::new()
        .routes(routes!(list_notes, change_notes))
        .routes(routes!(show_note, set_note, delete_note))
}

/// The scope of the notes, and the page of them.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListNotesParams {
    /// Scope of the notes: `resource` (the default) for those of the conversation's resource, or its own if it has
    /// none; `owner` for those of the owner; `path` for those that rewind with the path.
    #[param(inline)]
    scope: Option<NoteScope>,
    /// With `path`: the name of the branch. Default: the active one.
    branch: Option<String>,
    /// Maximum number of notes. Default: all of them, or 100 with `after`.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

/// The scope of the notes.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct NotesParams {
    /// Scope of the notes: `resource` (the default) for those of the conversation's resource, or its own if it has
    /// none; `owner` for those of the owner; `path` for those that rewind with the path.
    #[param(inline)]
    scope: Option<NoteScope>,
    /// With `path`: the name of the branch. Default: the active one.
    branch: Option<String>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
#[schema(as = Keeper)]
enum NoteScope {
    Resource,
    Owner,
    Path,
}

/// A conversation, and the layer that holds its notes.
struct NotesHandle {
    chat: Conversation,
    memory: Memory,
}

impl NotesHandle {
    async fn new(app: &App, owner: &Owner, id: &str, whose: &NotesParams) -> Result<Self, Problem> {
        let chat = open_conversation(app, owner, id, whose.branch.as_deref()).await?;
        let memory = Memory::new().with_scope(match whose.scope {
            None | Some(NoteScope::Resource) => StateScope::Resource,
            Some(NoteScope::Owner) => StateScope::Global,
            Some(NoteScope::Path) => StateScope::Path,
        });
        let layers = Layers::new()
            .with_layer(memory.clone())
            .map_err(EngineError::from)?;
        chat.set_layers(layers);
        Ok(Self { chat, memory })
    }

    /// Reads the notes, and the current time by which their expiry is judged.
    async fn read_notes(&self) -> Result<(Notes, NoteTime), Problem> {
        let session = self.chat.layer_session(None).await?;
        let notes = session.state::<Memory>().map_err(EngineError::from)?;
        let at = self.memory.note_time(notes, session.context());
        Ok((notes.clone(), at))
    }
}

fn note_not_found(key: &str) -> Problem {
    Problem::custom(NO_NOTE, StatusCode::NOT_FOUND, no_note_detail(key))
}

fn no_note_detail(key: &str) -> String {
    format!("no note {key:?}")
}

const fn note_code(error: &NoteError) -> (&'static str, StatusCode) {
    match error {
        NoteError::NoNote { .. } => (NO_NOTE, StatusCode::NOT_FOUND),
        NoteError::TooMany { .. } | NoteError::Full { .. } => {
            ("memory_full", StatusCode::UNPROCESSABLE_ENTITY)
        }
        _ => ("invalid_note", StatusCode::UNPROCESSABLE_ENTITY),
    }
}

fn note_problem(error: &NoteError) -> Problem {
    let (word, status) = note_code(error);
    Problem::custom(word, status, error.to_string())
}

/// Lists the notes that have not expired.
#[utoipa::path(
    get, path = "/conversations/{conversation}/memory", tag = "memory",
    params(("conversation" = String, Path, description = "Its id"), ListNotesParams),
    responses((status = 200, description = "A page of them by key, or all", body = NotesDocument), ReadRefusals)
)]
async fn list_notes(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path(id): Path<String>,
    Query(listing): Query<ListNotesParams>,
) -> Result<Json<NotesDocument>, Problem> {
    let whose = NotesParams {
        scope: listing.scope,
        branch: listing.branch,
    };
    let asked = PageParams {
        limit: listing.limit,
        after: listing.after,
    };
    let (notes, at) = NotesHandle::new(&app, &owner, &id, &whose)
        .await?
        .read_notes()
        .await?;
    let notes = notes
        .iter_live(at)
        .map(|(key, note)| NoteDocument::new(key, note, at))
        .collect();
    let list = format!("notes {id}");
    let (notes, next) = cut_page(&owner, &list, notes, &asked, |note: &NoteDocument| {
        note.key.clone()
    })?;
    Ok(Json(NotesDocument { notes, next }))
}

/// Returns a note by its key.
#[utoipa::path(
    get, path = "/conversations/{conversation}/memory/{note}", tag = "memory",
    params(("conversation" = String, Path, description = "Its id"), ("note" = String, Path, description = "Its key"), NotesParams),
    responses((status = 200, description = "It", body = NoteDocument), ReadRefusals)
)]
async fn show_note(
    State(app): State<App>,
    ReadAccess(owner): ReadAccess,
    Path((id, key)): Path<(String, String)>,
    Query(whose): Query<NotesParams>,
) -> Result<Json<NoteDocument>, Problem> {
    let (notes, at) = NotesHandle::new(&app, &owner, &id, &whose)
        .await?
        .read_notes()
        .await?;
    let note = notes
        .get_live(&key, at)
        .ok_or_else(|| note_not_found(&key))?;
    Ok(Json(NoteDocument::new(&key, note, at)))
}

/// A change of a note; fields that are left out stay as they are.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NoteEdit)]
struct NoteEditDocument {
    /// Text of the note; required for a new one.
    value: Option<String>,
    /// Subject of the note; an empty text removes it.
    description: Option<String>,
    /// Importance from 0 to 100: the larger, the later the note is left out where space is short.
    #[schema(maximum = 100)]
    importance: Option<u8>,
    /// When the note expires. Default: unchanged; never, for a new note.
    #[schema(inline)]
    expires: Option<Expires>,
}

#[derive(Clone, Copy, Deserialize, ToSchema)]
#[serde(rename_all = "snake_case")]
enum Expires {
    /// The note never expires.
    Never,
    /// After this number of further answers of the model.
    Answers(u64),
    /// After this number of milliseconds.
    Ms(u64),
}

impl From<NoteEditDocument> for NoteUpdate {
    fn from(asked: NoteEditDocument) -> Self {
        Self {
            value: asked.value,
            description: asked.description,
            importance: asked.importance,
            ttl: asked.expires.map(|expires| match expires {
                Expires::Never => NoteTtl::Never,
                Expires::Answers(count) => NoteTtl::Responses(count),
                Expires::Ms(ms) => NoteTtl::Ms(ms),
            }),
        }
    }
}

/// Creates a note, or changes one.
#[utoipa::path(
    put, path = "/conversations/{conversation}/memory/{note}", tag = "memory",
    request_body(content = NoteEditDocument, example = json!({"value": "Portuguese", "description": "language of answers", "importance": 80, "expires": {"answers": 20}})),
    params(("conversation" = String, Path, description = "Its id"), ("note" = String, Path, description = "Its key"), NotesParams),
    responses((status = 200, description = "What became of it", body = NoteDoneDocument), WriteRefusals)
)]
async fn set_note(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, key)): Path<(String, String)>,
    Query(whose): Query<NotesParams>,
    Json(asked): Json<NoteEditDocument>,
) -> Result<Json<NoteDoneDocument>, Problem> {
    let edit = NoteUpdate::from(asked);
    let opened = NotesHandle::new(&app, &owner, &id, &whose).await?;
    let handle = opened.chat.layer::<Memory>()?;
    let done = handle.update(|notes, context| {
        let at = opened.memory.note_time(notes, context);
        Ok(notes.upsert(&key, edit.clone(), at))
    });
    let done = done.await?.map_err(|error| note_problem(&error))?.as_str();
    Ok(Json(NoteDoneDocument { key, done }))
}

/// Operations on notes, which are done in their order.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NoteOperations)]
struct NoteOperationsDocument {
    /// The operations, 1 to 100.
    #[schema(min_items = 1, max_items = 100)]
    operations: Vec<NoteOperationDocument>,
}

/// An operation on a note.
#[derive(Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = NoteOperation)]
struct NoteOperationDocument {
    /// What is done.
    op: NoteOp,
    /// Key of the note.
    key: String,
    /// Of `put`: text of the note; required for a new one.
    value: Option<String>,
    /// Of `put`: subject of the note; an empty text removes it.
    description: Option<String>,
    /// Of `put`: importance from 0 to 100.
    #[schema(maximum = 100)]
    importance: Option<u8>,
    /// Of `put`: when the note expires. Default: unchanged; never, for a new note.
    #[schema(inline)]
    expires: Option<Expires>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, ToSchema)]
#[serde(rename_all = "lowercase")]
enum NoteOp {
    /// The note is read.
    Get,
    /// The note is created, or changed.
    Put,
    /// The note is deleted.
    Delete,
}

/// The results of operations on notes.
#[derive(Serialize, ToSchema)]
#[schema(as = NoteResults)]
struct NoteResultsDocument {
    /// A result for each operation, in their order.
    results: Vec<NoteResultDocument>,
}

/// The result of an operation on a note.
#[derive(Serialize, ToSchema)]
#[schema(as = NoteOperationResult)]
struct NoteResultDocument {
    /// Key of the note.
    key: String,
    /// What was done; `null` if nothing could be.
    #[schema(value_type = Option<NoteResultSchema>)]
    done: Option<&'static str>,
    /// The note that was asked for with `get`; else `null`.
    note: Option<NoteDocument>,
    /// Why nothing was done; `null` if something was.
    error: Option<NoteFaultDocument>,
}

/// Why an operation on a note did nothing.
#[derive(Serialize, ToSchema)]
#[schema(as = NoteFault)]
struct NoteFaultDocument {
    /// Code of the error: `no_note`, `invalid_note` or `memory_full`.
    code: &'static str,
    /// Description of what happened, and to what.
    detail: String,
}

/// Checked operation on a note.
enum NoteAction {
    Get,
    Put(NoteUpdate),
    Delete,
}

impl NoteAction {
    fn new(index: usize, asked: NoteOperationDocument) -> Result<(String, Self), Problem> {
        let edit = NoteUpdate::from(NoteEditDocument {
            value: asked.value,
            description: asked.description,
            importance: asked.importance,
            expires: asked.expires,
        });
        let is_edit = edit != NoteUpdate::default();
        let action = match asked.op {
            NoteOp::Put => Self::Put(edit),
            NoteOp::Get | NoteOp::Delete if is_edit => {
                return Err(Problem::new(
                    Code::BadBody,
                    format!("`operations[{index}]`: only `put` takes more than `op` and `key`"),
                ));
            }
            NoteOp::Get => Self::Get,
            NoteOp::Delete => Self::Delete,
        };
        Ok((asked.key, action))
    }

    fn run(&self, key: &str, notes: &mut Notes, at: NoteTime) -> NoteResultDocument {
        let there = notes.get_live(key, at);
        let note = match self {
            Self::Get => there.map(|note| NoteDocument::new(key, note, at)),
            Self::Put(_) | Self::Delete => None,
        };
        let done = match self {
            Self::Put(edit) => notes
                .upsert(key, edit.clone(), at)
                .map(EditResult::as_str)
                .map_err(|error| (note_code(&error).0, error.to_string())),
            _ if there.is_none() => Err((NO_NOTE, no_note_detail(key))),
            Self::Get => Ok("found"),
            Self::Delete => {
                notes.delete(key);
                Ok("deleted")
            }
        };
        let (done, error) = match done {
            Ok(done) => (Some(done), None),
            Err((code, detail)) => (None, Some(NoteFaultDocument { code, detail })),
        };
        NoteResultDocument {
            key: key.to_owned(),
            done,
            note,
            error,
        }
    }
}

/// Reads and changes several notes.
///
/// They are done in order, each on what those before it left, and stored in one transaction. One that fails says why, and the others
/// are done all the same.
#[utoipa::path(
    post, path = "/conversations/{conversation}/memory", tag = "memory",
    request_body(content = NoteOperationsDocument, example = json!({"operations": [
        {"op": "put", "key": "language", "value": "Portuguese", "importance": 80},
        {"op": "get", "key": "city"},
        {"op": "delete", "key": "draft"},
    ]})),
    params(("conversation" = String, Path, description = "Its id"), NotesParams, IdempotencyKeyParam),
    responses((status = 200, description = "A result for each", body = NoteResultsDocument), WriteRefusals)
)]
async fn change_notes(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path(id): Path<String>,
    Query(whose): Query<NotesParams>,
    Json(asked): Json<NoteOperationsDocument>,
) -> Result<Json<NoteResultsDocument>, Problem> {
    let count = asked.operations.len();
    if !(1..=MAX_OPERATIONS).contains(&count) {
        let detail = format!("`operations` has {count} elements; from 1 to {MAX_OPERATIONS}");
        return Err(Problem::new(Code::BadBody, detail));
    }
    let actions = asked.operations.into_iter().enumerate();
    let actions = actions
        .map(|(index, one)| NoteAction::new(index, one))
        .collect::<Result<Vec<_>, _>>()?;
    let opened = NotesHandle::new(&app, &owner, &id, &whose).await?;
    let handle = opened.chat.layer::<Memory>()?;
    let results = handle.update(|notes, context| {
        let at = opened.memory.note_time(notes, context);
        let run = |(key, action): &(String, NoteAction)| action.run(key, notes, at);
        Ok(actions.iter().map(run).collect())
    });
    let results = results.await?;
    Ok(Json(NoteResultsDocument { results }))
}

/// Deletes a note.
#[utoipa::path(
    delete, path = "/conversations/{conversation}/memory/{note}", tag = "memory",
    params(("conversation" = String, Path, description = "Its id"), ("note" = String, Path, description = "Its key"), NotesParams),
    responses((status = 204, description = "It is gone"), WriteRefusals)
)]
async fn delete_note(
    State(app): State<App>,
    WriteAccess(owner): WriteAccess,
    Path((id, key)): Path<(String, String)>,
    Query(whose): Query<NotesParams>,
) -> Result<StatusCode, Problem> {
    let opened = NotesHandle::new(&app, &owner, &id, &whose).await?;
    let handle = opened.chat.layer::<Memory>()?;
    let gone = handle.update(|notes, context| {
        let at = opened.memory.note_time(notes, context);
        let there = notes.get_live(&key, at).is_some();
        Ok(there.then(|| notes.delete(&key)).flatten())
    });
    gone.await?
        .map(|_| StatusCode::NO_CONTENT)
        .ok_or_else(|| note_not_found(&key))
}
