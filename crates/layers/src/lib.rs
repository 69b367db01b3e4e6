//! Layers: owners of state and policy that add to every call of a model.
//!
//! A [`Layer`] keeps a typed state, says something in each call ([`Layer::recall`]), and is told what happens: items
//! appended, answers, calls of tools, child runs, the end. [`Layers`] runs a list of them: in order, each in its own
//! time, none able to harm another. State comes in as bytes and goes out as bytes ([`LayerStates`]).
//!
//! Not here: where state is kept and when (`contexture-engine`), what a payload looks like (`contexture-compile`),
//! running tools.

pub mod builtin;
mod contract;
mod runtime;

pub use contract::{
    AnswerVerdict, ChildEnd, EmptyHost, FunctionError, FunctionSpec, HistoryHit, Hook, HookContext,
    HookOutcome, HookStatus, Layer, LayerError, LayerEvent, LayerHost, LayerId, LayerIdError,
    LayerSpec, LayersError, ObservedItems, OfferedTo, OnError, Projection, RecallCache,
    RecallInput, RecallMode, Rerun, RunEnd, StateScope, Timeouts, ToolGate, ToolRequest,
};
pub use runtime::{ChangedState, CombinedRecall, LayerStates, Layers, STATE_BYTES, StoredState};
