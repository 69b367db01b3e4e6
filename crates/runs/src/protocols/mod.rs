//! What a run tells, in the words of protocols that clients speak.
//!
//! Pure: a mapping is fed each [`RunEvent`](crate::RunEvent) and gives the events to send; it keeps no more than the answer
//! that is under way. Not here: how they are sent (server-sent events, sockets), and what is stored.

mod ag_ui;
mod open_responses;

use contexture_ir::Raw;
use serde_json::{Map, Value};

pub use ag_ui::AgUi;
pub use open_responses::OpenResponses;

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
    fn new(name: &'static str, members: Value) -> Self {
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
fn insert_member(object: &mut Value, name: &str, value: impl Into<Value>) {
    if let Value::Object(object) = object {
        object.insert(name.to_owned(), value.into());
    }
}
