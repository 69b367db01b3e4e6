//! The work in the background: from a recorded answer to a summary beside the tree.

use std::ops::RangeInclusive;

use contexture_compile::compaction::gains_enough;
use contexture_compile::{Payload, Target};
use contexture_ir::NodeId;
use contexture_store::{EventKind, PathEnd};
use contexture_tokens::counter_for;

use super::options::{BackgroundSummary, SummaryModel};
use super::question::{NotWritten, SummarySubject, Way};
use super::ready::{LookupSizes, ReadySummary, SummaryOutcome, is_settled, put_summary, take_back};
use crate::call::{AfterAnswer, CompiledCall};
use crate::compaction::branch_snapshot::{BranchSnapshot, load_snapshot};
use crate::compaction::compact::{CompactOptions, CompactionCause, SpanSizes, choose_older_span};
use crate::compaction::trigger::percent_of;
use crate::error::EngineError;
use crate::handle::{Conversation, EngineEventKind, SideCaller, load_info};

/// How many events of a conversation are looked at for a redaction.
const EVENTS: usize = 256;

/// A summary that is to be made once a call is answered.
#[derive(Clone, Debug)]
pub(in crate::compaction) struct SummaryPlan {
    pub(in crate::compaction) strategy: BackgroundSummary,
    pub(in crate::compaction) compact: CompactOptions,
    pub(in crate::compaction) target: Target,
    /// How the compaction will be made that is to come.
    pub(in crate::compaction) cause: CompactionCause,
}

impl AfterAnswer for SummaryPlan {
    fn begin(&self, chat: &Conversation, call: &CompiledCall) {
        let Some(head) = call.base() else { return };
        let sent = SentRequest {
            head,
            body: SentBody::Payload(call.payload.clone()),
        };
        start_summary(chat, sent, self.clone());
    }
}

/// A request that a model answered.
#[derive(Debug)]
pub(in crate::compaction) struct SentRequest {
    /// The last node of its history.
    pub(in crate::compaction) head: NodeId,
    pub(in crate::compaction) body: SentBody,
}

#[derive(Debug)]
pub(in crate::compaction) enum SentBody {
    /// As compiled: written in the background, where nobody waits for it.
    Payload(Payload),
    /// As a client wrote it.
    Text(String),
}

/// Begins to make a summary, unless one is being made for this conversation. Without a runtime nothing is begun.
pub(in crate::compaction) fn start_summary(
    chat: &Conversation,
    sent: SentRequest,
    plan: SummaryPlan,
) {
    let Ok(runtime) = tokio::runtime::Handle::try_current() else {
        return;
    };
    let Some(busy) = chat.engine().background_work().begin(chat) else {
        return;
    };
    let chat = chat.clone();
    runtime.spawn(async move {
        // Held until all is stored, also where the work panics.
        let _busy = busy;
        if let Err(error) = make_summary(&chat, sent, plan).await {
            tracing::warn!(%error, "no summary was made in the background");
        }
    });
}

/// What is summed up, and where that stands on the path.
struct ChosenSpan {
    snapshot: BranchSnapshot,
    span: RangeInclusive<usize>,
    shown: Vec<usize>,
}

async fn make_summary(
    chat: &Conversation,
    sent: SentRequest,
    plan: SummaryPlan,
) -> Result<(), EngineError> {
    // An event behind this one may be a redaction of what is about to be read.
    let event = load_info(chat).await?.events;
    let Some(chosen) = choose_span(chat, sent.head, &plan).await? else {
        return Ok(());
    };
    let ChosenSpan {
        snapshot,
        span,
        shown,
    } = &chosen;
    let format = plan.target.format();
    let spec = plan.target.model_spec(chat.engine().catalogue())?;
    let counter = counter_for(spec.encoding);
    let (gone, stays) = snapshot.partition_span(span, format);
    let goes = |at: &&usize| span.contains(&snapshot.view_position(**at)) && !stays.contains(at);
    let items = snapshot.readable_items(shown.iter().filter(goes));
    let texts = items.iter().map(|one| one.item.text());
    let tokens: u64 = texts.map(|text| counter.count(&text).count).sum();
    let body = match sent.body {
        SentBody::Payload(payload) => payload.to_json(),
        SentBody::Text(text) => text,
    };
    let subject = SummarySubject {
        body: &body,
        target: &plan.target,
        span: &items,
        tokens,
        caller: SideCaller {
            engine: chat.engine(),
            owner: chat.owner(),
            conversation: chat.id(),
            names: None,
        },
        side_usage: plan.compact.side_usage.as_deref(),
    };
    let (by, written) = write_summary(chat, &plan, &subject).await;
    // Longer than what may be gained it would be dropped when the compaction is due: said now, it is not asked for again.
    let written = written.and_then(|text| match counter.count(&text).count {
        taken if gains_enough(tokens, taken) => Ok(text),
        taken => Err(NotWritten {
            reason: format!("the summary of {taken} tokens is too long for a span of {tokens}"),
            paid: true,
        }),
    });
    let outcome = match written {
        Ok(text) => SummaryOutcome::Written(text),
        Err(NotWritten { reason, paid }) => SummaryOutcome::Missing { reason, paid },
    };
    let ends = snapshot.span_ends(span)?;
    let summary = ReadySummary::new(ends, snapshot.content_hash(&gone), by, outcome);
    put_summary(chat, &summary).await?;
    // Looked at only now: a redaction before the write did not see the value.
    if was_redacted(chat, event).await? {
        return take_back(chat, &summary).await;
    }
    chat.publish(|| match &summary.outcome {
        SummaryOutcome::Written(_) => EngineEventKind::SummaryReady,
        SummaryOutcome::Missing { reason, .. } => EngineEventKind::SummaryMissing {
            reason: reason.clone(),
        },
    });
    Ok(())
}

