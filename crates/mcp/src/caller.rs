//! For whom a request is answered.

use contexture::Owner;

use crate::tool_selection::ToolSelection;

/// What a caller may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Read: tools that change something are neither listed nor run.
    Read,
    /// Read and change.
    Write,
}

/// For whom a request is answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    pub(crate) owner: Owner,
    pub(crate) access: Access,
    /// The tools that are offered and run; `None`: all that the access allows.
    pub(crate) tools: Option<ToolSelection>,
}

impl Caller {
    /// Somebody who acts for an owner.
    #[must_use]
    pub const fn new(owner: Owner, access: Access) -> Self {
        Self {
            owner,
            access,
            tools: None,
        }
    }

    /// The same with these tools only, as far as the access allows them.
    #[must_use]
    pub fn with_tools(self, tools: ToolSelection) -> Self {
        Self {
            tools: Some(tools),
            ..self
        }
    }
}
