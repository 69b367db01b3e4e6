//! Import and export.

use std::str;

use contexture::EngineError;
use contexture::engine::ImportOptions;
use contexture::sessions::SessionFormat;
use contexture::store::{Export, ImportAll};
use contexture_api::operations::{self, SessionImport};
use serde::{Deserialize, Serialize};

use super::{Reply, Scope};
use crate::failure::Failure;

/// How a text with sessions of other programs is read.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ImportSessionsDocument {
    format: Option<String>,
    name: Option<String>,
    resource: Option<String>,
    keep_going: bool,
}

pub(super) async fn import_sessions(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: ImportSessionsDocument = scope.parse()?;
    let conversation = scope.request.conversation.as_ref();
    let import = SessionImport {
        format: asked.format,
        name: asked.name,
        keep_going: asked.keep_going,
        options: ImportOptions {
            owner: scope.owner()?,
            conversation: conversation.map(|_| scope.conversation_id()).transpose()?,
            resource: asked.resource,
            ..ImportOptions::default()
        },
    };
    let text = attached_text(scope)?;
    Reply::new(&operations::import_sessions(scope.engine, text, &import).await?)
}

fn attached_text<'a>(scope: &'a Scope<'_>) -> Result<&'a str, Failure> {
    let wrong = |_| Failure::argument("text", "is not UTF-8");
    str::from_utf8(&scope.request.attachment).map_err(wrong)
}

/// The format of an export.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ExportDocument {
    format: String,
}

pub(super) async fn export(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: ExportDocument = scope.parse()?;
    let format: SessionFormat = asked.format.parse().map_err(EngineError::from)?;
    let text = scope.chat().await?.export(format).await?;
    Reply::with_attachments(&(), vec![text.into_bytes()])
}

pub(super) async fn export_lines(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let (owner, id) = (scope.owner()?, scope.conversation_id()?);
    let store = &**scope.engine.store();
    let mut export = Export::new(store, &owner, &id).await?;
    let mut text = Vec::new();
    while let Some(lines) = export.next_lines().await? {
        text.extend_from_slice(lines.as_bytes());
    }
    Reply::with_attachments(&(), vec![text])
}

/// What was imported.
#[derive(Debug, Serialize)]
struct ImportedDocument {
    conversations: Vec<String>,
}

pub(super) async fn import_lines(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let text = attached_text(scope)?;
    let owner = scope.owner()?;
    let mut import = ImportAll::new(&**scope.engine.store(), &owner);
    for line in text.split_terminator('\n') {
        if import.import_line(line).await.is_break() {
            break;
        }
    }
    let ended = import.finish_import().await;
    if let Some(error) = ended.error {
        return Err(error.source.into());
    }
    let ids = ended.conversations.iter().map(|one| one.id.to_string());
    Reply::new(&ImportedDocument {
        conversations: ids.collect(),
    })
}
