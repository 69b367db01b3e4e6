//! The policy of which tools may run: allowed, denied, or a person is asked first.
//!
//! A policy decides about the tool that a call *means*, not about the name the model wrote: [`crate::Registry::resolve`]
//! asks it on every route, so a denied tool cannot be reached through a namespace or a toolkit. What is offered does not
//! change with it, so the prompt's prefix holds; [`crate::Choice::hide`] is there for who wants that.
//!
//! Of several rules that match, the strictest counts, whatever their order: deny, then ask, then allow.

use std::fmt;

use serde::{Deserialize, Serialize};

use crate::names::{Pattern, ToolId};
use crate::registry::Tool;

/// What is to happen with a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PolicyVerdict {
    /// The call runs.
    #[default]
    Allow,
    /// It runs if a person agrees.
    Ask,
    /// It does not run.
    Deny,
}

/// Which tools a rule is about.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum RuleTarget {
    /// Those that a pattern names.
    Name(Pattern),
    /// Those that carry a mark, compared as written.
    Mark(String),
}

impl fmt::Display for RuleTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Name(pattern) => pattern.fmt(f),
            Self::Mark(mark) => write!(f, "mark {mark}"),
        }
    }
}

/// A rule about some tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Rule {
    /// The tools it is about.
    #[serde(rename = "on")]
    pub target: RuleTarget,
    /// What is to happen with them.
    pub verdict: PolicyVerdict,
}

/// Rules, and what holds where none matches. The default allows everything.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Policy {
    /// The rules; their order does not matter.
    #[serde(default)]
    pub rules: Vec<Rule>,
    /// For tools that no rule is about.
    #[serde(default)]
    #[serde(rename = "otherwise")]
    pub default_verdict: PolicyVerdict,
}

/// What a policy says about a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Decision<'p> {
    /// What is to happen.
    pub verdict: PolicyVerdict,
    /// The rule that decided, the first of the strictest; absent if none was about the tool.
    pub rule: Option<&'p Rule>,
}

impl Policy {
    /// A policy that denies what no rule is about.
    #[must_use]
    pub fn deny_all() -> Self {
        Self {
            rules: Vec::new(),
            default_verdict: PolicyVerdict::Deny,
        }
    }

    /// The same policy with these tools allowed.
    #[must_use]
    pub fn allow(self, pattern: impl Into<Pattern>) -> Self {
        self.with_rule(RuleTarget::Name(pattern.into()), PolicyVerdict::Allow)
    }

    /// The same policy with these tools asked about.
    #[must_use]
    pub fn ask(self, pattern: impl Into<Pattern>) -> Self {
        self.with_rule(RuleTarget::Name(pattern.into()), PolicyVerdict::Ask)
    }

    /// The same policy with these tools denied.
    #[must_use]
    pub fn deny(self, pattern: impl Into<Pattern>) -> Self {
        self.with_rule(RuleTarget::Name(pattern.into()), PolicyVerdict::Deny)
    }

    /// The same policy with one rule more.
    #[must_use]
    pub fn with_rule(mut self, on: RuleTarget, verdict: PolicyVerdict) -> Self {
        self.rules.push(Rule {
            target: on,
            verdict,
        });
        self
    }

    /// What it says about a tool.
    #[must_use]
    pub fn decide_tool(&self, tool: &Tool) -> Decision<'_> {
        self.strictest_decision(&tool.id(), |mark| tool.marks.contains(mark))
    }

    /// What it says about a name that carries no marks.
    #[must_use]
    pub fn decide_name(&self, tool: &ToolId) -> Decision<'_> {
        self.strictest_decision(tool, |_| false)
    }

    // Names are matched against the id, never against what the model wrote.
    fn strictest_decision(&self, id: &ToolId, has: impl Fn(&str) -> bool) -> Decision<'_> {
        let about = |rule: &&Rule| match &rule.target {
            RuleTarget::Name(pattern) => pattern.matches(id),
            RuleTarget::Mark(mark) => has(mark),
        };
        let mut decided: Option<&Rule> = None;
        for rule in self.rules.iter().filter(about) {
            // Strictly greater, so that the first of equally strict rules is the one reported.
            if decided.is_none_or(|before| rule.verdict > before.verdict) {
                decided = Some(rule);
            }
        }
        Decision {
            verdict: decided.map_or(self.default_verdict, |rule| rule.verdict),
            rule: decided,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use contexture_ir::Raw;

    #[test]
    fn the_strictest_rule_counts() {
        let tool = |name: &str| Tool::function(name, "", Raw::parse("{}").unwrap());
        let policy = Policy::deny_all()
            .deny("*_secret")
            .allow("read*")
            .ask("read_mail")
            .with_rule(
                RuleTarget::Mark("destructive".to_owned()),
                PolicyVerdict::Ask,
            )
            .allow("drop");
        for (name, expected) in [
            ("read_file", PolicyVerdict::Allow),
            ("READ_mail", PolicyVerdict::Ask),
            ("read_secret", PolicyVerdict::Deny),
            ("write", PolicyVerdict::Deny),
        ] {
            assert_eq!(policy.decide_tool(&tool(name)).verdict, expected, "{name}");
        }
        let drop = tool("drop").with_marks(["destructive"]);
        assert_eq!(policy.decide_tool(&drop).verdict, PolicyVerdict::Ask);
        assert_eq!(policy.decide_tool(&tool("write")).rule, None);
        assert_eq!(
            Policy::default().decide_tool(&tool("x")).verdict,
            PolicyVerdict::Allow
        );
    }
}
