//! The states of a list of layers at one instant: bytes in, bytes out.

use std::fmt;
use std::sync::Arc;

use crate::erased::{AnyState, Erased};
use crate::error::LayerError;
use crate::id::LayerId;
use crate::spec::Scope;

/// The largest state, in bytes of JSON. It is the store's limit for one value.
pub const STATE_BYTES: usize = 1 << 20;

/// A stored state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stored {
    /// The version of its schema.
    pub version: u32,
    /// Its JSON.
    pub bytes: Arc<[u8]>,
}

/// A state that is to be stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Changed {
    /// Whose it is.
    pub layer: LayerId,
    /// What it belongs to.
    pub scope: Scope,
    /// What it is now.
    pub now: Stored,
    /// What it replaces; `None`: there was nothing.
    pub before: Option<Stored>,
}

/// The states of a list of layers, as they were read and as the hooks have left them.
#[derive(Default)]
pub struct LayerStates {
    /// In the order of the list.
    pub(crate) slots: Vec<Slot>,
}

/// One layer's state.
pub(crate) struct Slot {
    pub(crate) stored: Option<Stored>,
    pub(crate) now: Now,
}

pub(crate) enum Now {
    /// There is none yet.
    Absent,
    /// This one, and what it is as bytes.
    Ready(AnyState, Stored),
    /// It cannot be had, for this reason: the layer is skipped, and what is stored stays as it is.
    Broken(String),
    /// The parent's layer leaves it out of this run.
    LeftOut,
}

impl Slot {
    pub(crate) fn read(layer: &dyn Erased, stored: Option<Stored>) -> Self {
        let now = match &stored {
            None => Now::Absent,
            Some(stored) => match layer.read(stored.version, &stored.bytes) {
                Ok(state) => Now::Ready(state, stored.clone()),
                Err(error) => Now::Broken(error.to_string()),
            },
        };
        Self { stored, now }
    }

    pub(crate) const fn ready(&self) -> Option<&AnyState> {
        match &self.now {
            Now::Ready(state, _) => Some(state),
            Now::Absent | Now::Broken(_) | Now::LeftOut => None,
        }
    }

    /// Why there is no state.
    pub(crate) fn why_not(&self) -> &str {
        match &self.now {
            Now::Broken(why) => why,
            Now::LeftOut => "its parent's layer leaves it out",
            Now::Absent | Now::Ready(..) => "it has no state here",
        }
    }

    /// Takes a new state, if it is one.
    pub(crate) fn set(&mut self, layer: &dyn Erased, state: AnyState) -> Result<(), LayerError> {
        if let Some(now) = self.ready()
            && layer.same(now, &state)
        {
            return Ok(());
        }
        layer.check(&state)?;
        let bytes = layer.write(&state)?;
        if bytes.len() > STATE_BYTES {
            return Err(LayerError::StateTooLarge {
                bytes: bytes.len(),
                limit: STATE_BYTES,
            });
        }
        let version = layer.spec().version;
        self.now = Now::Ready(state, Stored { version, bytes });
        Ok(())
    }
}

impl LayerStates {
    /// What is to be stored: the states that differ from what was read.
    pub(crate) fn changed<'a>(
        &'a self,
        layers: impl Iterator<Item = &'a dyn Erased> + 'a,
    ) -> impl Iterator<Item = Changed> + 'a {
        self.slots.iter().zip(layers).filter_map(|(slot, layer)| {
            let Now::Ready(_, now) = &slot.now else {
                return None;
            };
            (slot.stored.as_ref() != Some(now)).then(|| Changed {
                layer: layer.spec().id.clone(),
                scope: layer.spec().scope,
                now: now.clone(),
                before: slot.stored.clone(),
            })
        })
    }

    /// What was to be stored is.
    pub fn settle(&mut self) {
        for slot in &mut self.slots {
            if let Now::Ready(_, now) = &slot.now {
                slot.stored = Some(now.clone());
            }
        }
    }
}

impl fmt::Debug for LayerStates {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let slots = self.slots.iter().map(|slot| match &slot.now {
            Now::Absent => "absent".to_owned(),
            Now::Ready(_, stored) => String::from_utf8_lossy(&stored.bytes).into_owned(),
            Now::Broken(why) => format!("broken: {why}"),
            Now::LeftOut => "left out".to_owned(),
        });
        f.debug_list().entries(slots).finish()
    }
}
