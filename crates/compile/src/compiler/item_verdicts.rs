//! Each item that is not in the payload, or not as it is: one line of explanation apiece.
//!
//! Where each [`OmitReason`] is decided:
//!
//! * audience and bookkeeping: `blocks/view_entry.rs`;
//! * covered and uncovered: `history/covers.rs`; cleared: `history/clear.rs`; a host's pass: `history/host_pass.rs`;
//! * trimmed: `budget.rs` says how far, `history/trim.rs` where;
//! * repaired: `repair/decide.rs` of `contexture-wire`, which `blocks/repair.rs` calls.
//!
//! `pipeline/outcome.rs` gathers them as the spans of the report. Not here: the report's own spans and sums.

use std::collections::BTreeMap;

use contexture_condense::Link;
use contexture_ir::Item;
use contexture_tokens::TokenCounter;
use serde::Serialize;

use crate::blocks::ItemWeigher;
use crate::input::{CompileRequest, PathItem};
use contexture_report::{OmitReason, Report, Rewritten};

/// What became of one item of the path.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[non_exhaustive]
pub struct ItemVerdict {
    /// Its index on the path.
    pub index: usize,
    /// What it is: `message`, `function_call`, `function_call_output`, `reasoning`, `compaction`, `extension`.
    pub kind: &'static str,
    /// Its tokens as it is: the high bound of an estimate.
    pub tokens: u64,
    /// Its tokens as it is shown; 0 if it is not.
    pub shown: u64,
    /// What became of it: a word of [`OmitReason`] or [`Rewriting`](contexture_report::Rewriting).
    pub verdict: &'static str,
    /// The rule that decided, in a few words.
    pub rule: String,
    /// By which it can be read.
    pub link: String,
}

/// Explains every omitted and every rewritten item of a report, in path order.
///
/// `path` and `request` are those the report was made of; items that are not on the path are left out.
#[must_use]
pub fn explain_items(
    report: &Report,
    path: &[PathItem],
    request: &CompileRequest,
    counter: &dyn TokenCounter,
) -> Vec<ItemVerdict> {
    let scale = ItemWeigher {
        format: request.dialect.format,
        counter,
        media: &request.media,
        tool_text_percent: request.overhead().tool_text,
        nested_tool_text_percent: request.overhead().nested_tool_text,
    };
    let repairs: BTreeMap<usize, &str> = report
        .repairs
        .iter()
        .filter_map(|repair| Some((repair.index?, repair.reason.as_str())))
        .collect();
    let spans = report.omitted.iter();
    let omitted = spans.flat_map(|span| (span.first..=span.last).map(move |at| (at, span.reason)));
    let omitted = omitted.filter_map(|(index, why)| {
        let item = path.get(index)?;
        let repair = repairs.get(&index).filter(|_| why == OmitReason::Repaired);
        Some(ItemVerdict {
            index,
            kind: item_kind(&item.item),
            tokens: scale.weigh_item(&item.item).high,
            shown: 0,
            verdict: why.as_str(),
            rule: repair
                .map_or_else(|| why.rule_text(), |said| *said)
                .to_owned(),
            link: Link::new(item.hash).to_string(),
        })
    });
    let rewritten = report.rewritten.iter();
    let rewritten = rewritten.filter_map(|one| Some(rewriting_verdict(one, path.get(one.index)?)));
    let mut all: Vec<ItemVerdict> = omitted.chain(rewritten).collect();
    all.sort_by_key(|one| one.index);
    all
}

fn rewriting_verdict(one: &Rewritten, item: &PathItem) -> ItemVerdict {
    ItemVerdict {
        index: one.index,
        kind: item_kind(&item.item),
        tokens: one.tokens_before,
        shown: one.tokens_after,
        verdict: one.rewriting.as_str(),
        rule: one.rewriting.rule_text().to_owned(),
        link: Link::new(item.hash).to_string(),
    }
}

const fn item_kind(item: &Item) -> &'static str {
    match item {
        Item::Message(_) => "message",
        Item::FunctionCall(_) => "function_call",
        Item::FunctionCallOutput(_) => "function_call_output",
        Item::Reasoning(_) => "reasoning",
        Item::Compaction(_) => "compaction",
        Item::Extension(_) => "extension",
    }
}
