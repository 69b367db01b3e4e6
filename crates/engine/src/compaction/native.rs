//! A provider's own compaction in an answer: it stands for the path that the call was compiled from.
//!
//! The item stays as it came, so that its maker is sent it verbatim. Two things are put beside: what it covers, and,
//! where only its maker can read it, a manifest as its text, which everybody else is told. What else the answer says
//! stands behind it, even what came before it: nothing that was said is taken for summed up.
//!
//! Not here: asking for one (`contexture_compile::compaction::NativeCompaction`).

use std::collections::BTreeSet;

use contexture_compile::compaction::{Allowance, COVERS, Manifest};
use contexture_ir::{Compaction, Item, NodeId, Part, TextPart};
use contexture_store::{At, StateChange};
use contexture_tokens::counter_for;

use super::compact::{LEAST, MANIFEST};
use super::cover::CoverEntry;
use super::provenance::provenance;
use super::snapshot::Snapshot;
use super::trigger::share;
use crate::call::CompiledCall;
use crate::conversation::Conversation;
use crate::error::EngineError;

/// What an answer's compactions change.
#[derive(Debug)]
pub(crate) struct Adopted {
    /// Their nodes.
    pub(crate) nodes: Vec<NodeId>,
    /// What stands for the path from now on.
    pub(crate) change: StateChange,
}

impl Conversation {
    /// Makes the compactions among the items of an answer stand for the path of its call; `node` tells the node that
    /// an item will be. One that says nothing, as after a failure of its maker, stands for nothing.
    pub(crate) async fn adopt(
        &self,
        call: &CompiledCall,
        items: &mut [Item],
        node: impl Fn(usize) -> NodeId,
    ) -> Result<Option<Adopted>, EngineError> {
        let mut compactions: Vec<(NodeId, &mut Compaction)> = items
            .iter_mut()
            .enumerate()
            .filter_map(|(index, item)| match item {
                Item::Compaction(compaction) if says(compaction) => Some((node(index), compaction)),
                _ => None,
            })
            .collect();
        let (Some(base), false) = (call.base, compactions.is_empty()) else {
            return Ok(None);
        };
        let snapshot = self.snapshot(At::Node(base)).await?;
        let span = 0..=snapshot.path.nodes.len().saturating_sub(1);
        let (first, last) = snapshot.ends(&span)?;
        let (gone, stays) = snapshot.parted(&span, call.format);
        let covers = provenance(first, last, snapshot.hash(&gone), None)?;
        let mut entries = snapshot.covers.entries.clone();
        for (compaction, item) in &mut compactions {
            if !is_readable(item) {
                let twin = manifest(&snapshot, &gone, &stays, call);
                item.summary = vec![Part::SummaryText(TextPart::new(twin))];
            }
            item.extra.set(COVERS, covers.clone());
            entries.push(CoverEntry {
                compaction: *compaction,
                first,
                last,
            });
        }
        Ok(Some(Adopted {
            nodes: compactions.iter().map(|(node, _)| *node).collect(),
            change: snapshot.covers.change(&entries)?,
        }))
    }
}

/// Whether a compaction holds anything, for whomever.
fn says(compaction: &Compaction) -> bool {
    compaction.encrypted_content.is_some() || is_readable(compaction)
}

/// Whether others than its maker can read it.
fn is_readable(compaction: &Compaction) -> bool {
    let mut texts = compaction.summary.iter().filter_map(Part::as_text);
    texts.any(|text| !text.trim().is_empty())
}

/// What everybody else is told of the path.
fn manifest(
    snapshot: &Snapshot,
    gone: &[usize],
    stays: &BTreeSet<usize>,
    call: &CompiledCall,
) -> String {
    let counter = counter_for(call.inputs.encoding);
    let shown = snapshot.shown(call.format);
    let tokens: u64 = snapshot.weights(&shown, counter).iter().sum();
    let most = share(tokens, MANIFEST).max(LEAST);
    let manifest = Manifest::of(&snapshot.readable(gone)).beside(&snapshot.readable(stays));
    manifest.render(Allowance::Tokens(most, counter)).text
}
