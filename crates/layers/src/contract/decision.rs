//! What layers decide: about a call of a tool, about an answer; and what they are told to decide by.

use contexture_ir::{Item, Raw, RunId, Usage};
use contexture_tools::ToolId;

/// A call of a tool that is about to run: the tool that was reached, whatever the route.
#[derive(Clone, Debug, PartialEq)]
pub struct ToolRequest {
    /// The tool as the registry knows it: `tool`, or `group/tool`.
    pub tool: String,
    /// The name by which the model called.
    pub called_name: String,
    /// The provider's id of the call.
    pub call_id: String,
    /// The tool's own arguments.
    pub arguments: Raw,
}

impl ToolRequest {
    /// The tool's name, to hold [patterns](contexture_tools::Pattern) against.
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
    /// It may, as far as this layer goes.
    #[default]
    Allow,
    /// It may, and where the policy would have a person asked, nobody is. What the policy denies stays denied.
    Approve,
    /// It may, and the model is told this with its output.
    Guide(String),
    /// A person decides, having been told this.
    Ask(String),
    /// It does not run; the model is told this instead.
    Deny(String),
}

impl ToolGate {
    /// Both together: a denial before everything, the first of two; then asking, then guidances, which are joined by
    /// lines, then an approval.
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

/// What a layer says to an answer.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum AnswerVerdict {
    /// It is good, as far as this layer goes.
    #[default]
    Pass,
    /// These items instead.
    Fix(Vec<Item>),
    /// Ask again, having said this. The answer is kept, hidden from the model.
    Retry {
        /// What the model is told.
        feedback: String,
    },
    /// The run ends here. The answer is kept.
    Stop {
        /// Why the run ends.
        reason: String,
    },
}

/// How a run ended.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// It did what it was for.
    Completed,
    /// It was called off.
    Aborted {
        /// Why, if somebody said so.
        reason: Option<String>,
    },
    /// It went wrong.
    Failed {
        /// What went wrong.
        error: String,
    },
}

/// A child run's end, as its parent's layers see it.
#[derive(Clone, Debug, PartialEq)]
pub struct ChildEnd {
    /// Id of the child run.
    pub run: RunId,
    /// How it ended.
    pub end: RunEnd,
    /// What it gives back.
    pub result: Option<String>,
    /// What it used, its own children included.
    pub usage: Usage,
}
