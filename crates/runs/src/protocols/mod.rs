//! Conversion of run events to the events of client protocols.
//!
//! Pure: a mapping is fed each [`RunEvent`](crate::RunEvent) and returns the events to send; it keeps only the answer
//! in progress. Not here: how they are sent (server-sent events, sockets), and what is stored.

mod ag_ui;
mod open_responses;

use contexture_ir::Raw;
use serde_json::{Map, Value};

pub use ag_ui::AgUi;
pub use open_responses::OpenResponses;

/// One event in a client protocol.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProtocolEvent {
    /// Type of the event; also the member `type` of [`ProtocolEvent::json`].
    pub name: &'static str,
    /// The event as a JSON object.
    pub json: Raw,
}

impl ProtocolEvent {
    /// Creates an event; its type precedes the other members.
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
