//! Layers: owners of state and policy that add to every call of a model.
//!
//! A [`Layer`] keeps a typed state, says something in each call ([`Layer::recall`]), and is told what happens: items
//! appended, answers, calls of tools, child runs, the end. [`Layers`] runs a list of them: in order, each in its own
//! time, none able to harm another. State comes in as bytes and goes out as bytes ([`LayerStates`]).
//!
//! Not here: where state is kept and when (`contexture-engine`), what a payload looks like (`contexture-compile`),
//! running tools.

pub mod builtin;
mod context;
mod decision;
mod erased;
mod error;
mod function;
mod gather;
mod history;
mod host;
mod id;
mod layer;
mod layers;
mod outcome;
mod panics;
mod recall;
mod running;
mod spec;
mod states;

pub use context::{HookContext, LayerEvent};
pub use decision::{AnswerVerdict, ChildEnd, RunEnd, ToolGate, ToolRequest};
pub use error::{LayerError, LayersError};
pub use function::{FunctionError, FunctionSpec, OfferedTo, Rerun};
pub use gather::CombinedRecall;
pub use history::Projection;
pub use host::{EmptyHost, HistoryHit, LayerHost};
pub use id::{LayerId, LayerIdError};
pub use layer::{Layer, ObservedItems};
pub use layers::Layers;
pub use outcome::{Hook, HookOutcome, HookStatus};
pub use recall::{RecallCache, RecallInput};
pub use spec::{LayerSpec, OnError, RecallMode, StateScope, Timeouts};
pub use states::{ChangedState, LayerStates, STATE_BYTES, StoredState};
