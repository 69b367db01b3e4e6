//! Trajectories in the Agent Trajectory Interchange Format: one object with `schema_version`, `agent` and `steps`.
//!
//! A step is what a person or the host says, or one turn of the agent: its thoughts, its message, its calls and what they returned.
//! Read: versions 1.0 to 1.8. Written: 1.8, from any session, without usage, which a session does not have.
//!
//! Not here: trajectories of sub-agents that stand in their parent's, which are kept and not read.

mod document;
mod read;
mod write;

pub(crate) use read::read_session;
pub(crate) use write::write_session;
