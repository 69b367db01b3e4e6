//! The models file: its form, and how one is laid over another.
//!
//! A file is `{ "source"?, "media"?: {name: rules}, "models"?: [{ "id", … }] }`, in JSON or TOML. A model of a known id
//! changes only the fields it names; objects are merged, lists replaced, `null` (JSON only) takes a field away.
//! `"like": "gpt-5.1"` starts a new model as a copy of another. `"media"` of a model is rules or the name of rules.

use std::collections::BTreeMap;

use serde::Deserialize;
use serde_json::{Map, Value};

use crate::error::CatalogueError;
use crate::media::MediaRules;
use crate::spec::ModelSpec;

/// A models file as read.
#[derive(Debug, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(crate) struct ModelsFile {
    // Unknown fields are errors: a misspelt limit that was ignored would be a model without a limit.
    /// Where the data come from; for readers, not for us.
    #[serde(rename = "source")]
    // Named here so that `deny_unknown_fields` lets the generated table carry its source.
    _source: Value,
    pub(crate) media: BTreeMap<String, MediaRules>,
    pub(crate) models: Vec<Map<String, Value>>,
}

impl ModelsFile {
    pub(crate) fn from_json(text: &str) -> Result<Self, CatalogueError> {
        serde_json::from_str(text).map_err(|error| CatalogueError::Syntax {
            format: "JSON",
            source: Box::new(error),
        })
    }

    #[cfg(feature = "toml")]
    pub(crate) fn from_toml(text: &str) -> Result<Self, CatalogueError> {
        toml::from_str(text).map_err(|error| CatalogueError::Syntax {
            format: "TOML",
            source: Box::new(error),
        })
    }
}

/// Lays one entry of a file over what was known, if anything.
///
/// `known` is the model of the same id; `find` looks up the model named by `like`.
pub(crate) fn merge_model_entry(
    known: Option<&ModelSpec>,
    mut entry: Map<String, Value>,
    media: &BTreeMap<String, MediaRules>,
    find: impl Fn(&str) -> Option<ModelSpec>,
) -> Result<ModelSpec, String> {
    let like = entry.remove("like");
    let mut base = match (known, like) {
        (Some(known), None) => to_json_object(known)?,
        (None, None) => Map::new(),
        (_, Some(Value::String(like))) => {
            // A copy is another model: it must not answer to the original's aliases nor be retired with it.
            let mut model = find(&like)
                .ok_or_else(|| format!("it is to be like {like:?}, which is unknown"))?;
            model.aliases.clear();
            model.retires = None;
            to_json_object(&model)?
        }
        (_, Some(_)) => return Err("\"like\" must be the name of a model".to_owned()),
    };
    // Only a name is replaced here; rules written out are merged like any object.
    if let Some(Value::String(name)) = entry.get("media") {
        let rules = media.get(name).ok_or_else(|| {
            let known: Vec<&str> = media.keys().map(String::as_str).collect();
            format!(
                "unknown media rules {name:?}; known are {}",
                known.join(", ")
            )
        })?;
        let rules = serde_json::to_value(rules).map_err(|error| error.to_string())?;
        // The rules of two kinds do not mix.
        base.remove("media");
        entry.insert("media".to_owned(), rules);
    }
    // Merged as JSON and not as structs, since only JSON tells an absent field from one that is to be removed.
    merge_objects(&mut base, entry);
    let model: ModelSpec =
        serde_json::from_value(Value::Object(base)).map_err(|error| error.to_string())?;
    // What serde cannot check: an empty id would match nothing, and a window of 0 would refuse every request.
    if model.id.trim().is_empty() {
        return Err("the id is empty".to_owned());
    }
    if model.context_window == 0 {
        return Err("context_window is 0, expected tokens".to_owned());
    }
    Ok(model)
}

fn to_json_object(model: &ModelSpec) -> Result<Map<String, Value>, String> {
    match serde_json::to_value(model) {
        Ok(Value::Object(object)) => Ok(object),
        Ok(_) => Err("a model is no object".to_owned()),
        Err(error) => Err(error.to_string()),
    }
}

fn merge_objects(into: &mut Map<String, Value>, from: Map<String, Value>) {
    for (name, value) in from {
        match (into.get_mut(&name), value) {
            // Lists are replaced: merging by position would mix two models' tiers.
            // `null` means removal, as in JSON Merge Patch (RFC 7396).
            (_, Value::Null) => drop(into.shift_remove(&name)),
            (Some(Value::Object(into)), Value::Object(from)) => merge_objects(into, from),
            (_, value) => drop(into.insert(name, value)),
        }
    }
}
