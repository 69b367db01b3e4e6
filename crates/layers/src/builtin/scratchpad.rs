//! `scratchpad`: the model's working memory.
//!
//! Either sections of text with a description of each, or an object of a JSON Schema. The model changes it by a merge
//! (RFC 7396): objects are merged key by key, `null` removes, everything else replaces. The result of a merge must
//! match the schema, or nothing changes. It is state of the path, so it rewinds with the conversation.
//!
//! The model changes a pad by [`Scratchpad::update_content`] only, which checks the change and which a read-only pad
//! refuses.

use async_trait::async_trait;
use contexture_compile::{Band, Contribution, Placement, Stability};
use contexture_ir::{Fragment, FragmentData, Raw};
use contexture_tools::{SchemaError, SchemaValidator};
use indexmap::IndexMap;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use super::function_args::{encode_result, schema_literal, unknown_function};
use super::state::band_and_stability;
use crate::contract::{
    FunctionError, FunctionSpec, HookContext, Layer, LayerError, LayerId, LayerSpec, RecallInput,
};

/// Maximum size of a pad, in bytes of JSON.
pub const MAX_PAD_BYTES: usize = 64 * 1024;
/// Maximum nesting of objects and arrays in a pad; the pad itself is the first level.
pub const MAX_PAD_DEPTH: usize = 32;

/// Working memory, shown after the history unless it is placed elsewhere.
///
/// If the budget does not hold all of it, the last sections are left out first. A pad has at most [`MAX_PAD_BYTES`] and
/// [`MAX_PAD_DEPTH`] levels.
///
/// ```
/// use contexture_ir::Raw;
/// use contexture_layers::{Layers, builtin::{ScratchpadContent, Scratchpad}};
///
/// let pad = Scratchpad::with_sections([
///     ("goal", "What is to be reached"),
///     ("findings", "What is known so far"),
/// ])?;
/// let mut notes = ScratchpadContent::default();
/// pad.update_content(&mut notes, &Raw::parse(r#"{"goal":"ship it"}"#)?)?;
/// let refused = pad.update_content(&mut notes, &Raw::parse(r#"{"mood":"good"}"#)?).unwrap_err();
/// assert!(refused.to_string().contains("mood"));
/// let layers = Layers::new().with_layer(pad)?;
/// assert!(layers.find_function("scratchpad_update").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Scratchpad {
    spec: LayerSpec,
    /// The names of the sections, in the order in which they are shown.
    order: Vec<String>,
    checker: SchemaValidator,
    input: Raw,
    about: String,
    initial: ScratchpadContent,
    read_only: bool,
}

/// Content of a pad: an object with one member per section.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ScratchpadContent(Map<String, Value>);

/// Pads are equal only if they serialize equally, so the order of keys matters.
impl PartialEq for ScratchpadContent {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0 && serde_json::to_string(self).ok() == serde_json::to_string(other).ok()
    }
}

impl ScratchpadContent {
    /// Returns the value of a section.
    #[must_use]
    pub fn get(&self, section: &str) -> Option<&Value> {
        self.0.get(section)
    }

    /// Returns the sections that have a value.
    pub fn sections(&self) -> impl Iterator<Item = (&str, &Value)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value))
    }
}

/// Why a change of a pad was refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ScratchpadError {
    /// The pad is read-only.
    #[error("{pad} is read-only")]
    ReadOnly {
        /// Name of the scratchpad.
        pad: LayerId,
    },
    /// The change is not an object.
    #[error("a change must be an object of sections: {reason}")]
    NotAnObject {
        /// Message of the parser.
        reason: String,
    },
    /// The change is nested too deeply.
    #[error("the change is nested deeper than {limit} levels: flatten it")]
    TooDeep {
        /// The limit in levels.
        limit: usize,
    },
    /// The pad would be too large.
    #[error(
        "it would take {bytes} bytes, the limit is {limit}: remove or shorten what is no longer needed"
    )]
    TooLarge {
        /// Size that it would have, in bytes.
        bytes: usize,
        /// The limit in bytes.
        limit: usize,
    },
    /// The pad would not match its schema.
    #[error("with this change it would be {reason}")]
    Unfit {
        /// Where, and what was expected.
        reason: String,
    },
}

