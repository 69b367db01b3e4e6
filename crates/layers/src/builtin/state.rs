//! `state`: a value of the program, shown to the model in every call.
//!
//! It is state of the path, so it rewinds with the conversation. The program changes it through the conversation's
//! handle; the model too, with [`StateLayer::with_set_function`]. A value that does not match the schema is refused
//! from both.
//!
//! Not here: how a value is written (`contexture_compile::Contribution::state`).

use std::sync::Arc;

use async_trait::async_trait;
use contexture_compile::{Band, Content, Contribution, Placement, Stability};
use contexture_ir::Raw;
use contexture_tools::{SchemaError, SchemaValidator};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::function_args::{parse_arguments, schema_literal, unknown_function};
use crate::contract::{
    FunctionError, FunctionSpec, HookContext, Layer, LayerError, LayerId, LayerSpec, RecallInput,
};

/// Types that may be a state: every type that serde reads and writes, and that can be copied and compared.
pub trait StateSchema:
    Serialize + DeserializeOwned + Clone + Default + PartialEq + Send + Sync + 'static
{
}

impl<T> StateSchema for T where
    T: Serialize + DeserializeOwned + Clone + Default + PartialEq + Send + Sync + 'static
{
}

/// A typed value ([`StateSchema`]), shown after the history unless it is placed elsewhere.
///
/// ```
/// use contexture_ir::Raw;
/// use contexture_layers::{Layers, builtin::StateLayer};
/// use serde::{Deserialize, Serialize};
///
/// #[derive(Clone, Default, PartialEq, Serialize, Deserialize)]
/// struct Order { items: Vec<String>, paid: bool }
///
/// let schema = Raw::parse(r#"{"type":"object","properties":{"items":{"maxItems":10}}}"#)?;
/// let order = StateLayer::new(Order::default()).with_schema(&schema)?.with_set_function();
/// let layers = Layers::new().with_layer(order)?;
/// assert!(layers.find_function("set_state").is_some());
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct StateLayer<T> {
    spec: LayerSpec,
    initial: T,
    schema: Option<(Raw, SchemaValidator)>,
    settable: bool,
}

impl<T: StateSchema> StateLayer<T> {
    /// Creates a state with this initial value.
    #[must_use]
    pub fn new(first: T) -> Self {
        let spec = LayerSpec::new(LayerId::built_in("state"));
        Self {
            spec: spec.with_position(Band::Tail, 300, Stability::Volatile),
            initial: first,
            schema: None,
            settable: false,
        }
    }

    /// Sets where the value is placed. In the system prompt each change opens an epoch.
    #[must_use]
    pub fn with_placement(mut self, placement: Placement) -> Self {
        (self.spec.band, self.spec.stability) = band_and_stability(placement);
        self
    }

    /// Restricts values to this JSON Schema, the initial one included.
    ///
    /// # Errors
    /// If the schema is invalid.
    pub fn with_schema(mut self, schema: &Raw) -> Result<Self, SchemaError> {
        self.schema = Some((schema.clone(), SchemaValidator::new(schema)?));
        Ok(self)
    }

    /// Offers the model a function that replaces the value: `set_state`, or `set_` and its name. The arguments are the
    /// value, so it must be an object; give it a schema, because the model sees nothing else of it.
    #[must_use]
    pub const fn with_set_function(mut self) -> Self {
        self.settable = true;
        self
    }

    /// Changes the name, which is also that of its element, the position or the budget.
    #[must_use]
    pub fn with_spec(mut self, change: impl FnOnce(&mut LayerSpec)) -> Self {
        change(&mut self.spec);
        self
    }
}

/// Returns the band and the stability of a placement.
pub(super) const fn band_and_stability(placement: Placement) -> (Band, Stability) {
    match placement {
        Placement::Tail => (Band::Tail, Stability::Volatile),
        Placement::System => (Band::System, Stability::Epoch),
    }
}

#[async_trait]
impl<T: StateSchema> Layer for StateLayer<T> {
    type State = T;

    fn spec(&self) -> LayerSpec {
        self.spec.clone()
    }

    fn validate_state(&self, state: &T) -> Result<(), LayerError> {
        let Some((_, checker)) = &self.schema else {
            return Ok(());
        };
        let value = Raw::from_value(state).map_err(LayerError::from_message)?;
        checker
            .check_value(&value)
            .map_err(LayerError::from_message)
    }

    async fn init(&self, _: &HookContext) -> Result<T, LayerError> {
        Ok(self.initial.clone())
    }

    async fn recall(
        &self,
        state: &T,
        call: &RecallInput<'_>,
    ) -> Result<Vec<Contribution>, LayerError> {
        let renderer = Arc::clone(call.renderer);
        let said = Contribution::state_with(state, Placement::Tail, renderer)
            .map_err(LayerError::from_message)?;
        let mut content = said.content;
        if let Content::Fragments { fragments, .. } = &mut content {
            for fragment in fragments {
                fragment.name = self.spec.id.to_string();
            }
        }
        Ok(vec![call.contribution(content)])
    }

    fn functions(&self) -> Vec<FunctionSpec> {
        if !self.settable {
            return Vec::new();
        }
        let id = &self.spec.id;
        let text = format!("Replaces the whole of what is shown as <{id}>.");
        let any = || schema_literal(&json!({"type": "object"}));
        let input = self.schema.as_ref().map(|(schema, _)| schema.clone());
        let function = FunctionSpec::new(id, "set", &text, input.unwrap_or_else(any));
        vec![function.with_tool_name(format!("set_{id}"))]
    }

    async fn call_function(
        &self,
        state: &mut T,
        function: &str,
        arguments: &Raw,
        _: &HookContext,
    ) -> Result<Raw, FunctionError> {
        if function != "set" || !self.settable {
            return Err(unknown_function(&self.spec.id, function));
        }
        *state = parse_arguments(arguments)?;
        Ok(Raw::null())
    }
}
