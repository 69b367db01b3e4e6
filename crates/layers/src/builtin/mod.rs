//! The layers that are built in. Each is an ordinary [`Layer`](crate::Layer): what they do, a layer of yours can do.
//!
//! Not here: the trait, and the running of hooks.

mod guardrails;
mod observations;
mod plan;
pub mod reminders;
mod retrieval;
mod skills;
mod tool;

pub use guardrails::{
    Answer, Forbidden, Guard, Guardrails, JsonOutput, MaxLength, OnHit, ToolCalls, ToolRule,
};
pub use observations::{Note, NoteKind, Observations, ObservationsState};
pub use plan::{Plan, PlanState, Task, TaskStatus};
pub use retrieval::{Embedder, Retrieval};
pub use skills::{
    ActivatedBy, ActiveSkill, AllowedTool, LoadedSkills, Precedence, RefusedSkill, Skill,
    SkillError, SkillFileError, SkillFolders, Skills, SkillsState, UnknownFields,
};
