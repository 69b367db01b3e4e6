//! `list_branches`, `create_branch`, `switch_branch`.

use contexture::store::{Branch, Checkpoint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;
use contexture_api::format_timestamp;

/// Branches and checkpoints of a page.
const PAGE: usize = 100;

pub(crate) struct ListBranches;
pub(crate) struct CreateBranch;
pub(crate) struct SwitchBranch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListBranchesArguments {
    /// The conversation's id.
    conversation: String,
    /// Skip so many branches and checkpoints: `next` of the page before.
    #[serde(default)]
    from: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RefPage {
    /// The branches.
    branches: Vec<BranchInfo>,
    /// The checkpoints.
    checkpoints: Vec<CheckpointInfo>,
    /// `from` of the next page, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// A branch.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BranchInfo {
    /// Its name.
    name: String,
    /// Whether programs that name none work on it.
    active: bool,
    /// The id of its last item; absent while it is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// Items on its path.
    items: u64,
    /// Messages on its path.
    messages: u64,
}

/// A checkpoint.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckpointInfo {
    /// Its name.
    name: String,
    /// The id of the item it stands at.
    item: String,
    /// When it was set.
    at: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateBranchArguments {
    /// The conversation's id.
    conversation: String,
    /// The new branch's name: letters, digits and . _ : - /
    name: String,
    /// The id of the item or message it goes on from. Default: the end of `branch`.
    at: Option<String>,
    /// The branch it parts from; default: the active one.
    branch: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchBranchArguments {
    /// The conversation's id.
    conversation: String,
    /// The branch.
    name: String,
}

impl Tool for ListBranches {
    const NAME: &'static str = "list_branches";
    const TITLE: &'static str = "List branches and checkpoints";
    const ABOUT: &'static str = "Lists the branches and the checkpoints of a conversation.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    type Arguments = ListBranchesArguments;
    type Answer = RefPage;

    async fn call(
        context: ToolContext,
        arguments: ListBranchesArguments,
    ) -> Result<RefPage, ToolError> {
        let chat = context
            .open_conversation(&arguments.conversation, None)
            .await?;
        let refs = chat.refs().await?;
        let from = arguments.from;
        let end = from.saturating_add(PAGE);
        // Both lists turn their pages together: the longer one decides whether there is another
        // page.
        let more = refs.branches.len().max(refs.checkpoints.len()) > end;
        let branches = refs.branches.iter().skip(from).take(PAGE);
        let checkpoints = refs.checkpoints.iter().skip(from).take(PAGE);
        Ok(RefPage {
            branches: branches.map(BranchInfo::from).collect(),
            checkpoints: checkpoints.map(CheckpointInfo::from).collect(),
            next: more.then_some(end),
        })
    }
}

impl Tool for CreateBranch {
    const NAME: &'static str = "create_branch";
    const TITLE: &'static str = "Create a branch";
    const ABOUT: &'static str = "Makes a branch of a conversation, at its end or at an earlier item, to try \
        something else from there. Nothing is copied or lost; switch_branch makes the conversation go on there.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Arguments = CreateBranchArguments;
    type Answer = BranchInfo;

    async fn call(
        context: ToolContext,
        arguments: CreateBranchArguments,
    ) -> Result<BranchInfo, ToolError> {
        let branch = arguments.branch.as_deref();
        let chat = context
            .open_conversation(&arguments.conversation, branch)
            .await?;
        // `at` may name an item that is on no branch; it is found all the same.
        let base = match &arguments.at {
            Some(at) => Some(context.locate_item(&chat, at).await?.node),
            None => chat.head().await?,
        };
        let branch = chat.create_branch_at(&arguments.name, base).await?;
        Ok((&branch).into())
    }
}

impl Tool for SwitchBranch {
    const NAME: &'static str = "switch_branch";
    const TITLE: &'static str = "Switch to a branch";
    const ABOUT: &'static str = "Makes a branch the active one: whoever names none goes on there. The others stay as \
        they are.";
    const EFFECT: ToolEffect = ToolEffect::Sets;
    type Arguments = SwitchBranchArguments;
    type Answer = BranchInfo;

    async fn call(
        context: ToolContext,
        arguments: SwitchBranchArguments,
    ) -> Result<BranchInfo, ToolError> {
        let chat = context
            .open_conversation(&arguments.conversation, None)
            .await?;
        Ok((&chat.switch_branch(&arguments.name).await?).into())
    }
}

impl From<&Branch> for BranchInfo {
    fn from(branch: &Branch) -> Self {
        Self {
            name: branch.name.to_string(),
            active: branch.active,
            head: branch.head.map(|head| head.to_string()),
            items: branch.nodes,
            messages: branch.messages,
        }
    }
}

impl From<&Checkpoint> for CheckpointInfo {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            name: checkpoint.name.to_string(),
            item: checkpoint.node.to_string(),
            at: format_timestamp(checkpoint.at_ms),
        }
    }
}
