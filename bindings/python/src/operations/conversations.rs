//! Conversations: opened, listed, changed, deleted.

use std::collections::BTreeMap;

use contexture::ir::Raw;
use contexture::store::{
    ConversationCursor, ConversationUpdate, ListConversations, MetadataChange, TitleChange,
};
use contexture_api::operations::{encode_conversation_cursor, parse_conversation_cursor};
use contexture_api::{ConversationDocument, ConversationsDocument};
use serde::{Deserialize, Deserializer};

use super::{Reply, Scope};
use crate::failure::Failure;

/// How a conversation is opened.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct OpenDocument {
    /// Whether it must be there already; otherwise it is created where it is not.
    existing: bool,
    title: Option<String>,
    resource: Option<String>,
    #[serde(default)]
    metadata: BTreeMap<String, Raw>,
}

pub(super) async fn open(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: OpenDocument = scope.parse()?;
    let mut builder = scope.builder()?;
    if let Some(title) = asked.title {
        builder = builder.title(title);
    }
    if let Some(resource) = asked.resource {
        builder = builder.resource(resource);
    }
    for (key, value) in asked.metadata {
        builder = builder.metadata(key, value);
    }
    let chat = match asked.existing {
        true => builder.open_existing().await?,
        false => builder.open().await?,
    };
    Reply::new(&ConversationDocument::from(&chat.info().await?))
}

/// The conversations to list.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ListDocument {
    resource: Option<String>,
    title: Option<String>,
    limit: Option<usize>,
    after: Option<String>,
}

pub(super) async fn list(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: ListDocument = scope.parse()?;
    let list = ListConversations {
        resource: asked.resource,
        title: asked.title,
        limit: asked.limit,
        after: asked.after.as_deref().map(parse_cursor).transpose()?,
        ..ListConversations::default()
    };
    let page = scope
        .engine
        .list_conversations(&scope.owner()?, list)
        .await?;
    let next = page.next.as_ref().map(encode_conversation_cursor);
    Reply::new(&ConversationsDocument {
        conversations: page.conversations.iter().map(Into::into).collect(),
        more: next.is_some(),
        complete: page.complete,
        next,
    })
}

fn parse_cursor(text: &str) -> Result<ConversationCursor, Failure> {
    let wrong = || Failure::argument("after", "expected the `next` of a page");
    parse_conversation_cursor(text).ok_or_else(wrong)
}

pub(super) async fn show(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let (owner, id) = (scope.owner()?, scope.conversation_id()?);
    let found = scope.engine.conversation_info(&owner, &id).await?;
    Reply::new(&ConversationDocument::from(&found))
}

/// A change of a conversation; what is left out stays.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct UpdateDocument {
    #[serde(default, deserialize_with = "deserialize_present")]
    title: Option<Option<String>>,
    metadata: Option<BTreeMap<String, Option<Raw>>>,
    version: Option<u64>,
}

/// Reads a member that is there, so that `null` differs from a missing one.
fn deserialize_present<'de, T: Deserialize<'de>, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<T>, D::Error> {
    T::deserialize(deserializer).map(Some)
}

pub(super) async fn update(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: UpdateDocument = scope.parse()?;
    let update = ConversationUpdate {
        title: asked.title.map_or(TitleChange::Keep, TitleChange::Set),
        metadata: asked
            .metadata
            .map_or(MetadataChange::Keep, MetadataChange::Merge),
        expect_version: asked.version,
        at_ms: scope.engine.now_ms(),
    };
    let (owner, id) = (scope.owner()?, scope.conversation_id()?);
    let changed = scope
        .engine
        .store()
        .update_conversation(&owner, &id, update)
        .await?;
    Reply::new(&ConversationDocument::from(&changed))
}

pub(super) async fn delete(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let (owner, id) = (scope.owner()?, scope.conversation_id()?);
    scope.engine.delete_conversation(&owner, &id).await?;
    Ok(Reply::empty())
}
