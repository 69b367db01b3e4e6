//! Compacting a branch on demand, and undoing it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use contexture_compile::compaction::{COVERS, Manifest, TextBudget};
use contexture_compile::{CompactAdvice, Target};
use contexture_ir::{Audience, Compaction, ContentHash, Item, NodeId, Origin, Part, TextPart};
use contexture_store::{NewItem, NodeKind, NodeQuery};
use contexture_tokens::{TokenCounter, counter_for};
use contexture_wire::Format;

use super::branch_snapshot::{BranchSnapshot, load_snapshot};
use super::compactor::{CompactRequest, Compactor, ManifestOnly};
use super::trigger::percent_of;
use crate::append::{append_state, append_states};
use crate::call::{CompileOptions, compile_call};
use crate::error::EngineError;
use crate::handle::{
    CircuitBreakerPolicy, Conversation, EngineEventKind, SideCaller, SideUsageTracker,
    load_state_list,
};
use crate::path::parse_node_item;
use crate::state::{CoverEntry, Covers, encode_provenance, parse_provenance};

/// The least a manifest may take, in tokens.
pub(super) const LEAST: u64 = 256;

/// How large it may be otherwise, in per cent of the tokens of what it stands for.
pub(super) const MANIFEST: u8 = 15;

/// The part of the history that a compaction replaces.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum CompactSpan {
    /// What the compile had to leave out, else the older part of the history.
    #[default]
    Older,
    /// The nodes from one to another, with the rest of their blocks.
    Nodes {
        /// First node of the span.
        first: NodeId,
        /// Last node of the span.
        last: NodeId,
    },
}

/// Options for one compaction.
#[derive(Clone, Debug)]
pub struct CompactOptions {
    /// The part of the history to replace.
    pub span: CompactSpan,
    /// The compactor that writes the summary. Default: the manifest alone.
    pub compactor: Arc<dyn Compactor>,
    /// Instructions for the compactor: what to keep.
    pub instructions: Option<String>,
    /// How much of the history stays as it is, in per cent of the space of a request. Default 40; at most
    /// half of what there is.
    pub retained_percent: u8,
    /// How large a manifest may be, in per cent of the span's tokens; at least 256 tokens. Default 15.
    pub manifest_percent: u8,
    /// When a failing compactor is no longer called.
    pub breaker: CircuitBreakerPolicy,
    /// Where a compactor's calls of a model are counted. Default: nowhere.
    pub side_usage: Option<Arc<dyn SideUsageTracker>>,
    /// What the node's id follows from, for whoever does the same again after a crash. Default: it is a fresh one.
    pub key: Option<[u8; 16]>,
}

impl Default for CompactOptions {
    fn default() -> Self {
        Self {
            span: CompactSpan::default(),
            compactor: Arc::new(ManifestOnly),
            instructions: None,
            retained_percent: 40,
            manifest_percent: MANIFEST,
            breaker: CircuitBreakerPolicy::default(),
            side_usage: None,
            key: None,
        }
    }
}

/// A compaction that is not stored yet.
#[derive(Clone, Debug)]
pub struct CompactionDraft {
    /// The first node it stands for.
    pub first: NodeId,
    /// Last node of the span.
    pub last: NodeId,
    /// How many items those are.
    pub items: usize,
    /// What they show, in tokens; earlier compactions among them count instead of what they stand for.
    pub tokens: u64,
    /// What stands for them, in tokens.
    pub summary_tokens: u64,
    /// What stands for them: a compactor's summary, if it made one, and the manifest.
    pub summary: Vec<String>,
    /// Whether the summary is an earlier one of the same span.
    pub reused: bool,
    /// Why the compactor made no summary, if it failed or was left alone.
    pub failure: Option<String>,
    covers: Covers,
    item: Compaction,
    /// Its id, where that follows from something.
    node: Option<NodeId>,
    side_usage: Option<Arc<dyn SideUsageTracker>>,
}

/// A compaction that was stored.
#[derive(Clone, Debug)]
pub struct Compacted {
    /// Node of the compaction item.
    pub node: NodeId,
    /// The head of the branch now.
    pub head: Option<NodeId>,
    /// What it is.
    pub draft: CompactionDraft,
}