/// Chooses what the compaction to come will stand for; `None` if nothing can be compacted, or nothing need be asked.
async fn choose_span(
    chat: &Conversation,
    head: NodeId,
    plan: &SummaryPlan,
) -> Result<Option<ChosenSpan>, EngineError> {
    // At the head of the request and not of the branch: the model knows no more than it was sent.
    let snapshot = load_snapshot(chat, PathEnd::Node(head)).await?;
    let format = plan.target.format();
    let catalogue = chat.engine().catalogue();
    let counter = counter_for(plan.target.model_spec(catalogue)?.encoding);
    let request = plan.target.build_request(catalogue)?;
    let space = request.limit();
    let shown = snapshot.positions_in_view(format);
    let weights = snapshot.token_weights(&shown, counter);
    let sizes = SpanSizes {
        most: percent_of(space, plan.compact.retained_percent),
        manifests: percent_of(request.window, plan.compact.manifest_percent),
        space,
    };
    let span = match choose_older_span(&snapshot, &weights, &plan.cause, sizes) {
        Ok(span) => span,
        Err(EngineError::NothingToCompact { .. }) => return Ok(None),
        Err(error) => return Err(error),
    };
    let lookup = LookupSizes {
        format,
        weights: &weights,
        most: sizes.most,
        advice: None,
    };
    Ok(match is_settled(chat, &snapshot, &span, lookup).await? {
        true => None,
        false => Some(ChosenSpan {
            snapshot,
            span,
            shown,
        }),
    })
}

/// Asks for a summary, unless nobody can be asked or whoever it is has failed too often. Returns who that is, too.
async fn write_summary(
    chat: &Conversation,
    plan: &SummaryPlan,
    subject: &SummarySubject<'_>,
) -> (String, Result<String, NotWritten>) {
    let strategy = &plan.strategy;
    let chosen = match strategy.choose_way(subject) {
        Ok(chosen) => chosen,
        Err(reason) => return (String::new(), Err(NotWritten::unpaid(reason))),
    };
    let by = strategy.configuration(&chosen.way, &plan.target);
    let asked = match chosen.way {
        Way::Own(_) => SummaryModel::Own,
        Way::Other => SummaryModel::Other,
    };
    let is_own = asked == SummaryModel::Own;
    chat.publish(|| EngineEventKind::SummaryAsked {
        is_own,
        own_cost: chosen.own_cost,
        other_cost: chosen.other_cost,
    });
    let (breakers, policy) = (chat.engine().circuit_breakers(), plan.compact.breaker);
    if !breakers.can_try(&by, policy, chat.engine().now_ms()) {
        let reason = format!("left alone after {} failures", policy.failures);
        return (by, Err(NotWritten::unpaid(reason)));
    }
    let names = match &strategy.payer {
        None => None,
        Some(payer) => match payer.may_ask(chat.owner(), chat.id()).await {
            Ok(()) => Some(payer.names(asked)),
            // No failure of the model's: it was not asked.
            Err(reason) => return (by, Err(NotWritten::unpaid(reason))),
        },
    };
    let subject = SummarySubject {
        caller: SideCaller {
            names: names.as_ref(),
            ..subject.caller
        },
        ..*subject
    };
    let written = strategy.ask(chosen.way, &subject).await;
    match &written {
        Ok(_) => breakers.record_success(&by),
        Err(_) => breakers.record_failure(&by, chat.engine().now_ms()),
    }
    (by, written)
}

/// Whether something of the conversation was redacted behind an event.
async fn was_redacted(chat: &Conversation, event: u64) -> Result<bool, EngineError> {
    let (store, owner, id) = (chat.store(), chat.owner(), chat.id());
    let events = store.list_events(owner, id, event, EVENTS).await?;
    let redacts = |kind: &EventKind| {
        matches!(
            kind,
            EventKind::NodeRedacted { .. } | EventKind::BytesRedacted { .. }
        )
    };
    // Behind a full page there may be one more.
    Ok(events.len() >= EVENTS || events.iter().any(|event| redacts(&event.kind)))
}
