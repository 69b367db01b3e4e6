//! What stays in view when old history is left out: pinned messages, and the user's standing rules.

use std::collections::BTreeSet;

use contexture::ir::{MessageId, NodeId};
use contexture::store::NodeQuery;
use contexture_api::{PinDocument, PinsDocument, RulesDocument};
use serde::Deserialize;

use super::{Reply, Scope, parse_node};
use crate::failure::Failure;

/// A node or a message, whose nodes are pinned or unpinned together.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct PinRequest {
    node: Option<String>,
    message: Option<String>,
}

pub(super) async fn list_pins(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let pins = scope.chat().await?.pins().await?;
    reply_pins(pins)
}

pub(super) async fn pin(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let chat = scope.chat().await?;
    for node in nodes_to_pin(scope).await? {
        chat.pin(node).await?;
    }
    reply_pins(chat.pins().await?)
}

pub(super) async fn unpin(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let chat = scope.chat().await?;
    for node in nodes_to_pin(scope).await? {
        chat.unpin(node).await?;
    }
    reply_pins(chat.pins().await?)
}

/// Returns the nodes that a request names.
///
/// # Errors
/// It names both or neither, or something that the conversation does not have.
async fn nodes_to_pin(scope: &Scope<'_>) -> Result<Vec<NodeId>, Failure> {
    let asked: PinRequest = scope.parse()?;
    let query = match (asked.node, asked.message) {
        (Some(node), None) => NodeQuery::Id(parse_node(&node)?),
        (None, Some(message)) => NodeQuery::Message(MessageId::new(&message)?),
        _ => {
            let detail = "expected one of `message` and `node`";
            return Err(Failure::argument("message", detail));
        }
    };
    let (owner, id) = (scope.owner()?, scope.conversation_id()?);
    let found = scope.engine.store().find_nodes(&owner, &id, query).await?;
    Ok(found.iter().map(|node| node.id).collect())
}

fn reply_pins(pins: BTreeSet<NodeId>) -> Result<Reply, Failure> {
    Reply::new(&PinsDocument {
        pins: pins.into_iter().map(PinDocument::from).collect(),
        next: None,
    })
}

pub(super) async fn list_rules(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let rules = scope.chat().await?.rules().await?;
    Reply::new(&RulesDocument::of_rules(&rules))
}

/// A standing rule.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct RuleRequest {
    id: String,
}

pub(super) async fn drop_rule(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: RuleRequest = scope.parse()?;
    Reply::new(&scope.chat().await?.drop_rule(&asked.id).await?)
}

pub(super) async fn restore_rule(scope: &Scope<'_>) -> Result<Reply, Failure> {
    let asked: RuleRequest = scope.parse()?;
    Reply::new(&scope.chat().await?.restore_rule(&asked.id).await?)
}
