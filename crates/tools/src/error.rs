//! What can be wrong with tools as they are registered.

use crate::names::{Name, ToolId};

/// Why a tool or group was not registered.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ToolError {
    /// A name is empty, too long or cannot be shown.
    #[error(
        "the name {name:?} cannot be a {what}'s: expected 1 to 256 bytes without control characters"
    )]
    BadName {
        /// What was to be named: `tool`, `group`.
        what: &'static str,
        /// The name, cut to 80 characters.
        name: String,
    },
    /// The name is taken, perhaps in other case; names that differ in case only are too easily confused.
    #[error("{name:?} is already the name of {taken_by}; unregister that first, or replace it")]
    Duplicate {
        /// The name wanted.
        name: Name,
        /// Who has it: `the tool crm/find`, `the namespace crm`.
        taken_by: String,
    },
    /// The name belongs to this crate.
    #[error("{name:?} is the name of the tool that loads toolkits; choose another")]
    Reserved {
        /// The name wanted.
        name: Name,
    },
    /// A tool names a group that is not registered.
    #[error(
        "tool {tool} belongs to the group {group:?}, which is not registered; register the group first"
    )]
    UnknownGroup {
        /// Id of the tool.
        tool: ToolId,
        /// The group it names.
        group: Name,
    },
    /// A provider's own tool cannot belong to a group: the provider would not find it there.
    #[error("{tool} is a provider's own tool and cannot belong to a group")]
    ProviderToolInGroup {
        /// Id of the tool.
        tool: ToolId,
    },
    /// The schema of the arguments cannot be one.
    #[error("tool {tool}: schema of the arguments, {path}: expected {expected}, found {found}")]
    BadSchema {
        /// Id of the tool.
        tool: ToolId,
        /// Where in the schema, as a JSON pointer; `/` is the schema itself.
        path: String,
        /// What may stand there.
        expected: &'static str,
        /// What stands there, cut to 60 characters.
        found: String,
    },
}
