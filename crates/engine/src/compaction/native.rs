//! A provider's own compaction in an answer: it stands for the path that the call was compiled from.
//!
//! The item is stored as it came, so that its provider is sent it verbatim. Two things are added: what it covers, and,
//! where only its provider can read it, a manifest as its text for everybody else. The rest of the answer is stored after
//! it, even what came before it, because nothing of the answer was part of what the provider summarised.
//!
//! Not here: asking for one (`contexture_compile::compaction::NativeCompaction`).

use std::collections::BTreeSet;

use contexture_compile::compaction::{COVERS, MANIFEST_PERCENT, Manifest, TextBudget};
use contexture_ir::{Compaction, Item, NodeId, Part, TextPart};
use contexture_store::{PathEnd, StateChange};
use contexture_tokens::counter_for;

use super::branch_snapshot::{BranchSnapshot, load_snapshot};
use super::trigger::percent_of;
use crate::call::SentCall;
use crate::error::EngineError;
use crate::handle::Conversation;
use crate::state::{CoverEntry, encode_provenance};

/// The least that everybody else is told, in tokens.
const LEAST: u64 = 256;

/// What an answer's compactions change.
#[derive(Debug)]
pub(crate) struct AdoptedCompactions {
    /// Nodes that the compaction covers.
    pub(crate) nodes: Vec<NodeId>,
    /// What stands for the path from now on.
    pub(crate) change: StateChange,
}

/// Makes the compactions among the items of an answer stand for the path of its call; `node` tells the node that
/// an item will be. One that says nothing, as after a failure of its maker, stands for nothing.
pub(crate) async fn adopt_compactions(
    chat: &Conversation,
    call: &SentCall,
    items: &mut [Item],
    node: impl Fn(usize) -> NodeId,
) -> Result<Option<AdoptedCompactions>, EngineError> {
    let mut compactions: Vec<(NodeId, &mut Compaction)> = items
        .iter_mut()
        .enumerate()
        .filter_map(|(index, item)| match item {
            Item::Compaction(compaction) if has_content(compaction) => {
                Some((node(index), compaction))
            }
            _ => None,
        })
        .collect();
    // Without a base the call had no path that a compaction could stand for.
    let (Some(base), false) = (call.base, compactions.is_empty()) else {
        return Ok(None);
    };
    // At the base of the call, not at the head now: the provider compacted what it was sent.
    let snapshot = load_snapshot(chat, PathEnd::Node(base)).await?;
    let span = 0..=snapshot.path.nodes.len().saturating_sub(1);
    let (first, last) = snapshot.span_ends(&span)?;
    let (gone, stays) = snapshot.partition_span(&span, call.format);
    let covers = encode_provenance(first, last, snapshot.content_hash(&gone), None)?;
    let mut entries = snapshot.covers.entries.clone();
    for (compaction, item) in &mut compactions {
        // Encrypted for its provider: every other model, and every person, gets the manifest instead.
        if !is_readable(item) {
            let twin = render_manifest(&snapshot, &gone, &stays, call);
            item.summary = vec![Part::SummaryText(TextPart::new(twin))];
        }
        item.extra.set(COVERS, covers.clone());
        entries.push(CoverEntry {
            compaction: *compaction,
            first,
            last,
        });
    }
    Ok(Some(AdoptedCompactions {
        nodes: compactions.iter().map(|(node, _)| *node).collect(),
        change: snapshot.covers.replacement_change(&entries)?,
    }))
}

/// Whether a compaction holds anything, for whomever.
fn has_content(compaction: &Compaction) -> bool {
    compaction.encrypted_content.is_some() || is_readable(compaction)
}

/// Whether others than its maker can read it.
fn is_readable(compaction: &Compaction) -> bool {
    let mut texts = compaction.summary.iter().filter_map(Part::as_text);
    texts.any(|text| !text.trim().is_empty())
}

/// What everybody else is told of the path.
fn render_manifest(
    snapshot: &BranchSnapshot,
    gone: &[usize],
    stays: &BTreeSet<usize>,
    call: &SentCall,
) -> String {
    let counter = counter_for(call.encoding);
    let shown = snapshot.positions_in_view(call.format);
    let tokens: u64 = snapshot.token_weights(&shown, counter).iter().sum();
    // Its maker's window is not known here: other models read it beside a history of its own size.
    let most = percent_of(tokens, MANIFEST_PERCENT).max(LEAST);
    let manifest = Manifest::from_items(&snapshot.readable_items(gone))
        .without_identifiers(&snapshot.readable_items(stays));
    manifest.render(TextBudget::Tokens(most, counter)).text
}
