//! One event of a protocol.

use contexture_ir::Raw;
use serde_json::{Map, Value};

/// One event, as clients of a protocol read it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolEvent {
    /// Its type; also the member `type` of [`ProtocolEvent::json`].
    pub name: &'static str,
    /// The event: a JSON object.
    pub json: Raw,
}

impl ProtocolEvent {
    /// An event of these members, its type before them.
    pub(super) fn new(name: &'static str, members: Value) -> Self {
        let mut object = Map::new();
        object.insert("type".to_owned(), name.into());
        if let Value::Object(members) = members {
            object.extend(members);
        }
        let json = Raw::from_value(&object).unwrap_or_else(|_| Raw::null());
        Self { name, json }
    }
}

/// Adds a member to an object.
pub(super) fn insert_member(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(object) = object {
        object.insert(name.to_owned(), value.into());
    }
}