/// Compacts this branch: replaces the older part in calls by a manifest, and by a summary if the compactor
/// writes one. The nodes stay; [`Self::uncompact`] undoes it.
pub(crate) async fn compact_branch(
    chat: &Conversation,
    target: &Target,
    options: &CompactOptions,
) -> Result<Compacted, EngineError> {
    let draft = draft_compaction(chat, target, options).await?;
    store_compaction(chat, draft).await
}

/// Drafts what [`Self::compact`] would store. Asks the compactor, stores nothing.
pub(crate) async fn draft_compaction(
    chat: &Conversation,
    target: &Target,
    options: &CompactOptions,
) -> Result<CompactionDraft, EngineError> {
    let advice = match (
        options.span,
        compile_call(chat, target.into(), CompileOptions::default()),
    ) {
        (CompactSpan::Older, compiling) => match compiling.await {
            Ok(call) => call.advice.compact,
            // A history that cannot be sent needs it all the more.
            Err(EngineError::Refused(_)) => None,
            Err(error) => return Err(error),
        },
        (CompactSpan::Nodes { .. }, _) => None,
    };
    draft_with_advice(chat, target, options, advice).await
}

/// As [`Self::compact`], with the advice of a compile that was made already.
pub(crate) async fn compact_with_advice(
    chat: &Conversation,
    target: &Target,
    options: &CompactOptions,
    advice: Option<CompactAdvice>,
) -> Result<Compacted, EngineError> {
    let draft = draft_with_advice(chat, target, options, advice).await?;
    store_compaction(chat, draft).await
}

#[tracing::instrument(
    name = "contexture.compact",
    skip_all,
    fields(gen_ai.conversation.id = chat.id().as_str())
)]
async fn draft_with_advice(
    chat: &Conversation,
    target: &Target,
    options: &CompactOptions,
    advice: Option<CompactAdvice>,
) -> Result<CompactionDraft, EngineError> {
    // One snapshot for everything below, so that span, texts and covers are of the same instant.
    let snapshot = load_snapshot(chat, chat.current_position()).await?;
    let spec = target.model_spec(chat.engine().catalogue())?;
    let counter = counter_for(spec.encoding);
    let request = target.build_request(chat.engine().catalogue())?;
    let space = request.window.saturating_sub(request.reserve);
    let shown = snapshot.positions_in_view(target.format());
    let weights = snapshot.token_weights(&shown, counter);
    let span = match options.span {
        CompactSpan::Nodes { first, last } => snapshot.requested_span(first, last)?,
        CompactSpan::Older => {
            // At most half of what there is: a short history in a large window is compacted all the same when asked for.
            let keep =
                percent_of(space, options.retained_percent).min(weights.iter().sum::<u64>() / 2);
            snapshot.older_span(advice, &weights, keep)?
        }
    };
    draft_span(
        chat,
        &snapshot,
        span,
        &shown,
        target.format(),
        options,
        counter,
    )
    .await
}

/// Stores a drafted compaction: the item and its cover, in one transaction.
pub(crate) async fn store_compaction(
    chat: &Conversation,
    draft: CompactionDraft,
) -> Result<Compacted, EngineError> {
    let now = chat.engine().now_ms();
    let item = Item::from(draft.item.clone());
    let node = match draft.node {
        Some(node) => node,
        None => NodeId::of_operation(&chat.engine().new_key(), 0),
    };
    let new = NewItem {
        origin: Origin::System,
        audience: Audience::MODEL,
        ..NewItem::new(node, &item, item.to_json(), now)
    };
    // Replaces the list that the draft was made on: a compaction stored meanwhile is a conflict, not lost.
    let mut entries = draft.covers.entries.clone();
    entries.push(CoverEntry {
        compaction: node,
        first: draft.first,
        last: draft.last,
    });
    let change = draft.covers.replacement_change(&entries)?;
    let counted = draft
        .side_usage
        .as_ref()
        .and_then(|tracker| tracker.pending_change());
    let changes = std::iter::once(change).chain(counted).collect();
    // The tracker is marked only after the store took its change, which goes in the same transaction.
    let head = append_states(chat, Some(new), changes).await?;
    if let Some(tracker) = &draft.side_usage {
        tracker.mark_stored();
    }
    contexture_telemetry::count_compaction();
    chat.publish(|| EngineEventKind::Compacted { compaction: node });
    Ok(Compacted { node, head, draft })
}

