//! The contract between layers and whoever runs them.
//!
//! A *layer* ([`Layer`]) owns a typed state and a policy; a *hook* is one of its functions that is called when
//! something happens; a *function* ([`FunctionSpec`]) is offered to models as a tool. Everything here is data and
//! traits: the input of each hook ([`HookContext`], [`RecallInput`], [`ToolRequest`]), its decision ([`ToolGate`],
//! [`AnswerVerdict`]) and its outcome ([`HookOutcome`]). A layer author needs nothing else.
//!
//! Always holds: nothing here runs a hook, keeps a state or knows a built-in layer. Not here: running hooks
//! (`crate::runtime`) and the layers that come with the crate ([`crate::builtin`]).

mod decision;
mod error;
mod function;
mod hook_context;
mod hook_outcome;
mod host;
mod layer;
mod layer_id;
mod recall;
mod spec;

pub use decision::{AnswerVerdict, ChildEnd, ChildResult, RunEnd, ToolGate, ToolRequest};
pub use error::{LayerError, LayersError};
pub(crate) use error::{catch_panic, panic_error};
pub use function::{FunctionError, FunctionSpec, OfferedTo, Rerun};
pub use hook_context::{HookContext, LayerEvent};
pub use hook_outcome::{Hook, HookOutcome, HookStatus};
pub use host::{EmptyHost, HistoryHit, LayerHost};
pub use layer::{Layer, ObservedItems, Projection};
pub use layer_id::{LayerId, LayerIdError};
pub use recall::{RecallCache, RecallInput};
pub use spec::{LayerSpec, OnError, RecallMode, StateScope, Timeouts};
