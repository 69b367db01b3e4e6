//! A summary that waits beside the tree: how it is stored, found again and judged.

use std::ops::RangeInclusive;

use async_trait::async_trait;
use contexture_compile::{CompactAdvice, Cover};
use contexture_ir::{ContentHash, NodeId};
use contexture_store::{
    DERIVED_KEYS, ExpectedVersion, KeyScope, ListEntries, PutEntry, list_all_entries,
};
use contexture_wire::Format;
use serde::{Deserialize, Serialize};

use crate::compaction::branch_snapshot::BranchSnapshot;
use crate::compaction::compactor::{CompactRequest, Compactor, CompactorError};
use crate::error::EngineError;
use crate::handle::Conversation;

/// How many summaries of a conversation wait at most; a further one takes the place of another.
const SLOTS: u8 = 16;

/// What became of the question for a summary.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum SummaryOutcome {
    /// Text of the summary.
    Written(String),
    /// Why there is none.
    Missing {
        reason: String,
        /// Whether an answer came and was paid for: then nobody asks again for the same beginning.
        paid: bool,
    },
}

/// A summary beside the tree, or why there is none.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::compaction) struct ReadySummary {
    /// First and last node that it sums up, as texts.
    first: String,
    last: String,
    /// Hash over what these say: another content is not what was summed up.
    content: String,
    /// Who wrote it.
    by: String,
    pub(super) outcome: SummaryOutcome,
}

/// What is known of summaries for the history at a head.
#[derive(Debug)]
pub(in crate::compaction) enum SummaryLookup {
    /// One that may stand for its span now.
    Usable {
        first: NodeId,
        last: NodeId,
        compactor: ReadyText,
        key: String,
    },
    /// Why there is none; `None`: none was asked for yet.
    Missing(Option<String>),
}

/// What a summary has to leave, to be used.
#[derive(Clone, Copy, Debug)]
pub(in crate::compaction) struct LookupSizes<'a> {
    pub(in crate::compaction) format: Format,
    /// What each place of the path adds to the view, in tokens.
    pub(in crate::compaction) weights: &'a [u64],
    /// What may stay behind it, in tokens.
    pub(in crate::compaction) most: u64,
    /// What had to be left out of the call.
    pub(in crate::compaction) advice: Option<CompactAdvice>,
}

impl ReadySummary {
    pub(super) fn new(
        (first, last): (NodeId, NodeId),
        content: ContentHash,
        by: String,
        outcome: SummaryOutcome,
    ) -> Self {
        Self {
            first: first.to_string(),
            last: last.to_string(),
            content: content.to_string(),
            by,
            outcome,
        }
    }

    /// The key that follows from what it sums up.
    fn key(&self) -> String {
        let name = format!("{} {} {}", self.first, self.last, self.content);
        let hash = ContentHash::of(name.as_bytes());
        let first = hash.as_bytes().first().copied().unwrap_or_default();
        format!("{DERIVED_KEYS}summary/{}", first % SLOTS)
    }

    /// Returns its place on a path, if what it sums up is still there as it was, and nothing stands for it yet.
    fn span_on(&self, snapshot: &BranchSnapshot, format: Format) -> Option<RangeInclusive<usize>> {
        let place = |id: &str| {
            let id: NodeId = id.parse().ok()?;
            snapshot.path.nodes.iter().position(|node| node.id == id)
        };
        let span = place(&self.first)?..=place(&self.last)?;
        let is_covered = |cover: &Cover| cover.first <= *span.start() && *span.end() <= cover.last;
        if span.is_empty() || snapshot.places.iter().any(is_covered) {
            return None;
        }
        // A redacted item has another hash, as has one in another branch's place.
        let (gone, _) = snapshot.partition_span(&span, format);
        let is_same = snapshot.content_hash(&gone).to_string() == self.content;
        is_same.then_some(span)
    }
}

/// Stores a summary, or why there is none.
pub(super) async fn put_summary(
    chat: &Conversation,
    summary: &ReadySummary,
) -> Result<(), EngineError> {
    // Strings: nothing that could not be written.
    let json = serde_json::to_string(summary).unwrap_or_default();
    // What a model says may repeat a secret that the history was sent with.
    let secrets = chat.engine().secrets();
    let json = secrets.map_or(json.as_str().into(), |secrets| secrets.redact(&json));
    let put = PutEntry {
        key: summary.key(),
        value: Some(json.as_bytes().into()),
        expect: ExpectedVersion::Any,
        at_ms: chat.engine().now_ms(),
    };
    put_entry(chat, put).await
}

