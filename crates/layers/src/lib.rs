//! Layers: owners of state and policy that add to every call of a model.
//!
//! A [`Layer`] has a typed state, contributes to each call ([`Layer::recall`]), and has hooks for what happens:
//! appended items, answers, tool calls, child runs, the end. [`Layers`] runs a list of them: in order, each within its
//! own time limits, isolated from one another's failures. State is passed in and out as bytes ([`LayerStates`]).
//!
//! Not here: where and when state is stored (`contexture-engine`), the format of payloads (`contexture-compile`),
//! running tools.

pub mod builtin;
mod contract;
mod runtime;

pub use contract::{
    AnswerVerdict, ChildEnd, ChildResult, EmptyHost, FunctionError, FunctionSpec, HistoryHit, Hook,
    HookContext, HookOutcome, HookStatus, Layer, LayerError, LayerEvent, LayerHost, LayerId,
    LayerIdError, LayerSpec, LayersError, ObservedItems, OfferedTo, OnError, Projection,
    RecallCache, RecallInput, RecallMode, Rerun, RunEnd, StateScope, Timeouts, ToolGate,
    ToolRequest,
};
pub use runtime::{ChangedState, CombinedRecall, LayerStates, Layers, STATE_BYTES, StoredState};
