//! What a model is told and may ask before the history is cut: a notice in the last call before it, and the tool
//! `new_context`.
//!
//! Both follow from the path alone: the notice from the size of the last recorded call, the wish from the last step's calls.
//! So a resumed run, another server and a retry decide alike, and nothing has to be stored.
//!
//! Not here: the compaction itself (`auto_compact`).

use contexture_compile::compaction::{NEW_CONTEXT, new_context_summary};
use contexture_compile::{Contribution, Target};
use contexture_ir::Item;
use contexture_store::NodeKind;

use super::reported_usage::last_counted_tokens;
use super::trigger::percent_of;
use crate::call::{CompileOptions, CompiledCall, compile_call};
use crate::error::EngineError;
use crate::handle::{Conversation, read_full_path};
use crate::path::StoredPath;

/// Under which name the notice stands in the report.
const SOURCE: &str = "compaction notice";

/// When a model is told that the older part of the history will be replaced soon.
///
/// It is told once before each compaction, at the end of the request, and only if the call offers a tool by which it can save
/// something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NoticePolicy {
    /// From which size of a request on, in per cent of the size that triggers a compaction. Default 80.
    pub at_percent: u8,
    /// Names of tools by which the model can save something. Default: those of the built-in memory and scratchpad layers,
    /// and `new_context`.
    pub tools: Vec<String>,
}

impl Default for NoticePolicy {
    fn default() -> Self {
        let names = [
            "create_memory",
            "update_memory",
            "scratchpad_update",
            NEW_CONTEXT,
        ];
        Self {
            at_percent: 80,
            tools: names.map(str::to_owned).to_vec(),
        }
    }
}

/// Compiles a call again with the notice, if it is due; `None` if it is not, or has no room.
pub(super) async fn compile_with_notice(
    chat: &Conversation,
    target: &Target,
    (call, compile): (&CompiledCall, CompileOptions<'_>),
    (policy, trigger): (&NoticePolicy, u64),
) -> Result<Option<CompiledCall>, EngineError> {
    let threshold = percent_of(trigger, policy.at_percent);
    let now = call.report.totals.tokens;
    let offered = call.inputs.request.tools.iter();
    let saving = offered.filter(|tool| policy.tools.iter().any(|name| name == tool.name()));
    let saving: Vec<String> = saving.map(|tool| format!("`{}`", tool.name())).collect();
    if now <= threshold || saving.is_empty() {
        return Ok(None);
    }
    // Once: the call before was below the mark. Where none was recorded nobody knows, and nothing is said.
    let before = {
        let path = read_full_path(chat, chat.current_position()).await?;
        last_counted_tokens(chat, &path, target.model()).await?
    };
    if before.is_none_or(|before| before > threshold) {
        return Ok(None);
    }
    let text = format!(
        "Soon the earlier part of this conversation will be replaced by a short list of facts. If something in it must not be \
         forgotten, save it now with {}.",
        saving.join(" or ")
    );
    let mut contributions = compile.contributions.to_vec();
    contributions.push(Contribution::tail(SOURCE, text));
    let compile = CompileOptions {
        contributions: &contributions,
        ..compile
    };
    match compile_call(chat, target.into(), compile).await {
        Ok(call) => Ok(Some(call)),
        Err(EngineError::Refused(_)) => Ok(None),
        Err(error) => Err(error),
    }
}

/// A model's wish for a compaction: the last step called `new_context`, and its call was answered.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NewContextWish {
    /// What the model says must not be forgotten.
    pub(super) summary: Option<String>,
}

/// Finds the wish in the last step of the path; `None` if there is none, or if it was fulfilled.
pub(super) fn find_new_context(path: &StoredPath) -> Option<NewContextWish> {
    let newest_first = path.nodes.iter().zip(&path.items).rev();
    // Outputs stand behind the calls of their step; an output behind a call is of the step before.
    let (mut is_answered, mut in_calls) = (false, false);
    for (node, one) in newest_first {
        match (node.kind, &*one.item) {
            (NodeKind::User | NodeKind::Compaction, _) => break,
            (_, Item::FunctionCallOutput(_)) if in_calls => break,
            (_, Item::FunctionCallOutput(_)) => is_answered = true,
            (_, Item::FunctionCall(call)) if call.name == NEW_CONTEXT && is_answered => {
                let summary = new_context_summary(&call.arguments);
                return Some(NewContextWish { summary });
            }
            (_, Item::FunctionCall(_)) => in_calls = true,
            (NodeKind::Assistant, _) if !is_answered => break,
            _ => {}
        }
    }
    None
}