impl Scratchpad {
    /// Creates a pad of text sections, each with a name and a description.
    ///
    /// # Errors
    /// As [`Scratchpad::with_schema`], for the schema built from the sections.
    pub fn with_sections<N: Into<String>, A: Into<String>>(
        sections: impl IntoIterator<Item = (N, A)>,
    ) -> Result<Self, SchemaError> {
        let (mut kept, mut given, mut order) = (Map::new(), Map::new(), Vec::new());
        for (name, about) in sections {
            let (name, about): (String, String) = (name.into(), about.into());
            kept.insert(name.clone(), json!({"type": "string"}));
            let text = json!({"type": ["string", "null"], "description": about});
            given.insert(name.clone(), text);
            order.push(name);
        }
        let object = |properties: Map<String, Value>| {
            schema_literal(
                &json!({"type": "object", "properties": properties, "additionalProperties": false}),
            )
        };
        let about = "Changes your working memory: each section given is replaced, null empties it, the others stay.";
        Self::new(&object(kept), order, object(given), about.to_owned())
    }

    /// Creates a pad that is an object of this JSON Schema. Its properties are the sections.
    ///
    /// # Errors
    /// If the schema is invalid.
    pub fn with_schema(schema: &Raw) -> Result<Self, SchemaError> {
        #[derive(Deserialize)]
        struct SchemaProperties {
            #[serde(default)]
            properties: Map<String, Value>,
        }
        let sections = schema.parse_as::<SchemaProperties>().ok();
        let order = sections.map(|sections| sections.properties.into_iter().map(|(name, _)| name));
        let order = order.into_iter().flatten().collect();
        let input = schema_literal(&json!({"type": "object"}));
        let about = format!(
            "Changes your working memory: objects are merged key by key, null removes, everything else replaces. The \
             whole must stay of this JSON Schema: {}",
            schema.get()
        );
        Self::new(schema, order, input, about)
    }

    fn new(
        schema: &Raw,
        order: Vec<String>,
        input: Raw,
        about: String,
    ) -> Result<Self, SchemaError> {
        let spec = LayerSpec::new(LayerId::built_in("scratchpad"));
        Ok(Self {
            spec: spec.with_position(Band::Tail, 100, Stability::Volatile),
            order,
            checker: SchemaValidator::new(schema)?,
            input,
            about,
            initial: ScratchpadContent::default(),
            read_only: false,
        })
    }

    /// Sets the initial content.
    ///
    /// # Errors
    /// As [`Scratchpad::update_content`] on an empty pad.
    pub fn with_initial_content(mut self, content: &Raw) -> Result<Self, ScratchpadError> {
        let mut first = ScratchpadContent::default();
        self.merge_change(&mut first, content)?;
        self.initial = first;
        Ok(self)
    }

    /// Makes the pad read-only: the model is offered no function, and [`Scratchpad::update_content`] refuses every
    /// change.
    #[must_use]
    pub const fn read_only(mut self) -> Self {
        self.read_only = true;
        self
    }

    /// Sets where the pad is placed. In the system prompt each change opens an epoch.
    #[must_use]
    pub fn with_placement(mut self, placement: Placement) -> Self {
        (self.spec.band, self.spec.stability) = band_and_stability(placement);
        self
    }

    /// Changes the name, which is also that of its elements, the position or the budget.
    #[must_use]
    pub fn with_spec(mut self, change: impl FnOnce(&mut LayerSpec)) -> Self {
        change(&mut self.spec);
        self
    }

    /// Merges a change into a pad.
    ///
    /// # Errors
    /// [`ScratchpadError`]; the pad stays unchanged.
    pub fn update_content(
        &self,
        pad: &mut ScratchpadContent,
        change: &Raw,
    ) -> Result<(), ScratchpadError> {
        if self.read_only {
            return Err(ScratchpadError::ReadOnly {
                pad: self.spec.id.clone(),
            });
        }
        self.merge_change(pad, change)
    }

