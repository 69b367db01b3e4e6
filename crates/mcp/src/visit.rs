//! What a tool is given: whose things, and whether its answer is still waited for.

use contexture::ir::BranchName;
use contexture::ir::{MessageId, NodeId};
use contexture::store::ReadRequest;
use contexture::store::{At, Error as StoreError, NodeQuery, Span, Thing};
use contexture::{Cancel, Conversation, Engine, EngineError, Owner};

use crate::trouble::Trouble;

/// The most digits and the fewest of an item's id.
const DIGITS: std::ops::RangeInclusive<usize> = 4..=32;

/// One call: whose, and whether it was called off.
#[derive(Clone, Debug)]
pub(crate) struct Visit {
    pub(crate) engine: Engine,
    pub(crate) owner: Owner,
    pub(crate) cancel: Cancel,
}

/// Where an item stands.
#[derive(Clone, Debug)]
pub(crate) struct Place {
    /// Its node.
    pub(crate) node: NodeId,
    /// Its position on its path; the first is 1.
    pub(crate) position: u64,
    /// A path it is on: the handle's branch, if that is one.
    pub(crate) at: At,
}

impl Visit {
    /// A conversation of the owner's, on a branch or on the active one.
    pub(crate) async fn conversation(
        &self,
        id: &str,
        branch: Option<&str>,
    ) -> Result<Conversation, Trouble> {
        let mut builder = self.engine.conversation(id).owner(self.owner.as_str());
        if let Some(branch) = branch {
            builder = builder.branch(branch);
        }
        Ok(builder.existing().await?)
    }

    /// The place of an item, by its id or the beginning of it, or of the last item of a message, by the whole id.
    pub(crate) async fn place(&self, chat: &Conversation, id: &str) -> Result<Place, Trouble> {
        let store = chat.engine().store();
        let nodes = async |query| store.nodes(chat.owner(), chat.id(), query).await;
        let message = MessageId::new(id)?;
        let found = match nodes(NodeQuery::Message(message)).await {
            Err(StoreError::NotFound { .. }) if is_digits(id) => {
                nodes(NodeQuery::Prefix(id.to_ascii_lowercase())).await?
            }
            other => other?,
        };
        let branch = At::Branch(chat.branch());
        for node in found.iter().rev() {
            let request = ReadRequest {
                at: branch.clone(),
                span: Span::Between(node.depth, node.depth),
                limit: None,
            };
            let page = store.read(chat.owner(), chat.id(), request).await?;
            if page.nodes.first().is_some_and(|there| there.id == node.id) {
                return Ok(Place {
                    node: node.id,
                    position: node.depth,
                    at: branch,
                });
            }
        }
        let last = found.last();
        let last = last.ok_or_else(|| StoreError::not_found(Thing::Message, id))?;
        Ok(Place {
            node: last.id,
            position: last.depth,
            at: At::Node(last.id),
        })
    }
}

/// Where a path ends: at a branch that is named, or where the handle is.
pub(crate) fn branch_name(name: &str) -> Result<BranchName, Trouble> {
    Ok(BranchName::new(name).map_err(EngineError::from)?)
}

fn is_digits(id: &str) -> bool {
    DIGITS.contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_hexdigit())
}
