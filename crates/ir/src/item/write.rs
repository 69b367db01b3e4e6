//! Items written as JSON.

use serde::ser::{Serialize, SerializeMap, Serializer};

use super::{Item, Output, Status};

impl Serialize for Item {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        // Byte for byte as it came: an extension may be signed or hashed by whoever made it.
        if let Self::Extension(item) = self {
            return item.raw.serialize(serializer);
        }
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("type", self.kind())?;
        if let Some(id) = self.id() {
            map.serialize_entry("id", id)?;
        }
        self.write_fields(&mut map)?;
        // Last, so that an item with unknown fields differs from one without only at its end.
        if let Some(extra) = self.extra() {
            extra.write_members(&mut map)?;
        }
        map.end()
    }
}

impl Item {
    fn write_fields<M: SerializeMap>(&self, map: &mut M) -> Result<(), M::Error> {
        match self {
            Self::Message(item) => {
                map.serialize_entry("role", item.role.as_str())?;
                write_status(map, item.status)?;
                map.serialize_entry("content", &item.content)
            }
            Self::FunctionCall(item) => {
                map.serialize_entry("call_id", &item.call_id)?;
                map.serialize_entry("name", &item.name)?;
                map.serialize_entry("arguments", &item.arguments)?;
                write_status(map, item.status)
            }
            Self::FunctionCallOutput(item) => {
                map.serialize_entry("call_id", &item.call_id)?;
                match &item.output {
                    Output::Text(text) => map.serialize_entry("output", text)?,
                    Output::Parts(parts) => map.serialize_entry("output", parts)?,
                }
                write_entry(map, "is_error", item.is_error.as_ref())?;
                write_status(map, item.status)
            }
            Self::Reasoning(item) => {
                map.serialize_entry("summary", &item.summary)?;
                write_entry(map, "content", item.content.as_ref())?;
                write_entry(map, "encrypted_content", item.encrypted_content.as_ref())?;
                write_entry(map, "signature", item.signature.as_ref())?;
                write_entry(map, "format", item.format.as_ref())?;
                write_status(map, item.status)
            }
            // Absent and empty are one for a compaction, which may hold an opaque form only; reasoning always
            // lists its summary.
            Self::Compaction(item) => {
                if !item.summary.is_empty() {
                    map.serialize_entry("summary", &item.summary)?;
                }
                write_entry(map, "encrypted_content", item.encrypted_content.as_ref())?;
                write_entry(map, "format", item.format.as_ref())
            }
            Self::Extension(_) => Ok(()),
        }
    }
}

fn write_status<M: SerializeMap>(map: &mut M, status: Option<Status>) -> Result<(), M::Error> {
    write_entry(map, "status", status.map(Status::as_str).as_ref())
}

fn write_entry<M: SerializeMap, T: Serialize + ?Sized>(
    map: &mut M,
    key: &str,
    value: Option<&T>,
) -> Result<(), M::Error> {
    value.map_or(Ok(()), |value| map.serialize_entry(key, value))
}
