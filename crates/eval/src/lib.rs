//! Does an agent still do its work under a policy, and what does that save? Tasks, an agent that plays them, and the figures.
//!
//! Each task is played twice: through a server that passes requests on as they come, and through one with a policy. The agent is
//! a plain client of OpenAI's chat format and knows a base URL, no more. What the calls cost is read from the server's
//! record of calls.
//!
//! Modules depend downwards only: `evaluation`, `report` → `tau_bench` → `agent`, `served` → `policy`, `tasks` → `error`.
//!
//! Not here: the command (`main.rs`), prices (`contexture-catalogue`), and what a policy does (`contexture-server`).

mod agent;
mod error;
mod evaluation;
mod policy;
mod report;
mod served;
mod tasks;
mod tau_bench;

pub use error::EvalError;
pub use evaluation::{EvaluationOptions, play_tasks};
pub use policy::{DEFAULT_POLICY, PolicyUnderTest};
pub use report::{Arm, EvaluationReport, PlayedRun, Verdict};
pub use served::{CallFigures, ProviderAddress};
pub use tasks::{EvalTask, TaskKind, ToolSpec, World, all_tasks};
pub use tau_bench::{TauBench, play_tau_bench};
