//! `check_budget`: how much of a model's window a conversation takes, as its next call would be compiled.

use std::collections::BTreeMap;

use contexture::CompiledCall;
use contexture::compile::Segment;
use contexture_api::operations::{CompilePurpose, Host, compile_conversation};
use contexture_api::{CompileDocument, PolicyChoice};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::target::parse_provider_format;
use crate::tool::{Tool, ToolEffect};
use crate::tool_context::ToolContext;
use crate::tool_error::ToolError;

/// Maximum number of rows in `segments`.
const SEGMENTS: usize = 40;

pub(crate) struct CheckBudget;

#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct Arguments {
    /// Id of the conversation.
    conversation: String,
    /// Model that would answer, as its provider names it. Default: that of the newest answer.
    model: Option<String>,
    /// Format of the model's requests: anthropic, openai-chat, openai-responses or gemini. Default: its provider's own.
    format: Option<String>,
    /// Size of the context window in tokens; default: the size known for the model.
    #[schemars(range(min = 1))]
    window: Option<u64>,
    /// Tokens kept free for the answer; default: the usual reserve.
    reserve: Option<u64>,
    /// Policy as the HTTP API takes it, to see what it would cut, such as {"clear": {"keep_recent": 3}}; default: none.
    policy: Option<Value>,
    /// Name of the branch to use instead of the active one.
    branch: Option<String>,
}

#[derive(Serialize, JsonSchema)]
pub(crate) struct Answer {
    /// Name of the model.
    model: String,
    /// Format of the model's requests.
    format: String,
    /// Size of the context window in tokens.
    window: u64,
    /// Tokens of the window that are kept free for the answer.
    reserve: u64,
    /// Tokens that a request may take: `window` less `reserve`.
    limit: u64,
    /// Tokens that the next request would take.
    tokens: u64,
    /// Whether `tokens` was counted, not estimated from above.
    exact: bool,
    /// Tokens that are left: `limit` less `tokens`.
    remaining: u64,
    /// Percentage of `limit` that is taken.
    used: f64,
    /// Number of items on the path.
    items: usize,
    /// Number of items that the model would not see.
    omitted: usize,
    /// Number of outputs that the model would see shortened, with a link.
    shortened: usize,
    /// Tokens of left-out history that compact_conversation would summarise, if the history no longer fits.
    #[serde(skip_serializing_if = "Option::is_none")]
    to_compact: Option<u64>,
    /// Tokens of the request that are expected to be read from the provider's cache.
    cache_read: u64,
    /// Segments of the request, in order.
    segments: Vec<SegmentRow>,
    /// Number of rows left out of `segments`.
    #[serde(skip_serializing_if = "Option::is_none")]
    more_segments: Option<usize>,
}

#[derive(Serialize, JsonSchema)]
struct SegmentRow {
    /// Band of the segment: tools, system, anchor, history, live, tail or framing.
    band: String,
    /// Label of the segment, in a few words.
    label: String,
    /// Tokens that the segment takes.
    tokens: u64,
    /// Verdict on the segment: kept, kept (required), shortened, cleared, trimmed or dropped.
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
        // The member of the document has another name, which an error should not tell.
        let format = arguments.format.as_deref();
        let format = format.map(parse_provider_format).transpose()?;
        let asked = CompileDocument {
            model: arguments.model,
            to: format.map(|format| format.to_string()),
            window: arguments.window,
            reserve: arguments.reserve,
            policy: arguments.policy.map(parse_policy).transpose()?,
            ..CompileDocument::default()
        };
        // Nothing is stored: it is the same compile as that of the next call. It is the longest
        // work here, so it looks whether the caller is still waiting.
        let (policies, purpose) = (BTreeMap::new(), CompilePurpose::Explanation);
        let host = Host {
            policies: &policies,
            skills: &[],
        };
        let compiled = compile_conversation(&chat, &asked, &host, purpose, &context.cancel).await?;
        let call = compiled.call;
        Ok(summarize_budget(&call))
    }
}

fn parse_policy(policy: Value) -> Result<PolicyChoice, ToolError> {
    serde_json::from_value(policy).map_err(|error| {
        ToolError::invalid_arguments(format!("`policy`: {error}"))
            .with_hint("a policy is an object, as in `[policies.…]` of a server's configuration")
    })
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
