//! Branches, checkpoints, and going back.

use contexture::store::{RefChange, RefChanged};
use contexture_api::{BranchDocument, BranchesDocument, CheckpointDocument, CheckpointsDocument};
use serde::Deserialize;

use super::{Reply, Scope, parse_branch, parse_node};
use crate::failure::Failure;

/// A name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NameDocument {
    name: String,
}

pub(super) async fn list(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let refs = scope.chat().await?.refs().await?;
    Reply::new(&BranchesDocument {
        branches: refs.branches.iter().map(Into::into).collect(),
        next: None,
    })
}

/// A branch to be created.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct NewBranchDocument {
    name: String,
    /// Node at which it begins. Default: the head of the branch that it is asked of.
    at: Option<String>,
}

pub(super) async fn create(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: NewBranchDocument = scope.parse()?;
    let chat = scope.chat().await?;
    let base = match &asked.at {
        Some(node) => Some(parse_node(node)?),
        None => chat.head().await?,
    };
    let branch = chat.create_branch_at(&asked.name, base).await?;
    Reply::new(&BranchDocument::from(&branch))
}

pub(super) async fn switch(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: NameDocument = scope.parse()?;
    let branch = scope.chat().await?.switch_branch(&asked.name).await?;
    Reply::new(&BranchDocument::from(&branch))
}

pub(super) async fn delete(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: NameDocument = scope.parse()?;
    // Before the database is asked, which would say that there is none of a name that cannot be.
    parse_branch(&asked.name)?;
    scope.chat().await?.delete_branch(&asked.name).await?;
    Ok(Reply::empty())
}

/// The point to go back to: exactly one is given.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RewindDocument {
    message: Option<String>,
    node: Option<String>,
    beginning: bool,
}

pub(super) async fn rewind(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: RewindDocument = scope.parse()?;
    let chat = scope.chat().await?;
    let branch = match (&asked.message, &asked.node, asked.beginning) {
        (Some(message), None, false) => chat.rewind(message).await?,
        (None, Some(node), false) => chat.rewind_to(parse_node(node)?).await?,
        (None, None, true) => chat.clear().await?,
        // Refused rather than ranked: who names two places meant only one of them.
        _ => {
            let detail = "expected one of `message`, `node` and `beginning=True`";
            return Err(Failure::argument("rewind", detail));
        }
    };
    Reply::new(&BranchDocument::from(&branch))
}

/// Where a branch is moved to, and the head that it must still have.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct MoveDocument {
    /// The new head. Default: none; the branch is empty then.
    to: Option<String>,
    expected_head: String,
}

pub(super) async fn move_branch(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: MoveDocument = scope.parse()?;
    let chat = scope.chat().await?;
    let change = RefChange::Move {
        branch: chat.branch(),
        expect: Some(parse_node(&asked.expected_head)?),
        to: asked.to.as_deref().map(parse_node).transpose()?,
    };
    let store = scope.engine.store();
    let at_ms = scope.engine.now_ms();
    match store
        .change_ref(chat.owner(), chat.id(), change, at_ms)
        .await?
    {
        RefChanged::Branch(branch) => Reply::new(&BranchDocument::from(&branch)),
        // Only a branch is moved.
        _ => Ok(Reply::empty()),
    }
}

pub(super) async fn list_checkpoints(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let refs = scope.chat().await?.refs().await?;
    Reply::new(&CheckpointsDocument {
        checkpoints: refs.checkpoints.iter().map(Into::into).collect(),
        next: None,
    })
}

/// A checkpoint to be set.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct SetCheckpointDocument {
    name: String,
    /// Whether one that has the name already is moved.
    r#move: bool,
}

pub(super) async fn set_checkpoint(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: SetCheckpointDocument = scope.parse()?;
    let chat = scope.chat().await?;
    let document: CheckpointDocument = match asked.r#move {
        true => (&chat.move_checkpoint(&asked.name).await?).into(),
        false => (&chat.checkpoint(&asked.name).await?).into(),
    };
    Reply::new(&document)
}

pub(super) async fn delete_checkpoint(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: NameDocument = scope.parse()?;
    scope.chat().await?.delete_checkpoint(&asked.name).await?;
    Ok(Reply::empty())
}

pub(super) async fn restore_checkpoint(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: NameDocument = scope.parse()?;
    let branch = scope.chat().await?.restore(&asked.name).await?;
    Reply::new(&BranchDocument::from(&branch))
}
