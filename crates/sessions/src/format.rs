//! The logs we read and write, by name.

use std::fmt;
use std::str::FromStr;

use contexture_wire::Format;

use crate::error::SessionError;

/// What a session file is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum SessionFormat {
    /// A request body, a response body or a message array of a wire format; also AI SDK UI messages
    /// and our own items.
    Wire(Format),
    /// SWE-agent's `.traj`: one object with `history`.
    SweAgent,
    /// tau-bench results: an array of runs with a `traj` each.
    TauBench,
    /// Claude Code's log: one record a line, linked by `parentUuid`.
    ClaudeCode,
    /// A rollout of Codex: one record a line with a `payload`.
    Codex,
    /// A trajectory in the Agent Trajectory Interchange Format (ATIF): one object with `schema_version`, `agent` and `steps`. Any
    /// session can be written as one.
    Atif,
    /// A chat of a `@deepagents/context` database: the rows of its tables that are about the chat, as
    /// one object with `chat`, `messages`, `branches` and `checkpoints`.
    DeepAgents,
}

impl SessionFormat {
    /// The formats of logs that are no wire format.
    const LOGS: [Self; 6] = [
        Self::SweAgent,
        Self::TauBench,
        Self::ClaudeCode,
        Self::Codex,
        Self::Atif,
        Self::DeepAgents,
    ];

    /// All formats: those of the wire, then those of logs.
    pub const ALL: [Self; Format::ALL.len() + Self::LOGS.len()] = {
        let mut all = [Self::SweAgent; Format::ALL.len() + Self::LOGS.len()];
        let (mut wire, logs) = all.split_at_mut(Format::ALL.len());
        let mut formats: &[Format] = &Format::ALL;
        // Iterators cannot run in constants yet.
        while let ([slot, others @ ..], [format, rest @ ..]) = (wire, formats) {
            *slot = Self::Wire(*format);
            (wire, formats) = (others, rest);
        }
        logs.copy_from_slice(&Self::LOGS);
        all
    };

    /// The name users write.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Wire(format) => format.as_str(),
            Self::SweAgent => "swe-agent",
            Self::TauBench => "tau-bench",
            Self::ClaudeCode => "claude-code",
            Self::Codex => "codex",
            Self::Atif => "atif",
            Self::DeepAgents => "deepagents",
        }
    }
}

impl fmt::Display for SessionFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl FromStr for SessionFormat {
    type Err = SessionError;

    fn from_str(name: &str) -> Result<Self, SessionError> {
        Self::ALL
            .into_iter()
            .find(|format| format.as_str() == name)
            .ok_or_else(|| SessionError::UnknownName {
                name: name.to_owned(),
            })
    }
}
