//! Helpers for the functions of the built-in layers: schemas in source code, parsing of arguments, unknown names.

use contexture_ir::Raw;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::contract::{FunctionError, LayerError, LayerId};

/// Converts a schema in our own source code to JSON.
pub(super) fn schema_literal(schema: &Value) -> Raw {
    let raw = Raw::from_value(schema);
    debug_assert!(raw.is_ok(), "a JSON value is JSON");
    raw.unwrap_or_else(|_| Raw::null())
}

/// Parses arguments, which match their schema, as their type.
pub(super) fn parse_arguments<T: DeserializeOwned>(arguments: &Raw) -> Result<T, FunctionError> {
    let read = serde_json::from_str(arguments.get());
    read.map_err(|error| FunctionError::Arguments {
        reason: error.to_string(),
    })
}

/// Encodes the result of a function as JSON.
pub(super) fn encode_result(value: &impl Serialize) -> Result<Raw, FunctionError> {
    Ok(Raw::from_value(value).map_err(LayerError::from_message)?)
}

/// Returns the error for a function that does not exist.
pub(super) fn unknown_function(layer: &LayerId, function: &str) -> FunctionError {
    FunctionError::Unknown {
        layer: layer.clone(),
        name: function.to_owned(),
    }
}
