//! Results of a program's durable steps: a node each, found by an id that derives from the step.
//!
//! A node and not an entry of state: a state root lists all its entries and has at most 4,096 of them, so the ten-thousandth
//! step would cost more than the tenth, if it could be stored at all. Runs that began before this was so may have results among
//! their state as well.

use std::sync::Arc;

use contexture_engine::{Conversation, EngineError, parse_node_item, state_node};
use contexture_ir::{Extension, Item, NodeId, Raw, RunId};
use contexture_store::{NewItem, Node};
use serde::{Deserialize, Serialize};

use super::state_keys::{find_node, node_id};

/// JSON of a step's node: a state node's item with the step added.
#[derive(Serialize, Deserialize)]
struct StepRecord {
    #[serde(rename = "type")]
    kind: String,
    step: StepResult,
}

/// The result of a durable step.
#[derive(Serialize, Deserialize)]
struct StepResult {
    name: String,
    result: Raw,
}

/// Returns the id of the node of a step: the `time`th one of its name, from 0.
pub(crate) fn step_node_id(run: RunId, name: &str, time: u32) -> NodeId {
    let number = time.to_le_bytes();
    node_id(run, "durable step", &[&number, name.as_bytes()].concat())
}

/// Builds the node of a step's result.
pub(crate) fn step_result_node(
    id: NodeId,
    name: &str,
    result: Raw,
    at_ms: i64,
) -> Result<NewItem, EngineError> {
    // Built as a state node, so that readers that do not know runs ignore it.
    let like = state_node(id, at_ms)?;
    let Item::Extension(plain) = Item::parse(&like.json)? else {
        return Ok(like);
    };
    let record = StepRecord {
        kind: plain.kind.clone(),
        step: StepResult {
            name: name.to_owned(),
            result,
        },
    };
    let item = Item::Extension(Extension {
        raw: Raw::from_value(&record)?,
        ..plain
    });
    Ok(NewItem {
        origin: like.origin,
        audience: like.audience,
        ..NewItem::new(id, &item, item.to_json(), at_ms)
    })
}

/// Loads the result of a step; `None` if it is not stored.
///
/// # Errors
/// [`EngineError::StoredState`] if what is stored cannot be read, such as after a redaction: the step was run.
pub(crate) async fn load_step_result(
    chat: &Conversation,
    id: NodeId,
) -> Result<Option<Raw>, EngineError> {
    let found = find_node(chat.engine(), chat.owner(), chat.id(), id).await?;
    found.map(|node| parse_result(&node)).transpose()
}

fn parse_result(node: &Arc<Node>) -> Result<Raw, EngineError> {
    let unreadable = |reason: String| EngineError::StoredState {
        key: format!("step {}", node.id),
        reason,
    };
    let Item::Extension(item) = parse_node_item(node)? else {
        return Err(unreadable("its node holds another item".to_owned()));
    };
    let record = item.raw.parse_as::<StepRecord>();
    let record = record.map_err(|error| unreadable(error.to_string()))?;
    Ok(record.step.result)
}
