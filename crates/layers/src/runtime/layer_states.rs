//! The states of a list of layers at one instant: bytes in, bytes out.

use std::fmt;
use std::sync::Arc;

use crate::contract::{LayerError, LayerId, StateScope};
use crate::runtime::dyn_layer::{AnyState, DynLayer};

/// The largest state, in bytes of JSON. It is the store's limit for one value.
pub const STATE_BYTES: usize = 1 << 20;

/// A stored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredState {
    /// The version of its schema.
    pub version: u32,
    /// Its JSON.
    pub bytes: Arc<[u8]>,
}

/// A state that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedState {
    /// Whose it is.
    pub layer: LayerId,
    /// What it belongs to.
    pub scope: StateScope,
    /// What it is now.
    pub now: StoredState,
    /// What it replaces; `None`: there was nothing.
    pub before: Option<StoredState>,
}

/// The states of a list of layers, as they were read and as the hooks have left them.
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
    /// There is none yet.
    Absent,
    /// This one, and what it is as bytes.
    Ready(AnyState, StoredState),
    /// It cannot be had, for this reason: the layer is skipped, and what is stored stays as it is.
    Broken(String),
    /// The parent's layer leaves it out of this run.
    LeftOut,
}

impl StateSlot {
    pub(crate) fn from_stored(layer: &dyn DynLayer, stored: Option<StoredState>) -> Self {
        let now = match &stored {
            None => SlotState::Absent,
            Some(stored) => match layer.read_state(stored.version, &stored.bytes) {
                Ok(state) => SlotState::Ready(state, stored.clone()),
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

    /// Why there is no state.
    pub(crate) fn missing_reason(&self) -> &str {
        match &self.current {
            SlotState::Broken(why) => why,
            SlotState::LeftOut => "its parent's layer leaves it out",
            SlotState::Absent | SlotState::Ready(..) => "it has no state here",
        }
    }

    /// Takes a new state, if it is one.
    pub(crate) fn set_state(
        &mut self,
        layer: &dyn DynLayer,
        state: AnyState,
    ) -> Result<(), LayerError> {
        if let Some(now) = self.ready_state()
            && layer.is_same_state(now, &state)
        {
            return Ok(());
        }
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
    /// What is to be stored: the states that differ from what was read.
    pub(crate) fn changed_states<'a>(
        &'a self,
        layers: impl Iterator<Item = &'a dyn DynLayer> + 'a,
    ) -> impl Iterator<Item = ChangedState> + 'a {
        self.slots.iter().zip(layers).filter_map(|(slot, layer)| {
            let SlotState::Ready(_, now) = &slot.current else {
                return None;
            };
            (slot.stored.as_ref() != Some(now)).then(|| ChangedState {
                layer: layer.spec().id.clone(),
                scope: layer.spec().scope,
                now: now.clone(),
                before: slot.stored.clone(),
            })
        })
    }

    /// What was to be stored is.
    pub fn mark_committed(&mut self) {
        for slot in &mut self.slots {
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
            SlotState::Broken(why) => format!("broken: {why}"),
            SlotState::LeftOut => "left out".to_owned(),
        });
        f.debug_list().entries(slots).finish()
    }
}
