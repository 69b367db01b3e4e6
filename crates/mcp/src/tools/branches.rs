//! `list_branches`, `create_branch`, `switch_branch`.

use contexture::store::{Branch, Checkpoint};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Effect, Tool};
use crate::trouble::Trouble;
use crate::visit::Visit;
use crate::words::instant;

/// Branches and checkpoints of a page.
const PAGE: usize = 100;

pub(crate) struct ListBranches;
pub(crate) struct CreateBranch;
pub(crate) struct SwitchBranch;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct List {
    /// The conversation's id.
    conversation: String,
    /// Skip so many branches and checkpoints: `next` of the page before.
    #[serde(default)]
    from: usize,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Names {
    /// The branches.
    branches: Vec<OneBranch>,
    /// The checkpoints.
    checkpoints: Vec<OneCheckpoint>,
    /// `from` of the next page, if there are more.
    #[serde(skip_serializing_if = "Option::is_none")]
    next: Option<usize>,
}

/// A branch.
#[derive(Serialize, JsonSchema)]
pub(crate) struct OneBranch {
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
pub(crate) struct OneCheckpoint {
    /// Its name.
    name: String,
    /// The id of the item it stands at.
    item: String,
    /// When it was set.
    at: String,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Create {
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
pub(crate) struct Switch {
    /// The conversation's id.
    conversation: String,
    /// The branch.
    name: String,
}

impl Tool for ListBranches {
    const NAME: &'static str = "list_branches";
    const TITLE: &'static str = "List branches and checkpoints";
    const ABOUT: &'static str = "Lists the branches and the checkpoints of a conversation.";
    const EFFECT: Effect = Effect::Reads;
    type Arguments = List;
    type Answer = Names;

    async fn call(visit: Visit, arguments: List) -> Result<Names, Trouble> {
        let chat = visit.conversation(&arguments.conversation, None).await?;
        let refs = chat.refs().await?;
        let from = arguments.from;
        let end = from.saturating_add(PAGE);
        let more = refs.branches.len().max(refs.checkpoints.len()) > end;
        let branches = refs.branches.iter().skip(from).take(PAGE);
        let checkpoints = refs.checkpoints.iter().skip(from).take(PAGE);
        Ok(Names {
            branches: branches.map(OneBranch::from).collect(),
            checkpoints: checkpoints.map(OneCheckpoint::from).collect(),
            next: more.then_some(end),
        })
    }
}

impl Tool for CreateBranch {
    const NAME: &'static str = "create_branch";
    const TITLE: &'static str = "Create a branch";
    const ABOUT: &'static str = "Makes a branch of a conversation, at its end or at an earlier item, to try \
        something else from there. Nothing is copied or lost; switch_branch makes the conversation go on there.";
    const EFFECT: Effect = Effect::Adds;
    type Arguments = Create;
    type Answer = OneBranch;

    async fn call(visit: Visit, arguments: Create) -> Result<OneBranch, Trouble> {
        let branch = arguments.branch.as_deref();
        let chat = visit.conversation(&arguments.conversation, branch).await?;
        let base = match &arguments.at {
            Some(at) => Some(visit.place(&chat, at).await?.node),
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
    const EFFECT: Effect = Effect::Sets;
    type Arguments = Switch;
    type Answer = OneBranch;

    async fn call(visit: Visit, arguments: Switch) -> Result<OneBranch, Trouble> {
        let chat = visit.conversation(&arguments.conversation, None).await?;
        Ok((&chat.switch_branch(&arguments.name).await?).into())
    }
}

impl From<&Branch> for OneBranch {
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

impl From<&Checkpoint> for OneCheckpoint {
    fn from(checkpoint: &Checkpoint) -> Self {
        Self {
            name: checkpoint.name.to_string(),
            item: checkpoint.node.to_string(),
            at: instant(checkpoint.at_ms),
        }
    }
}
