//! The tools by which a model manages notes. Their schemas do not depend on the notes, so a cached prefix stays valid.

use std::collections::BTreeSet;

use contexture_ir::Raw;
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value, json};

use super::notes::NoteTtl;
use crate::builtin::function_args::schema_literal;
use crate::contract::{FunctionSpec, LayerId};

/// Arguments of all three tools.
#[derive(Debug, Deserialize)]
pub(super) struct MemoryArguments {
    pub(super) key: String,
    pub(super) value: Option<String>,
    pub(super) description: Option<String>,
    pub(super) importance: Option<u8>,
    #[serde(default, deserialize_with = "deserialize_ttl")]
    pub(super) ttl: Option<TtlArgument>,
}

/// A lifetime that was given: an absent argument stays absent, `null` means never.
#[derive(Clone, Copy, Debug)]
pub(super) struct TtlArgument(Option<u64>);

fn deserialize_ttl<'de, D: Deserializer<'de>>(
    deserializer: D,
) -> Result<Option<TtlArgument>, D::Error> {
    // Called only if the field is present, so `null` becomes `Some(TtlArgument(None))` and absence stays `None`.
    Option::deserialize(deserializer).map(|ttl| Some(TtlArgument(ttl)))
}

impl From<TtlArgument> for NoteTtl {
    fn from(TtlArgument(ttl): TtlArgument) -> Self {
        ttl.map_or(Self::Never, Self::Responses)
    }
}

/// Returns the three tools. Allowed keys are listed in their schemas, and checked again when they run.
pub(super) fn memory_functions(
    id: &LayerId,
    allowed: Option<&BTreeSet<String>>,
) -> Vec<FunctionSpec> {
    let mut key = json!({"type": "string", "description": "The note's name, short and lasting."});
    if let (Some(allowed), Some(key)) = (allowed, key.as_object_mut()) {
        // In the schema so that the model knows the allowed keys. The layer checks again when the function runs.
        key.insert("enum".to_owned(), json!(allowed));
    }
    let edit = json!({
        "value": {"type": "string", "description": "What to remember, complete in itself."},
        "description": {"type": "string", "description": "What the note is about, in a line."},
        "importance": {"type": "integer", "minimum": 0, "maximum": 100,
            "description": "The larger, the later it gives way where there is no room for all."},
        "ttl": {"type": ["integer", "null"], "minimum": 1,
            "description": "After so many of your answers it is forgotten; null is never."},
    });
    let with_edit = |required: &[&str]| input_schema(&key, edit.as_object(), required);
    let create = "Keeps a note beyond this conversation: a fact, a wish or a decision that will matter later. One of the \
                  same key is replaced.";
    let update = "Changes a note that is there. What is not given stays as it is.";
    let delete = "Deletes a note that is wrong or no longer needed.";
    let tools = [
        ("create", create, with_edit(&["key", "value"])),
        ("update", update, with_edit(&["key"])),
        ("delete", delete, input_schema(&key, None, &["key"])),
    ];
    let tools = tools.into_iter().map(|(name, about, input)| {
        FunctionSpec::new(id, name, about, input).with_tool_name(format!("{name}_{id}"))
    });
    tools.collect()
}

fn input_schema(key: &Value, more: Option<&Map<String, Value>>, required: &[&str]) -> Raw {
    let mut properties = Map::new();
    properties.insert("key".to_owned(), key.clone());
    properties.extend(more.cloned().unwrap_or_default());
    schema_literal(&json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    }))
}
