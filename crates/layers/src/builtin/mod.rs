//! The built-in layers. Each is an ordinary [`Layer`](crate::Layer), without privileges over layers of other crates.
//!
//! Not here: the trait, and running hooks.

mod function_args;
mod guardrails;
mod history;
mod instructions;
pub mod memory;
mod observations;
mod open_calls;
mod plan;
pub mod reminders;
mod retrieval;
mod scratchpad;
mod skills;
mod state;

pub use guardrails::{
    ForbiddenText, Guard, Guardrails, JsonOutput, MatchAction, MaxLength, ModelAnswer,
    OutputVerdict, ToolCalls, ToolRule,
};
pub use history::History;
pub use instructions::{InstructionText, Instructions};
pub use memory::Memory;
pub use observations::{Observation, ObservationKind, Observations, ObservationsState};
pub use open_calls::PendingCalls;
pub use plan::{PlanLayer, PlanState, PlanTask, TaskStatus};
pub use retrieval::{Embedder, Retrieval};
pub use scratchpad::{
    MAX_PAD_BYTES, MAX_PAD_DEPTH, Scratchpad, ScratchpadContent, ScratchpadError,
};
pub use skills::{
    ActivatedBy, ActiveSkill, AllowedTool, LoadedSkills, Precedence, RefusedSkill, Skill,
    SkillError, SkillFileError, SkillFolders, Skills, SkillsState, UnknownFields,
};
pub use state::{StateLayer, StateSchema};
