//! The steps of a run: a model is asked, its calls are run, until nothing is left to do.
//!
//! Everything durable is an append. What comes next follows from the path alone (`crate::execution`), so a run that was
//! cut off at any instant goes on from there as if nothing had happened.
//!
//! ```text
//! begin ─▶ compile ─▶ model ─▶ layers judge ─▶ record ─▶ calls? ─▶ decide ─▶ tools ─▶ append ─▶ compile …
//!                                                          └─ none ─▶ end: layers are told, the run's entries go
//! ```
//!
//! * `step_loop` decides which step is next, asks stop conditions and checks the budget.
//! * `model_step` gets one answer; `decide_call` and `tool_step` deal with its calls; `store_output` stores each output.
//! * `sub_agent` runs a child by the same steps; `inbox` appends what arrived meanwhile.
//! * `finish` ends the run; `resume` rebuilds a live run from the store.
//!
//! Each step is a function over a [`LiveRun`](crate::execution::LiveRun). Not here: what a tool is ([`crate::ToolBox`]),
//! providers, storage.

mod decide_call;
mod finish;
mod inbox;
mod model_step;
mod resume;
mod step_loop;
mod store_output;
mod sub_agent;
mod tool_step;

pub use inbox::post_to_inbox;
pub(crate) use resume::resume;
pub(crate) use step_loop::drive;
pub(crate) use sub_agent::{join_child, spawn_child};
