//! `compact_conversation`.

use std::sync::Arc;

use contexture::engine::{CompactOptions, CompactionDraft, GivenSummary};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::target::ModelTarget;
use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;

/// Maximum number of characters that are shown of a compaction's text.
const SUMMARY: usize = 8_000;

pub(crate) struct CompactConversation;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Id of the conversation.
    conversation: String,
    /// Model that the conversation is compacted for, as its provider names it. Default: that of the newest answer.
    model: Option<String>,
    /// Format of the model's requests: anthropic, openai-chat, openai-responses or gemini. Default: its provider's own.
    format: Option<String>,
    /// Size of the context window in tokens; default: the size known for the model.
    #[schemars(range(min = 1))]
    window: Option<u64>,
    /// Percentage of the window that stays as it is; default 40, at most half of the history.
    #[schemars(range(max = 100))]
    keep: Option<u8>,
    /// Summary of the older part, written by you, which is placed before the manifest.
    summary: Option<String>,
    /// Whether to show the compaction without storing it.
    #[serde(default)]
    dry_run: bool,
    /// Name of the branch to use instead of the active one.
    branch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Id of the compaction; absent in a dry run.
    #[serde(skip_serializing_if = "Option::is_none")]
    compaction: Option<String>,
    /// Id of the first item that it covers.
    first: String,
    /// Id of the last item that it covers.
    last: String,
    /// Number of items that it covers.
    items: usize,
    /// Tokens of the covered items.
    tokens: u64,
    /// Tokens of the compaction itself.
    summary_tokens: u64,
    /// Text of the compaction, which the model sees instead of the covered items.
    summary: String,
    /// Number of characters left out of `summary`; read_conversation shows the rest.
    #[serde(skip_serializing_if = "Option::is_none")]
    cut: Option<usize>,
}

impl Tool for CompactConversation {
    const NAME: &'static str = "compact_conversation";
    const TITLE: &'static str = "Compact a conversation";
    const ABOUT: &'static str = "Makes room in a conversation's next calls: its older part is stood for by a manifest \
        of the user's words, changes, errors, files and identifiers, after a summary of yours if you give one. No model is \
        asked. Every item stays and can be found and read.";
    const EFFECT: ToolEffect = ToolEffect::Adds;
    type Arguments = Arguments;
    type Answer = Answer;

    async fn call(context: ToolContext, arguments: Arguments) -> Result<Answer, ToolError> {
        let branch = arguments.branch.as_deref();
        let chat = context
            .open_conversation(&arguments.conversation, branch)
            .await?;
        let meant = ModelTarget {
            model: arguments.model.as_deref(),
            format: arguments.format.as_deref(),
            window: arguments.window,
            // This tool takes no reserve: the target has its usual one.
            reserve: None,
        };
        let target = meant.resolve_target(&context, &chat).await?;
        let draft = chat
            .draft_compaction(&target, &build_compact_options(&arguments)?)
            .await?;
        // The draft is all there is to see; dropping it leaves the conversation as it was.
        if arguments.dry_run {
            return Ok(summarize_draft(&draft, None));
        }
        let stored = chat.store_compaction(draft).await?;
        Ok(summarize_draft(
            &stored.draft,
            Some(stored.node.to_string()),
        ))
    }
}

fn build_compact_options(arguments: &Arguments) -> Result<CompactOptions, ToolError> {
    let mut options = CompactOptions::default();
    if let Some(keep) = arguments.keep {
        // Clients need not check the bounds of the schema.
        if keep > 100 {
            return Err(ToolError::invalid_arguments(format!(
                "`keep` is {keep}: expected per cent, 0 to 100"
            )));
        }
        options.retained_percent = keep;
    }
    if let Some(summary) = &arguments.summary {
        // An empty summary is likely a slip: it is refused, and not taken for none.
        let summary = GivenSummary::new(summary.trim());
        let empty = || {
            ToolError::invalid_arguments("`summary` is empty")
                .with_hint("leave it out or say something")
        };
        options.compactor = Arc::new(summary.ok_or_else(empty)?);
    }
    Ok(options)
}

fn summarize_draft(draft: &CompactionDraft, compaction: Option<String>) -> Answer {
    let whole = draft.summary.join("\n\n");
    // Characters and not bytes, as it is cut by characters.
    let more = whole.chars().count().saturating_sub(SUMMARY);
    Answer {
        compaction,
        first: draft.first.to_string(),
        last: draft.last.to_string(),
        items: draft.items,
        tokens: draft.tokens,
        summary_tokens: draft.summary_tokens,
        summary: whole.chars().take(SUMMARY).collect(),
        cut: (more > 0).then_some(more),
    }
}
