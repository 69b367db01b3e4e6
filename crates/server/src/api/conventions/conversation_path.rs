//! Conversations, branches and nodes by the names they have in paths and queries.

use contexture::ir::{BranchName, ConversationId, NodeId};
use contexture::store::PathEnd;
use contexture::{Conversation, EngineError, Owner};
use serde::Deserialize;
use utoipa::IntoParams;

use crate::api::conventions::page::PageParams;
use crate::problem::Problem;
use crate::state::App;

/// The branch that a request is about.
#[derive(Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct BranchParams {
    /// Name of the branch. Default: the active one.
    pub(crate) branch: Option<String>,
}

/// On which branch, and which page of a list of what is there.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(crate) struct ListOnBranchParams {
    /// Name of the branch. Default: the active one.
    pub(crate) branch: Option<String>,
    /// Maximum number of entries. Default: all of them, or 100 with `after`.
    #[param(minimum = 1, maximum = 500)]
    limit: Option<usize>,
    /// Value of `next` of the previous page. Default: the first page.
    after: Option<String>,
}

impl ListOnBranchParams {
    /// Returns the page that is asked for.
    pub(crate) fn page(&self) -> PageParams {
        // Not one member of that type: a flattened one would let unknown parameters pass.
        PageParams {
            limit: self.limit,
            after: self.after.clone(),
        }
    }
}

/// Opens the owner's conversation of this id, on a branch or the active one.
pub(crate) async fn open_conversation(
    app: &App,
    owner: &Owner,
    id: &str,
    branch: Option<&str>,
) -> Result<Conversation, Problem> {
    // Never created here: a misspelt id would otherwise become an empty conversation.
    let mut builder = app.engine().conversation(id).owner(owner.as_str());
    if let Some(branch) = branch {
        builder = builder.branch(branch);
    }
    Ok(builder.open_existing().await?)
}

/// Parses a conversation's id.
pub(crate) fn conversation_id(id: &str) -> Result<ConversationId, Problem> {
    Ok(ConversationId::new(id).map_err(EngineError::from)?)
}

/// Parses a node's id.
pub(crate) fn node_id(text: &str) -> Result<NodeId, Problem> {
    Ok(text.parse::<NodeId>().map_err(EngineError::from)?)
}

/// Returns the end of a path at a branch.
pub(crate) fn at_branch(name: &str) -> Result<PathEnd, Problem> {
    Ok(PathEnd::Branch(
        BranchName::new(name).map_err(EngineError::from)?,
    ))
}
