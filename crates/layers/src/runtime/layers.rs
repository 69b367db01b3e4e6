//! A list of layers.

use std::fmt;
use std::sync::Arc;

use contexture_ir::{Raw, ToolDefinition};

use crate::contract::{
    FunctionSpec, Layer, LayerError, LayerId, LayerSpec, LayersError, OfferedTo,
};
use crate::runtime::dyn_layer::{DynLayer, LayerAdapter, downcast_state};
use crate::runtime::layer_states::{ChangedState, LayerStates, SlotState, StateSlot, StoredState};

/// A list of layers, sorted by `order`, then as they were added. Cheap to clone; a shared list never changes.
#[derive(Clone, Default)]
pub struct Layers {
    list: Arc<Vec<Arc<dyn DynLayer>>>,
}

impl Layers {
    /// Creates an empty list.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the list with one more layer, in the position its `order` asks for.
    ///
    /// # Errors
    /// [`LayersError`]: a duplicate id or tool name, an impossible budget, or an invalid schema.
    pub fn with_layer(mut self, layer: impl Layer) -> Result<Self, LayersError> {
        let held = LayerAdapter::new(layer);
        // Before the list changes, so that a refused layer leaves no trace.
        self.validate_layer(&held)?;
        // A shared list is copied first, so that other holders see no change.
        let list = Arc::make_mut(&mut self.list);
        let order = held.spec().order;
        // After all of the same order, so layers with the default order stay in the order in which they were added.
        let at = list.partition_point(|other| other.spec().order <= order);
        list.insert(at, Arc::new(held));
        Ok(self)
    }

    fn validate_layer(&self, new: &dyn DynLayer) -> Result<(), LayersError> {
        let LayerSpec { id, budget, .. } = new.spec();
        if self.find_by_id(id.as_str()).is_some() {
            return Err(LayersError::DuplicateId { id: id.clone() });
        }
        // A minimum above the maximum could never be met.
        if let Some(max) = budget.max.filter(|max| budget.min > *max) {
            return Err(LayersError::BadBudget {
                id: id.clone(),
                min: budget.min,
                max,
            });
        }
        if budget.share > 100 {
            return Err(LayersError::BadShare {
                id: id.clone(),
                share: budget.share,
            });
        }
        // Models see one flat list of tools, so names are unique across layers and within each layer.
        for (index, function) in new.functions().iter().enumerate() {
            if let Some(reason) = function.validation_error() {
                return Err(LayersError::BadFunction {
                    id: id.clone(),
                    name: function.tool.clone(),
                    reason,
                });
            }
            let own = new.functions().iter().take(index);
            let twice = own.filter(|other| other.tool == function.tool).map(|_| id);
            let others = self
                .functions()
                .filter(|(_, other)| other.tool == function.tool);
            let first = twice.chain(others.map(|(first, _)| first)).next();
            if let Some(first) = first {
                return Err(LayersError::DuplicateTool {
                    name: function.tool.clone(),
                    first: first.clone(),
                    second: id.clone(),
                });
            }
        }
        Ok(())
    }

    /// Whether the list is empty.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// The specification of each layer, in order.
    pub fn specs(&self) -> impl Iterator<Item = &LayerSpec> {
        self.list.iter().map(|layer| layer.spec())
    }

    /// All functions, each with its layer.
    pub fn functions(&self) -> impl Iterator<Item = (&LayerId, &FunctionSpec)> {
        self.list.iter().flat_map(|layer| {
            let id = &layer.spec().id;
            layer.functions().iter().map(move |function| (id, function))
        })
    }

    /// The function that models call by this name.
    #[must_use]
    pub fn find_function(&self, tool: &str) -> Option<(&LayerId, &FunctionSpec)> {
        self.functions().find(|(_, function)| function.tool == tool)
    }

    /// The tools that models are offered, in order.
    #[must_use]
    pub fn tool_definitions(&self) -> Vec<ToolDefinition> {
        let offered = self
            .functions()
            // Functions for programs stay callable; they are only not offered to models.
            .filter(|(_, function)| function.offered_to == OfferedTo::Model);
        offered
            .map(|(_, function)| function.tool_definition())
            .collect()
    }

    /// The layer of this type, if there is one; the first of several.
    #[must_use]
    pub fn layer_of_type<L: Layer>(&self) -> Option<(&LayerId, &L)> {
        self.list.iter().find_map(|layer| {
            let held: &LayerAdapter<L> = layer.as_any().downcast_ref()?;
            Some((&layer.spec().id, &held.layer))
        })
    }

