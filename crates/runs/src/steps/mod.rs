//! The steps of a run: ask the model, run its calls, until nothing is left to do.
//!
//! Everything durable is an append. What comes next is derived from the path alone (`crate::execution`), so a run that
//! was interrupted at any point continues from there.
//!
//! ```text
//! begin ─▶ compile ─▶ model ─▶ layers judge ─▶ record ─▶ calls? ─▶ decide ─▶ tools ─▶ append ─▶ compile …
//!                                                          └─ none ─▶ end: layers notified, run state removed
//! ```
//!
//! * `step_loop` decides which step is next, evaluates stop conditions and checks the budget.
//! * `model_step` gets one answer to what `model_request` asks; `decide_call` and `tool_step` deal with its calls; `store_output` stores each output.
//! * `final_answer` asks again where an answer may not end the run.
//! * `sub_agent` runs a child by the same steps; `inbox` appends items that arrived meanwhile.
//! * `begin` claims the branch and starts the run; `resume` rebuilds a live run from the store; `finish` ends it, and
//!   `abandon` ends one that nobody goes on with, and `cancel` any, by its id.
//! * `queue` stores a run for whoever has its agent.
//! * `late_output` keeps what a tool gave while another process took the run up.
//!
//! Each step is a function over a [`LiveRun`](crate::execution::LiveRun). Not here: what a tool is ([`crate::ToolBox`]),
//! providers, storage.

mod abandon;
mod begin;
mod cancel;
mod decide_call;
mod final_answer;
mod finish;
mod inbox;
mod late_output;
mod model_request;
mod model_step;
mod queue;
mod resume;
mod step_loop;
mod store_output;
mod sub_agent;
mod tool_step;

pub use abandon::abandon_run;
pub(crate) use begin::begin;
pub use cancel::cancel_run;
pub use inbox::post_to_inbox;
pub use queue::queue_run;
pub(crate) use resume::resume;
pub(crate) use step_loop::drive;
pub(crate) use sub_agent::{join_child, spawn_child};