/// Removes what was stored under a key.
pub(in crate::compaction) async fn remove_summary(
    chat: &Conversation,
    key: String,
) -> Result<(), EngineError> {
    let put = PutEntry {
        key,
        value: None,
        expect: ExpectedVersion::Any,
        at_ms: chat.engine().now_ms(),
    };
    put_entry(chat, put).await
}

/// Removes a summary that was just stored.
pub(super) async fn take_back(
    chat: &Conversation,
    summary: &ReadySummary,
) -> Result<(), EngineError> {
    remove_summary(chat, summary.key()).await
}

async fn put_entry(chat: &Conversation, put: PutEntry) -> Result<(), EngineError> {
    let scope = KeyScope::Conversation(chat.id().clone());
    chat.store().put_entry(chat.owner(), &scope, put).await?;
    Ok(())
}

/// Lists what is stored, with its keys.
async fn list_summaries(chat: &Conversation) -> Result<Vec<(String, ReadySummary)>, EngineError> {
    let scope = KeyScope::Conversation(chat.id().clone());
    let list = ListEntries::in_scope(scope, format!("{DERIVED_KEYS}summary/"));
    let entries = list_all_entries(chat.store(), chat.owner(), list).await?;
    let entries = entries.into_iter().map(|(_, entry)| entry);
    // A later version may write them in another way; such a one is asked for anew.
    let read = entries.filter_map(|entry| {
        let summary = serde_json::from_slice(&entry.value).ok()?;
        Some((entry.key, summary))
    });
    Ok(read.collect())
}

/// Finds the summary that reaches furthest among those that may be used at a head.
pub(in crate::compaction) async fn find_ready_summary(
    chat: &Conversation,
    snapshot: &BranchSnapshot,
    sizes: LookupSizes<'_>,
) -> Result<SummaryLookup, EngineError> {
    let mut best: Option<(usize, SummaryLookup)> = None;
    let mut why = None;
    for (key, summary) in list_summaries(chat).await? {
        let Some(span) = summary.span_on(snapshot, sizes.format) else {
            continue;
        };
        let text = match summary.outcome {
            SummaryOutcome::Written(text) => text,
            SummaryOutcome::Missing { reason, .. } => {
                why = Some(reason);
                continue;
            }
        };
        let behind = sizes.weights.get(span.end() + 1..).unwrap_or_default();
        let is_far_enough = behind.iter().sum::<u64>() <= sizes.most
            && sizes.advice.is_none_or(|advice| advice.last <= *span.end());
        if !is_far_enough {
            why = Some("what came since the summary was written is too long to stay".to_owned());
            continue;
        }
        if best.as_ref().is_some_and(|(end, _)| end >= span.end()) {
            continue;
        }
        let (first, last) = snapshot.span_ends(&span)?;
        let usable = SummaryLookup::Usable {
            first,
            last,
            compactor: ReadyText {
                text,
                by: summary.by,
            },
            key,
        };
        best = Some((*span.end(), usable));
    }
    Ok(match best {
        Some((_, usable)) => usable,
        None => SummaryLookup::Missing(why),
    })
}

/// Whether a summary of this beginning need not be asked for: one waits that leaves no more than `most` behind it, or an answer
/// came for it that was none.
pub(super) async fn is_settled(
    chat: &Conversation,
    snapshot: &BranchSnapshot,
    span: &RangeInclusive<usize>,
    sizes: LookupSizes<'_>,
) -> Result<bool, EngineError> {
    let summaries = list_summaries(chat).await?;
    Ok(summaries.iter().any(|(_, summary)| {
        let Some(known) = summary.span_on(snapshot, sizes.format) else {
            return false;
        };
        let behind = sizes.weights.get(known.end() + 1..).unwrap_or_default();
        known.start() == span.start()
            && match &summary.outcome {
                SummaryOutcome::Written(_) => behind.iter().sum::<u64>() <= sizes.most,
                SummaryOutcome::Missing { paid, .. } => *paid,
            }
    }))
}

/// The text of a summary that was written before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::compaction) struct ReadyText {
    text: String,
    by: String,
}

#[async_trait]
impl Compactor for ReadyText {
    fn configuration(&self) -> String {
        // Not the model's own name: its breaker is about questions, and none is asked here.
        format!("ready, {}", self.by)
    }

    async fn summarise(&self, _: CompactRequest<'_>) -> Result<Option<String>, CompactorError> {
        Ok(Some(self.text.clone()))
    }
}
