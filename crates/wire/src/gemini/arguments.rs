//! A call's arguments that come one by one, each with the JSON path of its place.
//!
//! Paths are `$`, `.name`, `['name']` and `[0]`. What cannot be placed makes the arguments as a whole
//! untellable: nothing is guessed.

use contexture_ir::Fields;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use super::names::peek_field;
use crate::model::json::{json_array, string_value};

/// How deep a path may go.
const DEPTH: usize = 64;

/// Arguments as far as they came.
#[derive(Clone, Debug)]
pub(super) struct PartialArguments {
    value: Value,
    /// The pieces, verbatim.
    pieces: Vec<String>,
    all_placed: bool,
}

enum PathSegment {
    Key(String),
    Index(usize),
}

impl Default for PartialArguments {
    fn default() -> Self {
        Self {
            value: Value::Object(Map::new()),
            pieces: Vec::new(),
            all_placed: true,
        }
    }
}

impl PartialArguments {
    /// Takes an array of pieces.
    pub(super) fn push_pieces(&mut self, pieces: &RawValue) {
        let pieces: Vec<&RawValue> = serde_json::from_str(pieces.get()).unwrap_or_default();
        for piece in pieces {
            self.pieces.push(piece.get().to_owned());
            // `&=` does not stop early: later pieces are placed in any case.
            self.all_placed &= self.place_piece(piece).is_some();
        }
    }

    /// The arguments as one object, if every piece found its place.
    pub(super) fn to_json(&self) -> Option<String> {
        self.all_placed.then(|| self.value.to_string())
    }

    /// The pieces so far, as an array.
    pub(super) fn pieces_json(&self) -> String {
        json_array(&self.pieces)
    }

    fn place_piece(&mut self, piece: &RawValue) -> Option<()> {
        let fields = Fields::parse(piece.get()).ok()?;
        let path = parse_json_path(&peek_field(&fields, "jsonPath").and_then(string_value)?)?;
        let mut at = &mut self.value;
        for step in path {
            at = match step {
                PathSegment::Key(key) => member_mut(at, key)?,
                PathSegment::Index(index) => element_mut(at, index)?,
            };
        }
        // Texts come in pieces that are joined; other values come whole.
        if let Some(more) = peek_field(&fields, "stringValue").and_then(string_value) {
            match at {
                Value::String(text) => text.push_str(&more),
                Value::Null => *at = Value::String(more),
                _ => return None,
            }
            return Some(());
        }
        let value = peek_field(&fields, "numberValue").or(peek_field(&fields, "boolValue"));
        *at = match value {
            Some(value) => serde_json::from_str(value.get()).ok()?,
            None => {
                // Fits both spellings, `nullValue` and `null_value`.
                fields.iter().find(|(key, _)| key.starts_with("null"))?;
                Value::Null
            }
        };
        Some(())
    }
}

fn member_mut(at: &mut Value, key: String) -> Option<&mut Value> {
    if at.is_null() {
        *at = Value::Object(Map::new());
    }
    Some(at.as_object_mut()?.entry(key).or_insert(Value::Null))
}

/// An element that is there, or the next one.
fn element_mut(at: &mut Value, index: usize) -> Option<&mut Value> {
    if at.is_null() {
        *at = Value::Array(Vec::new());
    }
    let list = at.as_array_mut()?;
    // Only the next element may be new: a far index would ask for memory without limit.
    if index == list.len() {
        list.push(Value::Null);
    }
    list.get_mut(index)
}

fn parse_json_path(text: &str) -> Option<Vec<PathSegment>> {
    let mut rest = text.strip_prefix('$')?;
    let mut steps = Vec::new();
    while !rest.is_empty() && steps.len() < DEPTH {
        if let Some(name) = rest.strip_prefix('.') {
            let end = name.find(['.', '[']).unwrap_or(name.len());
            let (key, more) = name.split_at(end);
            steps.push(PathSegment::Key(key.to_owned()));
            rest = more;
        } else if let Some(name) = rest.strip_prefix("['") {
            let (key, more) = name.split_once("']")?;
            steps.push(PathSegment::Key(key.to_owned()));
            rest = more;
        } else {
            let (index, more) = rest.strip_prefix('[')?.split_once(']')?;
            steps.push(PathSegment::Index(index.parse().ok()?));
            rest = more;
        }
    }
    rest.is_empty().then_some(steps)
}