    /// Reads stored states. States of layers that are not in the list are ignored and stay stored.
    #[must_use]
    pub fn restore_states(
        &self,
        stored: impl IntoIterator<Item = (LayerId, StoredState)>,
    ) -> LayerStates {
        // Quadratic, which is fine: a list has a handful of layers.
        let mut given: Vec<(LayerId, StoredState)> = stored.into_iter().collect();
        let slots = self.list.iter().map(|layer| {
            let of = |(id, _): &(LayerId, StoredState)| *id == layer.spec().id;
            let stored = given.iter().position(of).map(|at| given.swap_remove(at).1);
            StateSlot::from_stored(layer.as_ref(), stored)
        });
        LayerStates {
            slots: slots.collect(),
        }
    }

    /// The current state of every layer that has one, stored or not. [`Layers::restore_states`] reads them back.
    #[must_use]
    pub fn pending_states(&self, states: &LayerStates) -> Vec<(LayerId, StoredState)> {
        let both = self.list.iter().zip(&states.slots);
        let left = both.filter_map(|(layer, slot)| match &slot.current {
            SlotState::Ready(_, stored) => Some((layer.spec().id.clone(), stored.clone())),
            SlotState::Absent | SlotState::Broken(_) | SlotState::LeftOut => None,
        });
        left.collect()
    }

    /// Resets states outside the tree to what is stored.
    pub fn revert_shared_changes(&self, states: &mut LayerStates) {
        for (layer, slot) in self.list.iter().zip(&mut states.slots) {
            // Shared states also change in other conversations; those on the tree belong to this path alone.
            if !layer.spec().scope.is_on_tree() {
                // Read again from its bytes, as after loading: no in-memory value survives.
                *slot = StateSlot::from_stored(layer.as_ref(), slot.stored.take());
            }
        }
    }

    /// The states that differ from what was read and have to be stored.
    pub fn changed_states(&self, states: &LayerStates) -> Vec<ChangedState> {
        let layers = self.list.iter().map(AsRef::as_ref);
        states.changed_states(layers).collect()
    }

    /// The state of the layer of this type.
    ///
    /// # Errors
    /// [`LayerError`] if there is no such layer, or it has no readable state.
    pub fn state<'a, L: Layer>(&self, states: &'a LayerStates) -> Result<&'a L::State, LayerError> {
        let is = |layer: &Arc<dyn DynLayer>| layer.as_any().is::<LayerAdapter<L>>();
        let slot = self.list.iter().position(is);
        let slot = slot.and_then(|at| states.slots.get(at));
        let state = slot.and_then(StateSlot::ready_state);
        downcast_state::<L>(
            state.ok_or_else(|| LayerError::from_message("the layer has no state here"))?,
        )
    }

    /// Sets the state of the layer of this type.
    ///
    /// # Errors
    /// [`LayerError`] if there is no such layer, or the state is invalid or too large.
    pub fn set_state<L: Layer>(
        &self,
        states: &mut LayerStates,
        state: L::State,
    ) -> Result<(), LayerError> {
        let is = |layer: &Arc<dyn DynLayer>| layer.as_any().is::<LayerAdapter<L>>();
        let layer = self.list.iter().zip(&mut states.slots);
        let layer = layer.into_iter().find(|(layer, _)| is(layer));
        let (layer, slot) =
            layer.ok_or_else(|| LayerError::from_message("there is no such layer"))?;
        slot.set_state(layer.as_ref(), Box::new(state))
    }

    /// Exports a layer's state as JSON for programs.
    ///
    /// # Errors
    /// [`LayersError::NoLayer`] for an unknown id, [`LayersError::Layer`] if its state cannot be read.
    pub fn export_state(&self, states: &LayerStates, id: &str) -> Result<Raw, LayersError> {
        let (at, layer) = self.require_layer(id)?;
        let state = states.slots.get(at).and_then(StateSlot::ready_state);
        let state = state.ok_or_else(|| LayerError::from_message("the layer has no state here"));
        state
            .and_then(|state| layer.export_state(state))
            .map_err(|source| LayersError::Layer {
                id: layer.spec().id.clone(),
                // Exporting is not a hook. Recall is the closest one: it also reads a state without changing it.
                hook: crate::Hook::Recall,
                source,
            })
    }

    pub(crate) fn iter(
        &self,
    ) -> impl DoubleEndedIterator<Item = &dyn DynLayer> + ExactSizeIterator {
        self.list.iter().map(AsRef::as_ref)
    }

    pub(crate) fn require_layer(&self, id: &str) -> Result<(usize, &dyn DynLayer), LayersError> {
        self.find_by_id(id).ok_or_else(|| LayersError::NoLayer {
            id: id.to_owned(),
            there: self
                .specs()
                .map(|spec| spec.id.as_str())
                .collect::<Vec<_>>()
                .join(", "),
        })
    }

    fn find_by_id(&self, id: &str) -> Option<(usize, &dyn DynLayer)> {
        self.iter()
            .enumerate()
            .find(|(_, layer)| layer.spec().id.as_str() == id)
    }
}

impl fmt::Debug for Layers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list()
            .entries(self.specs().map(|spec| &spec.id))
            .finish()
    }
}
