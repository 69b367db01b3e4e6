//! Decisions of layers about tool calls and answers, and the data they decide on.

use contexture_ir::{Item, Raw, RunId, Usage};
use contexture_tools::ToolId;

/// A tool call that is about to run, after its name was resolved.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRequest {
    /// The tool's id in the registry: `tool`, or `group/tool`.
    pub tool: String,
    /// The name by which the model called it.
    pub called_name: String,
    /// The provider's id of the call.
    pub call_id: String,
    /// The tool's own arguments.
    pub arguments: Raw,
}

impl ToolRequest {
    /// Returns the tool's id, to match [patterns](contexture_tools::Pattern) against.
    ///
    /// ```
    /// use contexture_ir::Raw;
    /// use contexture_layers::ToolRequest;
    /// use contexture_tools::ToolId;
    ///
    /// let call = ToolRequest {
    ///     tool: "mail/send".to_owned(),
    ///     called_name: "mail_send".to_owned(),
    ///     call_id: "call_1".to_owned(),
    ///     arguments: Raw::parse("{}")?,
    /// };
    /// assert_eq!(call.tool_id(), ToolId::in_group("mail", "send"));
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    #[must_use]
    pub fn tool_id(&self) -> ToolId {
        match self.tool.split_once('/') {
            Some((group, name)) => ToolId::in_group(group, name),
            None => ToolId::flat(self.tool.as_str()),
        }
    }
}

/// Whether a call of a tool may run.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ToolGate {
    /// Allowed, as far as this layer is concerned.
    #[default]
    Allow,
    /// Allowed without the approval that the policy may ask for. What the policy denies stays denied.
    Approve,
    /// Allowed; the model gets this text with the output.
    Guide(String),
    /// A person decides, and is shown this text.
    Ask(String),
    /// Denied; the model gets this text instead of an output.
    Deny(String),
}

impl ToolGate {
    /// Combines two decisions: a denial first, the first of two; then asking, then guidance (each joined by line
    /// feeds), then an approval.
    #[must_use]
    pub fn and(self, other: Self) -> Self {
        match (self, other) {
            (deny @ Self::Deny(_), _) | (_, deny @ Self::Deny(_)) => deny,
            (Self::Ask(one), Self::Ask(two)) => Self::Ask(join_lines(one, &two)),
            (ask @ Self::Ask(_), _) | (_, ask @ Self::Ask(_)) => ask,
            (Self::Guide(one), Self::Guide(two)) => Self::Guide(join_lines(one, &two)),
            (guide @ Self::Guide(_), _) | (_, guide @ Self::Guide(_)) => guide,
            (Self::Approve, _) | (_, Self::Approve) => Self::Approve,
            (Self::Allow, Self::Allow) => Self::Allow,
        }
    }
}

fn join_lines(mut one: String, two: &str) -> String {
    if !one.is_empty() && !two.is_empty() {
        one.push('\n');
    }
    one.push_str(two);
    one
}

/// Verdict of a layer on an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AnswerVerdict {
    /// Accepted, as far as this layer is concerned.
    #[default]
    Pass,
    /// Replaced by these items.
    Fix(Vec<Item>),
    /// Rejected: the model is asked again with this feedback. The answer is stored, hidden from models and people.
    Retry {
        /// Feedback that the model is given.
        feedback: String,
    },
    /// The run ends here. The answer is stored.
    Stop {
        /// Why the run ends.
        reason: String,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The run ended normally.
    Completed,
    /// The run was aborted.
    Aborted {
        /// Reason, if one was given.
        reason: Option<String>,
    },
    /// The run failed.
    Failed {
        /// Error message of the run.
        error: String,
    },
}

/// The end of a child run, as its parent's layers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildEnd {
    /// Id of the child run.
    pub run: RunId,
    /// How it ended.
    pub end: RunEnd,
    /// What its parent's model is to read: its value as JSON if it has one, else the text of its last answer; `None` if it
    /// failed.
    pub result: Option<String>,
    /// Its usage, that of its own children included.
    pub usage: Usage,
}

/// What a parent's model reads of a child run that ended.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub enum ChildResult {
    /// What the child gave, or why it failed.
    #[default]
    Keep,
    /// This text instead, also of a child that failed.
    Replace(String),
}
