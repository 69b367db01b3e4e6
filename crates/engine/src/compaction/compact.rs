//! Compacting a branch on demand, and undoing it.

use std::ops::RangeInclusive;
use std::sync::Arc;

use contexture_compile::compaction::{
    COVERS, MANIFEST_PERCENT, Manifest, RoomAfterCompaction, TextBudget, ToolHints, gains_enough,
    manifest_budget, retained_tokens, without_quoted_rules,
};
use contexture_compile::{CompactAdvice, READ_TOOL, StandingRulesPolicy, Target};
use contexture_ir::{Audience, Compaction, Item, NodeId, Origin, Part, TextPart, ToolDefinition};
use contexture_store::NewItem;
use contexture_tokens::{TokenCounter, counter_for};
use contexture_wire::Format;

use super::branch_snapshot::{BranchSnapshot, OlderSpan, load_snapshot};
use super::compactor::{CompactRequest, Compactor, ManifestOnly};
use super::summarise::{SpanSummary, summarise_span, summary_configuration, trimmed_instructions};
use super::trigger::percent_of;
use crate::append::{append_state, append_states};
use crate::call::{CompileOptions, compile_call};
use crate::error::EngineError;
use crate::handle::{
    CircuitBreakerPolicy, Conversation, EngineEventKind, SideCaller, SideUsageTracker,
    load_state_list,
};
use crate::state::{CoverEntry, Covers, encode_provenance};

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
    /// half of what there is. Before a call it is less where less leaves room for ten steps like those before.
    pub retained_percent: u8,
    /// How large all manifests in effect together may be, in per cent of the window. Default 15. What has no room is
    /// counted; a manifest is never why a request does not fit.
    pub manifest_percent: u8,
    /// What is known of tools beside their names and annotations: which only read, and which change something. Calls that
    /// changed something are named in the manifest. Default: nothing.
    pub tool_hints: ToolHints,
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
            manifest_percent: MANIFEST_PERCENT,
            tool_hints: ToolHints::default(),
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
    let cause = match (
        options.span,
        compile_call(chat, target.into(), CompileOptions::default()),
    ) {
        (CompactSpan::Older, compiling) => match compiling.await {
            Ok(call) => CompactionCause {
                advice: call.advice.compact,
                ..CompactionCause::default()
            },
            // A history that cannot be sent needs it all the more.
            Err(EngineError::Refused(_)) => CompactionCause::default(),
            Err(error) => return Err(error),
        },
        (CompactSpan::Nodes { .. }, _) => CompactionCause::default(),
    };
    draft_with_cause(chat, target, options, &cause).await
}

/// Why a compaction is made, as the compile before it says.
#[derive(Clone, Debug, Default)]
pub(super) struct CompactionCause {
    /// What had to be left out.
    pub(super) advice: Option<CompactAdvice>,
    /// What there is to be room for; `None`: the host asked for it, whatever the size.
    pub(super) room: Option<RoomGoal>,
    /// The tools that layers offer beside those of the target.
    pub(super) tools: Vec<ToolDefinition>,
    /// How much the history is expected to grow until the compaction is made, in tokens: 0 for one that is made now.
    pub(super) growth: u64,
}

/// The size of requests that a compaction is to make room in.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RoomGoal {
    /// Above which size the next compaction is due, in our tokens.
    pub(super) trigger: u64,
    /// What a request takes beside its history.
    pub(super) fixed: u64,
}

/// As [`compact_branch`], with what a compile said that was made already.
pub(super) async fn compact_with_cause(
    chat: &Conversation,
    target: &Target,
    options: &CompactOptions,
    cause: &CompactionCause,
) -> Result<Compacted, EngineError> {
    let draft = draft_with_cause(chat, target, options, cause).await?;
    store_compaction(chat, draft).await
}

#[tracing::instrument(
    name = "contexture.compact",
    skip_all,
    fields(gen_ai.conversation.id = chat.id().as_str())
)]
async fn draft_with_cause(
    chat: &Conversation,
    target: &Target,
    options: &CompactOptions,
    cause: &CompactionCause,
) -> Result<CompactionDraft, EngineError> {
    // One snapshot for everything below, so that span, texts and covers are of the same instant.
    let snapshot = load_snapshot(chat, chat.current_position()).await?;
    let spec = target.model_spec(chat.engine().catalogue())?;
    let counter = counter_for(spec.encoding);
    let request = target.build_request(chat.engine().catalogue())?;
    let space = request.limit();
    let manifests = percent_of(request.window, options.manifest_percent);
    let shown = snapshot.positions_in_view(target.format());
    let weights = snapshot.token_weights(&shown, counter);
    let span = match options.span {
        CompactSpan::Nodes { first, last } => snapshot.requested_span(first, last)?,
        CompactSpan::Older => {
            let most = percent_of(space, options.retained_percent);
            let sizes = SpanSizes {
                most,
                manifests,
                space,
            };
            choose_older_span(&snapshot, &weights, cause, sizes)?
        }
    };
    let tools = [&request.tools[..], &cause.tools].concat();
    let hints = ToolHints::from_definitions(&tools).overridden_by(&options.tool_hints);
    let is_readable = tools.iter().any(|tool| tool.name() == READ_TOOL);
    let making = ManifestMaking {
        hints: &hints,
        read_tool: is_readable.then_some(READ_TOOL),
        all: manifests,
        rules: request.history.standing_rules,
        counter,
    };
    draft_span(
        chat,
        &snapshot,
        span,
        &shown,
        target.format(),
        options,
        &making,
    )
    .await
}

