//! The layers that are built in. Each is an ordinary [`Layer`](crate::Layer): what they do, a layer of yours can do.
//!
//! Not here: the trait, and the running of hooks.

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
    ForbiddenText, Guard, Guardrails, JsonOutput, MatchAction, MaxLength, ModelAnswer, ToolCalls,
    ToolRule,
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