    /// Merges a change, checking depth, size and schema.
    fn merge_change(
        &self,
        pad: &mut ScratchpadContent,
        change: &Raw,
    ) -> Result<(), ScratchpadError> {
        let unread = |reason: String| ScratchpadError::NotAnObject { reason };
        let change: Map<String, Value> =
            serde_json::from_str(change.get()).map_err(|error| unread(error.to_string()))?;
        // Depth before merging: the merge recurses as deep as the change.
        if change
            .values()
            .any(|value| is_deeper(value, MAX_PAD_DEPTH - 1))
        {
            return Err(ScratchpadError::TooDeep {
                limit: MAX_PAD_DEPTH,
            });
        }
        // On a copy: size and schema can be checked only afterwards, and a refused change must leave no trace.
        let mut merged = pad.clone();
        merge_patch(&mut merged.0, change);
        let text = Raw::from_value(&merged).map_err(|error| unread(error.to_string()))?;
        let bytes = text.get().len();
        if bytes > MAX_PAD_BYTES {
            return Err(ScratchpadError::TooLarge {
                bytes,
                limit: MAX_PAD_BYTES,
            });
        }
        let unfit = |error: SchemaError| ScratchpadError::Unfit {
            reason: error.to_string(),
        };
        self.checker.check_value(&text).map_err(unfit)?;
        *pad = merged;
        Ok(())
    }
}

/// Whether arrays and objects are nested deeper than `levels`.
fn is_deeper(value: &Value, levels: usize) -> bool {
    let below = |value: &Value| levels == 0 || is_deeper(value, levels - 1);
    match value {
        Value::Array(items) => levels == 0 || items.iter().any(below),
        Value::Object(fields) => levels == 0 || fields.values().any(below),
        _ => false,
    }
}

/// Merges as specified in RFC 7396. The recursion is as deep as the change, which is bounded.
fn merge_patch(into: &mut Map<String, Value>, change: Map<String, Value>) {
    let mut removed = false;
    for (key, new) in change {
        match (into.get_mut(&key), new) {
            (Some(old), Value::Null) => {
                *old = Value::Null;
                removed = true;
            }
            (None, Value::Null) => {}
            (Some(Value::Object(old)), Value::Object(new)) => merge_patch(old, new),
            (_, Value::Object(new)) => {
                let mut fresh = Map::new();
                merge_patch(&mut fresh, new);
                into.insert(key, Value::Object(fresh));
            }
            (_, new) => {
                into.insert(key, new);
            }
        }
    }
    if removed {
        // All at once: removing one by one would move the rest each time. No other member is null, because nulls are
        // never stored.
        into.retain(|_, value| !value.is_null());
    }
}

#[async_trait]
impl Layer for Scratchpad {
    type State = ScratchpadContent;

    fn spec(&self) -> LayerSpec {
        self.spec.clone()
    }

    async fn init(&self, _: &HookContext) -> Result<ScratchpadContent, LayerError> {
        Ok(self.initial.clone())
    }

    async fn recall(
        &self,
        pad: &ScratchpadContent,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        let known = self
            .order
            .iter()
            .filter_map(|name| pad.0.get_key_value(name));
        let others = pad.0.iter().filter(|(name, _)| !self.order.contains(name));
        // Sections of the schema in its order, then others, so that the text does not depend on the order in which the
        // model writes.
        let mut sections = Vec::new();
        for (name, value) in known.chain(others) {
            let value =
                FragmentData::literal_data(value.clone()).map_err(LayerError::from_message)?;
            if !value.is_null() {
                let section = IndexMap::from([(name.clone(), value)]);
                let data = FragmentData::Object(section);
                sections.push(Fragment::new(self.spec.id.as_str(), data));
            }
        }
        match sections.is_empty() {
            true => Ok(Vec::new()),
            false => Ok(vec![call.contribution_from_fragments(sections)]),
        }
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        let function =
            || FunctionSpec::new(&self.spec.id, "update", &self.about, self.input.clone());
        (!self.read_only).then(function).into_iter().collect()
    }

    async fn call_function(
        &self,
        pad: &mut ScratchpadContent,
        function: &str,
        arguments: &Raw,
        _: &HookContext,
    ) -> Result<Raw, FunctionError> {
        if function != "update" {
            return Err(unknown_function(&self.spec.id, function));
        }
        let refused = |error: ScratchpadError| FunctionError::Refused(error.to_string());
        self.update_content(pad, arguments).map_err(refused)?;
        let filled: Vec<&str> = pad.sections().map(|(name, _)| name).collect();
        encode_result(&json!({ "filled": filled }))
    }
}
