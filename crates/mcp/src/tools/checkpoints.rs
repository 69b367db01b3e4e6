//! `create_checkpoint`, `restore_checkpoint`. They are listed with the branches.

use schemars::JsonSchema;
use serde::Deserialize;

use super::branches::{OneBranch, OneCheckpoint};
use crate::tool::{Effect, Tool};
use crate::trouble::Trouble;
use crate::visit::Visit;

pub(crate) struct CreateCheckpoint;
pub(crate) struct RestoreCheckpoint;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
    /// The conversation's id.
    conversation: String,
    /// The checkpoint's name.
    name: String,
    /// The branch whose end it names; default: the active one.
    branch: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Restore {
    /// The conversation's id.
    conversation: String,
    /// The checkpoint's name.
    name: String,
}

impl Tool for CreateCheckpoint {
    const NAME: &'static str = "create_checkpoint";
    const TITLE: &'static str = "Create a checkpoint";
    const ABOUT: &'static str = "Names the end of a conversation, before something risky say, so that \
        restore_checkpoint can go back to it. A checkpoint that has the name already is moved.";
    const EFFECT: Effect = Effect::Replaces;
    type Arguments = Create;
    type Answer = OneCheckpoint;

    async fn call(visit: Visit, arguments: Create) -> Result<OneCheckpoint, Trouble> {
        let branch = arguments.branch.as_deref();
        let chat = visit.conversation(&arguments.conversation, branch).await?;
        Ok((&chat.checkpoint(&arguments.name).await?).into())
    }
}

impl Tool for RestoreCheckpoint {
    const NAME: &'static str = "restore_checkpoint";
    const TITLE: &'static str = "Go back to a checkpoint";
    const ABOUT: &'static str = "Goes back to a checkpoint: makes a new branch that ends there, and makes it the \
        active one. What was said since stays on its own branch.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Restore;
    type Answer = OneBranch;

    async fn call(visit: Visit, arguments: Restore) -> Result<OneBranch, Trouble> {
        let chat = visit.conversation(&arguments.conversation, None).await?;
        Ok((&chat.restore(&arguments.name).await?).into())
    }
}