/// Undoes a compaction: the nodes it covers are shown again on this branch. The item stays.
pub(crate) async fn undo_compaction(
    chat: &Conversation,
    compaction: NodeId,
) -> Result<(), EngineError> {
    let covers: Covers = load_state_list(chat, chat.current_position()).await?;
    let is_it = |entry: &CoverEntry| entry.compaction == compaction;
    if !covers.entries.iter().any(is_it) {
        return Err(EngineError::NotInEffect { compaction });
    }
    let entries: Vec<CoverEntry> = covers
        .entries
        .iter()
        .filter(|entry| !is_it(entry))
        .copied()
        .collect();
    append_state(chat, None, covers.replacement_change(&entries)?).await?;
    chat.publish(|| EngineEventKind::Uncompacted { compaction });
    Ok(())
}

/// Lists the compactions in effect on this branch, in the order they were stored.
pub(crate) async fn list_compactions(chat: &Conversation) -> Result<Vec<CoverEntry>, EngineError> {
    let covers: Covers = load_state_list(chat, chat.current_position()).await?;
    Ok(covers.entries)
}

async fn draft_span(
    chat: &Conversation,
    snapshot: &BranchSnapshot,
    span: RangeInclusive<usize>,
    shown: &[usize],
    target: Format,
    options: &CompactOptions,
    counter: &dyn TokenCounter,
) -> Result<CompactionDraft, EngineError> {
    let (first, last) = snapshot.span_ends(&span)?;
    // Pins inside the span stay in view, so the summary must not stand for them.
    let (gone, stays) = snapshot.partition_span(&span, target);
    let goes = |at: &&usize| span.contains(&snapshot.view_position(**at)) && !stays.contains(at);
    let in_span = snapshot.readable_items(shown.iter().filter(goes));
    let texts = in_span.iter().map(|one| one.item.text());
    let tokens: u64 = texts.map(|text| counter.count(&text).count).sum();

    let hash = snapshot.content_hash(&gone);
    let request = CompactRequest {
        span: &in_span,
        instructions: trimmed_instructions(options),
        catalogue: chat.engine().catalogue(),
        side_usage: options.side_usage.as_deref(),
        caller: SideCaller {
            engine: chat.engine(),
            owner: chat.owner(),
            conversation: chat.id(),
        },
    };
    let configuration = summary_configuration(options);
    let written = summarise_span(chat, request, hash, &configuration, options).await?;
    let summarised = written.text.is_some();
    // Identifiers that stay in view need not be repeated in the manifest.
    let most = percent_of(tokens, options.manifest_percent).max(LEAST);
    let manifest = Manifest::from_items(&snapshot.readable_items(&gone))
        .without_identifiers(&snapshot.readable_items(&stays))
        .render(TextBudget::Tokens(most, counter))
        .text;
    let summary: Vec<String> = written.text.into_iter().chain([manifest]).collect();
    let summary_tokens = summary
        .iter()
        .map(|text| counter.count(text).count)
        .sum::<u64>();
    // Replacing a span by something longer would only cost context.
    if summary_tokens >= tokens {
        return Err(EngineError::NothingToCompact {
            reason: "what would stand for it is no shorter",
        });
    }
    let mut item = Compaction {
        summary: summary
            .iter()
            .map(|text| Part::SummaryText(TextPart::new(text)))
            .collect(),
        ..Compaction::default()
    };
    item.extra.set(
        COVERS,
        encode_provenance(first, last, hash, summarised.then_some(&configuration))?,
    );
    Ok(CompactionDraft {
        first,
        last,
        items: gone.len(),
        tokens,
        summary_tokens,
        summary,
        reused: written.reused,
        failure: written.failure,
        covers: snapshot.covers.clone(),
        item,
        side_usage: options.side_usage.clone(),
        // Two rounds of one call may be about the same span.
        node: options.key.map(|key| {
            let head = snapshot.path.head.map(|head| *head.as_bytes());
            NodeId::derive("compaction", &[&key, &head.unwrap_or_default()])
        }),
    })
}

