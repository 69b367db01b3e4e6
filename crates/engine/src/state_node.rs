//! A change of state without an item: a node `ctx:state`, which nobody is shown.

use contexture_ir::{Audience, Extension, Item, NodeId, Origin, Raw};
use contexture_store::NewItem;

use crate::error::EngineError;

const KIND: &str = "ctx:state";

/// The node that carries a change of state and nothing else.
pub(crate) fn state_node(id: NodeId, at_ms: i64) -> Result<NewItem, EngineError> {
    let item = Item::Extension(Extension {
        kind: KIND.to_owned(),
        id: None,
        raw: Raw::parse(format!(r#"{{"type":"{KIND}"}}"#))?,
    });
    Ok(NewItem {
        origin: Origin::System,
        audience: Audience::NONE,
        ..NewItem::new(id, &item, item.to_json(), at_ms)
    })
}

/// Whether an item is such a node's.
pub(crate) fn is_state_node(item: &Item) -> bool {
    matches!(item, Item::Extension(extension) if extension.kind == KIND)
}
