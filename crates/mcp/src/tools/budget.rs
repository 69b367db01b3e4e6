//! `check_budget`: how much of a model's window a conversation takes, as its next call would be compiled.

use contexture::compile::Segment;
use contexture::{CompileOptions, CompiledCall};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::target::ModelTarget;
use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;

/// Rows of the report.
const SEGMENTS: usize = 40;

pub(crate) struct CheckBudget;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// The conversation's id.
    conversation: String,
    /// The model that would answer, as its provider names it.
    model: String,
    /// The format of its requests: anthropic, openai-chat, openai-responses or gemini. Default: its provider's own.
    format: Option<String>,
    /// Tokens the model can hold, if not what is known of it.
    #[schemars(range(min = 1))]
    window: Option<u64>,
    /// Tokens kept free for the answer, if not the usual.
    reserve: Option<u64>,
    /// On this branch instead of the active one.
    branch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// The model.
    model: String,
    /// The format of its requests.
    format: String,
    /// Tokens it can hold.
    window: u64,
    /// Of these, kept free for the answer.
    reserve: u64,
    /// What a request may take: `window` less `reserve`.
    limit: u64,
    /// What the next request would take.
    tokens: u64,
    /// Whether that was counted, and not estimated from above.
    exact: bool,
    /// What is left: `limit` less `tokens`.
    remaining: u64,
    /// Per cent of `limit` that is taken.
    used: f64,
    /// Items of the conversation.
    items: usize,
    /// Items the model would not be shown.
    omitted: usize,
    /// Outputs the model would be shown in short, with a link.
    shortened: usize,
    /// Tokens that compact_conversation would bring back in short, where history no longer fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    to_compact: Option<u64>,
    /// Tokens of it expected to be read from the provider's cache.
    cache_read: u64,
    /// What the request is made of, in its order.
    segments: Vec<SegmentRow>,
    /// Rows left out of `segments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_segments: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct SegmentRow {
    /// Where it stands: tools, system, anchor, history, live, tail or framing.
    band: String,
    /// A few words.
    label: String,
    /// Tokens it takes.
    tokens: u64,
    /// What became of it: kept, shortened, cleared, trimmed, dropped.
    verdict: String,
}

impl Tool for CheckBudget {
    const NAME: &'static str = "check_budget";
    const TITLE: &'static str = "Check the context budget";
    const ABOUT: &'static str = "Says how much of a model's context window a conversation takes and how much is \
        left, what takes it, and what would be left out. Use it before reading much, and to decide on \
        compact_conversation.";
    const EFFECT: ToolEffect = ToolEffect::Reads;
    type Arguments = Arguments;
    type Answer = Answer;

    async fn call(context: ToolContext, arguments: Arguments) -> Result<Answer, ToolError> {
        let branch = arguments.branch.as_deref();
        let chat = context
            .open_conversation(&arguments.conversation, branch)
            .await?;
        let meant = ModelTarget {
            model: &arguments.model,
            format: arguments.format.as_deref(),
            window: arguments.window,
            reserve: arguments.reserve,
        };
        let target = meant.resolve_target(&context)?;
        // Nothing is stored: it is the same compile as that of the next call. It is the longest
        // work here, so it looks whether the caller is still waiting.
        let options = CompileOptions {
            cancel: Some(&context.cancel),
            ..CompileOptions::default()
        };
        let call = chat.compile_with(&target, options).await?;
        Ok(summarize_budget(&call))
    }
}

fn summarize_budget(call: &CompiledCall) -> Answer {
    let report = &call.report;
    let (target, totals) = (&report.target, &report.totals);
    // A long conversation has thousands of segments, and this answer itself takes room in a window.
    let more = report.segments.len().saturating_sub(SEGMENTS);
    Answer {
        model: target.model.clone(),
        format: target.format.to_string(),
        window: target.window,
        reserve: target.reserve,
        limit: target.limit,
        tokens: totals.tokens,
        exact: totals.exact,
        // Never below zero, whatever an estimate says.
        remaining: target.limit.saturating_sub(totals.tokens),
        used: totals.share,
        items: totals.items,
        omitted: report.omitted.iter().map(|omitted| omitted.items).sum(),
        shortened: report.rewritten.len(),
        to_compact: call.advice.compact.map(|advice| advice.tokens),
        cache_read: report.cache.predicted.read,
        segments: report
            .segments
            .iter()
            .take(SEGMENTS)
            .map(segment_row)
            .collect(),
        more_segments: (more > 0).then_some(more),
    }
}

fn segment_row(segment: &Segment) -> SegmentRow {
    SegmentRow {
        band: segment.band.to_owned(),
        label: segment.label.clone(),
        tokens: segment.tokens,
        verdict: segment.verdict.as_str().to_owned(),
    }
}
