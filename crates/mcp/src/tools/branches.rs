//! `list_branches`, `create_branch`, `switch_branch`.

use contexture::store::{Branch, Checkpoint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;
use contexture_api::format_timestamp;

/// Maximum number of branches, and of checkpoints, on a page.
const PAGE: usize = 100;

pub(crate) struct ListBranches;
pub(crate) struct CreateBranch;
pub(crate) struct SwitchBranch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListBranchesArguments {
    /// Id of the conversation.
    conversation: String,
    /// Number of branches and checkpoints to skip: `next` of the previous page.
    #[serde(default)]
    from: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct RefPage {
    /// Branches of this page, in order of creation.
    branches: Vec<BranchInfo>,
    /// Checkpoints of this page, in order of name.
    checkpoints: Vec<CheckpointInfo>,
    /// Value of `from` for the next page, if there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// A branch of a conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct BranchInfo {
    /// Name of the branch.
    name: String,
    /// Whether it is the active branch, which is used where none is named.
    active: bool,
    /// Id of its last item; absent while the branch is empty.
    #[serde(skip_serializing_if = "Option::is_none")]
    head: Option<String>,
    /// Number of items on its path.
    items: u64,
    /// Number of messages on its path.
    messages: u64,
}

/// A checkpoint of a conversation.
#[derive(Serialize, JsonSchema)]
pub(crate) struct CheckpointInfo {
    /// Name of the checkpoint.
    name: String,
    /// Id of the item that it points to.
    item: String,
    /// Time at which it was set (RFC 3339).
    at: String,
    /// Id of the item that it pointed to before; only in the answer to the call that moved it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) moved_from: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CreateBranchArguments {
    /// Id of the conversation.
    conversation: String,
    /// Name of the new branch, of letters, digits and any of . _ : - / only.
    name: String,
    /// Id of the item or message from which the new branch continues. Default: the end of `branch`.
    at: Option<String>,
    /// Name of the branch from which the new one starts; default: the active one.
    branch: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct SwitchBranchArguments {
    /// Id of the conversation.
    conversation: String,
    /// Name of the branch to make active.
    name: String,
}

impl Tool for ListBranches {
    const NAME: &'static str = "list_branches";
    const TITLE: &'static str = "List branches and checkpoints";
    const ABOUT: &'static str = "Lists the branches and the checkpoints of a conversation.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    const IS_PAGED: bool = true;
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
            moved_from: None,
        }
    }
}