/// Sizes that decide how far the older part of a history reaches, in tokens.
#[derive(Clone, Copy, Debug)]
pub(super) struct SpanSizes {
    /// What stays of the history at most.
    pub(super) most: u64,
    /// What all manifests in effect may take.
    pub(super) manifests: u64,
    /// The space of a request.
    pub(super) space: u64,
}

/// Chooses the older part of a history that a compaction is to stand for.
pub(super) fn choose_older_span(
    snapshot: &BranchSnapshot,
    weights: &[u64],
    cause: &CompactionCause,
    sizes: SpanSizes,
) -> Result<RangeInclusive<usize>, EngineError> {
    let keep = match cause.room {
        // At most half of what there is: a short history in a large window is compacted all the same when asked for.
        None => sizes.most.min(weights.iter().sum::<u64>() / 2),
        Some(goal) => retained_tokens(&RoomAfterCompaction {
            trigger: goal.trigger,
            fixed: goal.fixed.saturating_add(snapshot.opening_weight(weights)),
            compactions: sizes.manifests,
            step: snapshot.mean_step(weights),
            most: sizes.most,
        }),
    };
    snapshot.older_span(
        weights,
        OlderSpan {
            advice: cause.advice,
            keep: keep.saturating_sub(cause.growth),
            // A model's summaries may take more than manifests do, but no more than a quarter of the space.
            compactions: sizes.manifests.max(sizes.space / 4),
        },
    )
}

/// How a manifest is made.
struct ManifestMaking<'a> {
    hints: &'a ToolHints,
    /// The tool by which the model can read what it leaves out.
    read_tool: Option<&'a str>,
    /// What all manifests in effect may take, in tokens.
    all: u64,
    /// Whether requests quote the rules of the user beside it.
    rules: StandingRulesPolicy,
    counter: &'a dyn TokenCounter,
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
    making: &ManifestMaking<'_>,
) -> Result<CompactionDraft, EngineError> {
    let counter = making.counter;
    let (first, last) = snapshot.span_ends(&span)?;
    // Pins inside the span stay in view, so the summary must not stand for them.
    let (gone, stays) = snapshot.partition_span(&span, target);
    let goes = |at: &&usize| span.contains(&snapshot.view_position(**at)) && !stays.contains(at);
    let in_span = snapshot.readable_items(shown.iter().filter(goes));
    // Of a compaction that was redacted nothing is left to gain: it is made anew for what it stands for.
    let is_redacted = snapshot.redacted_span().as_ref() == Some(&span);
    let covered = match is_redacted {
        true => snapshot.readable_items(&gone),
        false => in_span.clone(),
    };
    let texts = covered.iter().map(|one| one.item.text());
    let tokens: u64 = texts.map(|text| counter.count(&text).count).sum();

    let staying = snapshot.manifest_tokens(&stays, counter);
    // What stands for little is little: half of it at most, whatever else is allowed.
    let budget = manifest_budget(making.all, &staying).min(tokens / 2);
    // Identifiers that stay in view need not be repeated in the manifest.
    let manifest = Manifest::from_items_with(&snapshot.readable_items(&gone), making.hints)
        .without_identifiers(&snapshot.readable_items(&stays))
        .with_read_tool(making.read_tool);
    let manifest = without_quoted_rules(manifest, making.rules);
    let manifest = manifest.render(TextBudget::Tokens(budget, counter)).text;
    let manifest_tokens = counter.count(&manifest).count;
    // Asked before the compactor is: a summary beside it only makes it longer.
    if !gains_enough(tokens, manifest_tokens) {
        return Err(EngineError::NothingToCompact {
            reason: "what would stand for it is not shorter by 30 per cent",
        });
    }
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
            names: None,
        },
    };
    let configuration = summary_configuration(options);
    let written = summarise_span(chat, request, hash, &configuration, options).await?;
    let written = without_long_summary(written, tokens, manifest_tokens, counter);
    let summarised = written.text.is_some();
    let summary: Vec<String> = written.text.into_iter().chain([manifest]).collect();
    let summary_tokens = summary
        .iter()
        .map(|text| counter.count(text).count)
        .sum::<u64>();
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

/// Drops a summary that takes so much that the compaction would gain too little: then the manifest stands alone.
fn without_long_summary(
    written: SpanSummary,
    covered: u64,
    manifest: u64,
    counter: &dyn TokenCounter,
) -> SpanSummary {
    let taken = written
        .text
        .as_deref()
        .map_or(0, |text| counter.count(text).count);
    if gains_enough(covered, manifest.saturating_add(taken)) {
        return written;
    }
    SpanSummary {
        text: None,
        reused: false,
        failure: Some(format!(
            "the summary of {taken} tokens is too long for a span of {covered}"
        )),
    }
}
