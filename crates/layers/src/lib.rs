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
pub use decision::{ChildEnd, Gate, RunEnd, ToolRequest, Verdict};
pub use error::{LayerError, LayersError};
pub use function::{FunctionError, FunctionSpec, Offered, Rerun};
pub use gather::Gathered;
pub use history::Projection;
pub use host::{Found, LayerHost, NoHost};
pub use id::{BadLayerId, LayerId};
pub use layer::{Layer, Observed};
pub use layers::Layers;
pub use outcome::{Hook, Outcome, Status};
pub use recall::{Recall, Recalled};
pub use spec::{LayerSpec, OnError, RecallMode, Scope, Timeouts};
pub use states::{Changed, LayerStates, STATE_BYTES, Stored};
