//! The notes of the memory layer.

use contexture::layers::StateScope;
use contexture_api::operations::ConversationNotes;
use contexture_api::{NoteDoneDocument, NoteEditDocument, NotesDocument};
use serde::Deserialize;

use super::{Reply, Scope};
use crate::failure::Failure;

/// What notes belong to.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename_all = "lowercase")]
enum NoteScope {
    /// The conversation's resource, or the conversation if it has none.
    Resource,
    Owner,
    /// The path: they rewind with it.
    Path,
}

/// The notes to list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListNotesRequest {
    scope: NoteScope,
}

/// A note to read or delete.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteRequest {
    key: String,
    scope: NoteScope,
}

/// A note to be written.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PutNoteRequest {
    key: String,
    scope: NoteScope,
    edit: NoteEditDocument,
}

async fn open(scope: &Scope<'_>, notes: NoteScope) -> Result<ConversationNotes, Failure> {
    let notes = match notes {
        NoteScope::Resource => StateScope::Resource,
        NoteScope::Owner => StateScope::Global,
        NoteScope::Path => StateScope::Path,
    };
    Ok(ConversationNotes::new(scope.chat().await?, notes)?)
}

pub(super) async fn list(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: ListNotesRequest = scope.parse()?;
    let notes = open(scope, asked.scope).await?.list().await?;
    Reply::new(&NotesDocument { notes, next: None })
}

pub(super) async fn get(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: NoteRequest = scope.parse()?;
    let notes = open(scope, asked.scope).await?;
    Reply::new(&notes.get(&asked.key).await?)
}

pub(super) async fn put(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: PutNoteRequest = scope.parse()?;
    let notes = open(scope, asked.scope).await?;
    let done = notes.put(&asked.key, &asked.edit.into()).await?;
    Reply::new(&NoteDoneDocument {
        key: asked.key,
        done,
    })
}

pub(super) async fn delete(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: NoteRequest = scope.parse()?;
    open(scope, asked.scope).await?.delete(&asked.key).await?;
    Ok(Reply::empty())
}
