//! `list_rules`, `drop_rule`, `restore_rule`: what the user asked to hold from then on.

use contexture_api::RulesDocument;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;

pub(crate) struct ListRules;
pub(crate) struct DropRule;
pub(crate) struct RestoreRule;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ListRulesArguments {
    /// Id of the conversation.
    conversation: String,
    /// Name of the branch; default: the active one.
    branch: Option<String>,
}

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RuleArguments {
    /// Id of the conversation.
    conversation: String,
    /// Name of the rule: `id` of list_rules.
    rule: String,
    /// Name of the branch; default: the active one.
    branch: Option<String>,
}

/// Whether anything changed.
#[derive(Serialize, JsonSchema)]
pub(crate) struct RuleChanged {
    /// Whether it is dropped now and was not before, or the reverse.
    changed: bool,
}

impl Tool for ListRules {
    const NAME: &'static str = "list_rules";
    const TITLE: &'static str = "List standing rules";
    const ABOUT: &'static str = "Lists what the user of a conversation asked to hold from then on, or said about \
        themselves, and has not taken back. These sentences are quoted in each request once their messages are out of view.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    type Arguments = ListRulesArguments;
    type Answer = RulesDocument;

    async fn call(
        context: ToolContext,
        arguments: ListRulesArguments,
    ) -> Result<RulesDocument, ToolError> {
        let branch = arguments.branch.as_deref();
        let chat = context
            .open_conversation(&arguments.conversation, branch)
            .await?;
        Ok(RulesDocument::of_rules(&chat.rules().await?))
    }
}

impl Tool for DropRule {
    const NAME: &'static str = "drop_rule";
    const TITLE: &'static str = "Drop a standing rule";
    const ABOUT: &'static str = "Drops a standing rule of list_rules, because the user said so: it is not quoted any \
        more. Its message stays. restore_rule takes that back.";
    const EFFECT: ToolEffect = ToolEffect::Sets;
    type Arguments = RuleArguments;
    type Answer = RuleChanged;

    async fn call(
        context: ToolContext,
        arguments: RuleArguments,
    ) -> Result<RuleChanged, ToolError> {
        let branch = arguments.branch.as_deref();
        let chat = context
            .open_conversation(&arguments.conversation, branch)
            .await?;
        let changed = chat.drop_rule(&arguments.rule).await?;
        Ok(RuleChanged { changed })
    }
}

impl Tool for RestoreRule {
    const NAME: &'static str = "restore_rule";
    const TITLE: &'static str = "Restore a standing rule";
    const ABOUT: &'static str = "Puts a standing rule into force again that drop_rule dropped.";
    const EFFECT: ToolEffect = ToolEffect::Sets;
    type Arguments = RuleArguments;
    type Answer = RuleChanged;

    async fn call(
        context: ToolContext,
        arguments: RuleArguments,
    ) -> Result<RuleChanged, ToolError> {
        let branch = arguments.branch.as_deref();
        let chat = context
            .open_conversation(&arguments.conversation, branch)
            .await?;
        let changed = chat.restore_rule(&arguments.rule).await?;
        Ok(RuleChanged { changed })
    }
}
