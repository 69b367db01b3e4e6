//! A program's own values beside the tree of a conversation: small ones by key with a version, and blobs by their content.

use std::sync::Arc;

use contexture::store::{
    BlobId, EntryCursor, ExpectedVersion, KeyScope, KeyValueEntry, ListEntries, PutEntry,
};
use serde::{Deserialize, Serialize};

use super::{Reply, Scope};
use crate::failure::Failure;

/// Begins the keys of programs' values, so that none is a key of the engine's own.
const PREFIX: &str = "app/";

/// A value to read, write or delete.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ValueRequest {
    key: String,
    /// Version that must be stored; 0: none may be. Default: any.
    version: Option<u64>,
}

/// A value without its bytes, which go beside it.
#[derive(Debug, Serialize)]
struct ValueDocument {
    key: String,
    version: u64,
}

impl ValueDocument {
    fn new(entry: &KeyValueEntry) -> Self {
        let key = entry.key.strip_prefix(PREFIX).unwrap_or(&entry.key);
        Self {
            key: key.to_owned(),
            version: entry.version,
        }
    }
}

pub(super) async fn get(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: ValueRequest = scope.parse()?;
    let (owner, key) = (scope.owner()?, format!("{PREFIX}{}", asked.key));
    let at = KeyScope::Conversation(scope.conversation_id()?);
    match scope.engine.store().get_entry(&owner, &at, &key).await? {
        Some(entry) => {
            Reply::with_attachments(&ValueDocument::new(&entry), vec![entry.value.to_vec()])
        }
        None => Ok(Reply::empty()),
    }
}

pub(super) async fn put(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let value: Arc<[u8]> = scope.request.attachment.as_slice().into();
    write(scope, Some(value)).await
}

pub(super) async fn delete(scope: &Scope<'_>) -> Result<Reply, Failure> {
    write(scope, None).await
}

async fn write(scope: &Scope<'_>, value: Option<Arc<[u8]>>) -> Result<Reply, Failure> {
    let asked: ValueRequest = scope.parse()?;
    let put = PutEntry {
        key: format!("{PREFIX}{}", asked.key),
        value,
        expect: match asked.version {
            None => ExpectedVersion::Any,
            Some(0) => ExpectedVersion::Absent,
            Some(version) => ExpectedVersion::Version(version),
        },
        at_ms: scope.engine.now_ms(),
    };
    let at = KeyScope::Conversation(scope.conversation_id()?);
    let version = scope
        .engine
        .store()
        .put_entry(&scope.owner()?, &at, put)
        .await?;
    Reply::new(&ValueDocument {
        key: asked.key,
        version,
    })
}

/// The values to list, in the order of their keys.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListValuesRequest {
    prefix: String,
    limit: Option<usize>,
    /// Key of the last value of the page before.
    after: Option<String>,
}

/// A page of values.
#[derive(Debug, Serialize)]
struct ValuesDocument {
    values: Vec<ValueDocument>,
    next: Option<String>,
}

pub(super) async fn list(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: ListValuesRequest = scope.parse()?;
    let at = KeyScope::Conversation(scope.conversation_id()?);
    let after = asked.after.map(|key| EntryCursor {
        scope: at.clone(),
        key: format!("{PREFIX}{key}"),
    });
    let list = ListEntries {
        limit: asked.limit,
        after,
        ..ListEntries::in_scope(at, format!("{PREFIX}{}", asked.prefix))
    };
    let page = scope
        .engine
        .store()
        .list_entries(&scope.owner()?, list)
        .await?;
    let entries = page.entries.iter().map(|(_, entry)| entry);
    let values: Vec<ValueDocument> = entries.clone().map(ValueDocument::new).collect();
    let next = page.next.and(values.last().map(|last| last.key.clone()));
    let bytes = entries.map(|entry| entry.value.to_vec()).collect();
    Reply::with_attachments(&ValuesDocument { values, next }, bytes)
}

/// A blob, named by the hash of its bytes.
#[derive(Debug, Deserialize, Serialize)]
#[serde(deny_unknown_fields)]
struct BlobDocument {
    id: String,
}

pub(super) async fn put_blob(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let (owner, conversation) = (scope.owner()?, scope.conversation_id()?);
    let bytes = scope.request.attachment.as_slice().into();
    let id = scope
        .engine
        .store()
        .put_blob(&owner, &conversation, bytes)
        .await?;
    Reply::new(&BlobDocument { id: id.to_string() })
}

pub(super) async fn read_blob(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: BlobDocument = scope.parse()?;
    let (owner, conversation) = (scope.owner()?, scope.conversation_id()?);
    let id: BlobId = asked.id.parse()?;
    let bytes = scope
        .engine
        .store()
        .read_blob(&owner, &conversation, id)
        .await?;
    Reply::with_attachments(&asked, vec![bytes.to_vec()])
}