/// The summary of a span, and how it came about.
struct SpanSummary {
    /// `None` where the manifest stands alone.
    text: Option<String>,
    /// Whether it is an earlier summary of the same content.
    reused: bool,
    /// Why the compactor made none.
    failure: Option<String>,
}

/// Returns the instructions of the caller, if they say anything.
fn trimmed_instructions(options: &CompactOptions) -> Option<&str> {
    let instructions = options.instructions.as_deref().map(str::trim);
    instructions.filter(|text| !text.is_empty())
}

/// Returns what a summary depends on besides the span.
fn summary_configuration(options: &CompactOptions) -> String {
    // Instructions change what a summary says, so they belong to its identity. Hashed, as they may be long.
    match trimmed_instructions(options) {
        None => options.compactor.configuration(),
        Some(text) => format!(
            "{} {}",
            options.compactor.configuration(),
            ContentHash::of(text.as_bytes())
        ),
    }
}

/// Finds an earlier summary of the same content, or asks the compactor for one.
async fn summarise_span(
    chat: &Conversation,
    request: CompactRequest<'_>,
    hash: ContentHash,
    configuration: &str,
    options: &CompactOptions,
) -> Result<SpanSummary, EngineError> {
    // A summary costs a model call: the same content on another branch, or after an undo, reuses it.
    let earlier = find_earlier_summary(chat, hash, configuration).await?;
    if earlier.is_some() {
        return Ok(SpanSummary {
            text: earlier,
            reused: true,
            failure: None,
        });
    }
    // A failure is no error of the compaction: the manifest alone still makes room.
    let (text, failure) = match run_compactor(chat, request, configuration, options).await {
        Ok(text) => (text, None),
        Err(why) => (None, Some(why)),
    };
    Ok(SpanSummary {
        text,
        reused: false,
        failure,
    })
}

/// Asks the compactor, unless its breaker is open.
async fn run_compactor(
    chat: &Conversation,
    request: CompactRequest<'_>,
    configuration: &str,
    options: &CompactOptions,
) -> Result<Option<String>, String> {
    // Counted per configuration of the compactor, without the instructions: it is the same provider that fails.
    let breakers = chat.engine().circuit_breakers();
    let compactor = options.compactor.configuration();
    if !breakers.can_try(&compactor, options.breaker, chat.engine().now_ms()) {
        return Err(format!(
            "left alone after {} failures",
            options.breaker.failures
        ));
    }
    debug_assert!(
        configuration.starts_with(&compactor),
        "the breaker's name is the compactor's"
    );
    match options.compactor.summarise(request).await {
        Ok(summary) => {
            breakers.record_success(&compactor);
            Ok(summary.filter(|text| !text.trim().is_empty()))
        }
        Err(error) => {
            breakers.record_failure(&compactor, chat.engine().now_ms());
            Err(error.to_string())
        }
    }
}

/// A compactor's summary of the same content, made with the same configuration, wherever it stands in
/// this conversation.
async fn find_earlier_summary(
    chat: &Conversation,
    hash: ContentHash,
    configuration: &str,
) -> Result<Option<String>, EngineError> {
    let query = NodeQuery::Kind(NodeKind::Compaction);
    let nodes = chat
        .store()
        .find_nodes(chat.owner(), chat.id(), query)
        .await?;
    // Newest first; a redacted summary may quote what was removed.
    for node in nodes.iter().rev().filter(|node| node.redacted_ms.is_none()) {
        let Item::Compaction(compaction) = parse_node_item(node)? else {
            continue;
        };
        if parse_provenance(&compaction) == Some((hash.to_string(), configuration.to_owned())) {
            return Ok(compaction
                .summary
                .first()
                .and_then(Part::as_text)
                .map(str::to_owned));
        }
    }
    Ok(None)
}
