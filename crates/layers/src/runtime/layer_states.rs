//! The states of a list of layers at one instant.
//!
//! States are read from bytes and returned as bytes, so the store needs to know nothing of their types. Each slot keeps
//! what was read, which a store compares to detect conflicts.

use std::fmt;
use std::sync::Arc;

use crate::contract::{LayerError, LayerId, StateScope};
use crate::runtime::dyn_layer::{AnyState, DynLayer};

/// Maximum size of a state, in bytes of JSON: the store's limit for one value.
pub const STATE_BYTES: usize = 1 << 20;

/// A stored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredState {
    /// The version of its schema.
    pub version: u32,
    /// The state as JSON.
    pub bytes: Arc<[u8]>,
}

/// A state to store, with the value it replaces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedState {
    /// Name of the layer.
    pub layer: LayerId,
    /// Scope of the state: a run, a path, a resource, or the owner.
    pub scope: StateScope,
    /// The new state.
    pub current: StoredState,
    /// The stored state it replaces; `None` if nothing was stored.
    pub previous: Option<StoredState>,
}

/// The states of a list of layers: as they were read, and as hooks left them.
#[derive(Default)]
pub struct LayerStates {
    /// In the order of the list.
    pub(crate) slots: Vec<StateSlot>,
}

/// One layer's state.
pub(crate) struct StateSlot {
    pub(crate) stored: Option<StoredState>,
    pub(crate) current: SlotState,
}

pub(crate) enum SlotState {
    /// No state yet.
    Absent,
    /// A state, and its bytes.
    Ready(AnyState, StoredState),
    /// The state cannot be read, for this reason: the layer is skipped, and what is stored stays as it is.
    Broken(String),
    /// The parent's layer leaves this layer out of the child run.
    LeftOut,
}

impl StateSlot {
    pub(crate) fn from_stored(layer: &dyn DynLayer, stored: Option<StoredState>) -> Self {
        let now = match &stored {
            None => SlotState::Absent,
            Some(stored) => match layer.read_state(stored.version, &stored.bytes) {
                Ok(state) => SlotState::Ready(state, stored.clone()),
                // Marked as broken, not as absent: an absent state would be created again and overwrite the stored one.
                Err(error) => SlotState::Broken(error.to_string()),
            },
        };
        Self {
            stored,
            current: now,
        }
    }

    pub(crate) const fn ready_state(&self) -> Option<&AnyState> {
        match &self.current {
            SlotState::Ready(state, _) => Some(state),
            SlotState::Absent | SlotState::Broken(_) | SlotState::LeftOut => None,
        }
    }

    /// Explains why there is no state.
    pub(crate) fn missing_reason(&self) -> &str {
        match &self.current {
            SlotState::Broken(reason) => reason,
            SlotState::LeftOut => "its parent's layer leaves it out",
            SlotState::Absent | SlotState::Ready(..) => "it has no state here",
        }
    }

    /// Sets a new state, if it differs from the current one.
    pub(crate) fn set_state(
        &mut self,
        layer: &dyn DynLayer,
        state: AnyState,
    ) -> Result<(), LayerError> {
        // Most hooks change nothing: comparing is cheaper than serializing, and an unchanged state is not stored again.
        if let Some(now) = self.ready_state()
            && layer.is_same_state(now, &state)
        {
            return Ok(());
        }
        // All checks before the slot changes: a refused state leaves the old one.
        layer.validate_state(&state)?;
        let bytes = layer.write_state(&state)?;
        if bytes.len() > STATE_BYTES {
            return Err(LayerError::StateTooLarge {
                bytes: bytes.len(),
                limit: STATE_BYTES,
            });
        }
        let version = layer.spec().version;
        self.current = SlotState::Ready(state, StoredState { version, bytes });
        Ok(())
    }
}

impl LayerStates {
    /// The states that differ from what was read.
    pub(crate) fn changed_states<'a>(
        &'a self,
        layers: impl Iterator<Item = &'a dyn DynLayer> + 'a,
    ) -> impl Iterator<Item = ChangedState> + 'a {
        self.slots.iter().zip(layers).filter_map(|(slot, layer)| {
            // A broken or left-out layer keeps what is stored.
            let SlotState::Ready(_, now) = &slot.current else {
                return None;
            };
            // Versions and bytes are compared, not values: no code of a layer runs here, so this cannot fail.
            (slot.stored.as_ref() != Some(now)).then(|| ChangedState {
                layer: layer.spec().id.clone(),
                scope: layer.spec().scope,
                current: now.clone(),
                previous: slot.stored.clone(),
            })
        })
    }

    /// Marks all states as stored, after the store accepted them.
    pub fn mark_committed(&mut self) {
        for slot in &mut self.slots {
            // Only ready states can have been among the changed ones.
            if let SlotState::Ready(_, now) = &slot.current {
                slot.stored = Some(now.clone());
            }
        }
    }
}

impl fmt::Debug for LayerStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.slots.iter().map(|slot| match &slot.current {
            SlotState::Absent => "absent".to_owned(),
            SlotState::Ready(_, stored) => String::from_utf8_lossy(&stored.bytes).into_owned(),
            SlotState::Broken(reason) => format!("broken: {reason}"),
            SlotState::LeftOut => "left out".to_owned(),
        });
        f.debug_list().entries(slots).finish()
    }
}
