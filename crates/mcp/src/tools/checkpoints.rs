//! `create_checkpoint`, `restore_checkpoint`. They are listed with the branches.

use schemars::JsonSchema;
use serde::Deserialize;

use super::branches::{BranchInfo, CheckpointInfo};
use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;

pub(crate) struct CreateCheckpoint;
pub(crate) struct RestoreCheckpoint;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateCheckpointArguments {
    /// Id of the conversation.
    conversation: String,
    /// Name of the checkpoint.
    name: String,
    /// Name of the branch to whose end it points; default: the active one.
    branch: Option<String>,
    /// Whether a checkpoint that has the name already is moved here; otherwise it is an error.
    #[serde(default, rename = "move")]
    moves: bool,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RestoreCheckpointArguments {
    /// Id of the conversation.
    conversation: String,
    /// Name of the checkpoint.
    name: String,
}

impl Tool for CreateCheckpoint {
    const NAME: &'static str = "create_checkpoint";
    const TITLE: &'static str = "Create a checkpoint";
    const ABOUT: &'static str = "Names the end of a conversation, before something risky say, so that \
        restore_checkpoint can go back to it.";
    const EFFECT: ToolEffect = ToolEffect::Replaces;
    type Arguments = CreateCheckpointArguments;
    type Answer = CheckpointInfo;

    async fn call(
        context: ToolContext,
        arguments: CreateCheckpointArguments,
    ) -> Result<CheckpointInfo, ToolError> {
        let branch = arguments.branch.as_deref();
        let chat = context
            .open_conversation(&arguments.conversation, branch)
            .await?;
        Ok(match arguments.moves {
            true => {
                let moved = chat.move_checkpoint(&arguments.name).await?;
                let at = moved.checkpoint.node;
                let from = moved.replaced.filter(|from| *from != at);
                let mut info = CheckpointInfo::from(&moved.checkpoint);
                info.moved_from = from.map(|from| from.to_string());
                info
            }
            false => (&chat.checkpoint(&arguments.name).await?).into(),
        })
    }
}

impl Tool for RestoreCheckpoint {
    const NAME: &'static str = "restore_checkpoint";
    const TITLE: &'static str = "Go back to a checkpoint";
    const ABOUT: &'static str = "Goes back to a checkpoint: makes a new branch that ends there, and makes it the \
        active one. What was said since stays on its own branch.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Arguments = RestoreCheckpointArguments;
    type Answer = BranchInfo;

    async fn call(
        context: ToolContext,
        arguments: RestoreCheckpointArguments,
    ) -> Result<BranchInfo, ToolError> {
        let chat = context
            .open_conversation(&arguments.conversation, None)
            .await?;
        Ok((&chat.restore(&arguments.name).await?).into())
    }
}
