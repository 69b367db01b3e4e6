//! Standing rules of a conversation: what its user asked to hold from then on.

use contexture::compile::StandingRule;
use schemars::JsonSchema;
use serde::Serialize;
use utoipa::ToSchema;

/// A sentence of the user that holds until it is taken back.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema, JsonSchema)]
pub struct RuleDocument {
    /// Its name, by which it can be dropped.
    pub id: String,
    /// Id of the node whose message says it.
    pub node: Option<String>,
    /// Which of the user's messages says it, counted from 1.
    pub turn: usize,
    /// The sentence as it was written.
    pub text: String,
    /// Whether it is stated expressly, as a rule or a fact; `false`: as a wish.
    pub express: bool,
    /// Whether it was dropped: it is not quoted any more once its message is out of view.
    pub dropped: bool,
}

impl From<&StandingRule> for RuleDocument {
    fn from(rule: &StandingRule) -> Self {
        Self {
            id: rule.id.to_string(),
            node: rule.node.map(|node| node.to_string()),
            turn: rule.turn,
            text: rule.text.clone(),
            express: rule.is_express,
            dropped: rule.is_dropped,
        }
    }
}

/// The standing rules of a branch, oldest first; at most 300.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema, JsonSchema)]
pub struct RulesDocument {
    /// The rules, those that were dropped included.
    pub rules: Vec<RuleDocument>,
}

impl RulesDocument {
    /// The document of these rules.
    #[must_use]
    pub fn of_rules(rules: &[StandingRule]) -> Self {
        Self {
            rules: rules.iter().map(RuleDocument::from).collect(),
        }
    }
}
