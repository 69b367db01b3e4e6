//! The report, drawn up from what the passes decided.

use std::ops::Range;

use contexture_condense::has_read_tool;
use contexture_ir::{ContentHash, ToolDefinition};
use contexture_prompt_cache::CacheReport;
use contexture_tokens::TokenBounds;
use contexture_tools::ExcludedTool;

use crate::contributions::{
    PayloadSlot, PlacedContribution, RequestOverhead, setting_changes, unit_count,
};
use crate::error::RequiredSegment;
use crate::history::{ActiveCompaction, History, RequiredMessage, RewrittenTotals, RoundTotals};
use crate::input::{Band, CompileRequest, Contribution};
use crate::payload::Payload;
use crate::pipeline::outcome::CompileOutcome;
use contexture_report::number_format::count_with_noun;
use contexture_report::{
    EpochReport, PayloadReport, RemovedTool, Report, Segment, SegmentRule, SegmentVerdict,
    StandingReport, TargetReport, TokenRange, Totals,
};

/// What must be sent, for a refusal.
pub(crate) fn required_segments(
    history: &History,
    slots: &[PayloadSlot<'_>],
    whole: &[PlacedContribution],
    frame: &RequestOverhead,
) -> Vec<RequiredSegment> {
    let mut segments = Vec::new();
    let mut framing = frame.framing;
    let mut row = |name: &str, text: TokenBounds, own: TokenBounds| {
        framing += own;
        segments.push(RequiredSegment {
            name: name.to_owned(),
            tokens: text.high,
        });
    };
    if frame.tools != TokenBounds::ZERO {
        row("tools", frame.tools, TokenBounds::ZERO);
    }
    let claimed: Vec<_> = slots.iter().zip(whole).collect();
    let required = |band: fn(Band) -> bool| {
        claimed
            .iter()
            .filter(move |(slot, _)| slot.contribution.is_required() && band(slot.band))
    };
    for (slot, placed) in required(|band| band <= Band::Anchor) {
        row(&slot.contribution.source, placed.text, placed.framing);
    }
    let last = history.rounds.get(history.last);
    // Messages of the last round are part of its row below.
    for kept in history.required_messages() {
        if kept.round < history.last {
            row(
                history.required_role(kept),
                kept.text_tokens(),
                kept.framing_tokens(),
            );
        }
    }
    if let Some(last) = last {
        let pieces = history.blocks.get(last.blocks.start..).unwrap_or_default();
        let text = pieces.iter().map(|piece| piece.text).sum();
        row(
            "last round",
            text,
            pieces.iter().map(|piece| piece.framing).sum(),
        );
    }
    for (slot, placed) in required(|band| band > Band::Anchor) {
        row(&slot.contribution.source, placed.text, placed.framing);
    }
    segments.push(RequiredSegment {
        name: "framing".to_owned(),
        tokens: framing.high,
    });
    segments
}

/// What the registry left out of its offer, if there was one.
fn removed_tools(request: &CompileRequest) -> Vec<RemovedTool> {
    let removed = request.offer.iter().flat_map(|offer| &offer.removed);
    let row = |removed: &ExcludedTool| {
        // Through JSON, so the words are those that programs read elsewhere.
        let why = serde_json::to_value(removed.reasons).ok();
        RemovedTool {
            tool: removed.tool.to_string(),
            reasons: why
                .and_then(|why| serde_json::from_value(why).ok())
                .unwrap_or_default(),
        }
    };
    removed.map(row).collect()
}

fn has_exact_segments(segments: &[Segment]) -> bool {
    segments.iter().all(|segment| segment.low == segment.tokens)
}

/// Builds the report of a compile.
pub(crate) fn build_report(
    outcome: &CompileOutcome<'_>,
    epoch: EpochReport,
    cache: CacheReport,
    (payload, fingerprint): (&Payload, ContentHash),
) -> Report {
    let mut segments = Vec::new();
    let mut row = SegmentRows {
        limit: outcome.limit,
        segments: &mut segments,
    };
    row.add_tools(outcome);
    row.add_contributions(outcome, |band| band <= Band::Anchor);
    row.add_history(outcome);
    row.add_contributions(outcome, |band| band > Band::Anchor);
    let framing = total_framing(outcome);
    // Before the framing row, which is an estimate with every provider: exact means that the texts are
    // counted exactly.
    let exact = has_exact_segments(row.segments);
    row.push(Segment {
        rule: "what the format adds".to_owned(),
        rule_kind: SegmentRule::Framing,
        ..row.blank_segment("framing", "framing", framing)
    });
    let tokens: u64 = segments.iter().map(|segment| segment.tokens).sum();
    let low: u64 = segments.iter().map(|segment| segment.low).sum();
    let request = outcome.input.request;
    let upper = outcome.upper.unwrap_or(tokens);
    Report {
        version: 1,
        target: target_report(outcome),
        totals: Totals {
            tokens,
            low,
            exact,
            counted: TokenRange {
                low: outcome.counted.map_or(low, |counted| counted.low),
                high: outcome.counted.map_or(tokens, |counted| counted.high),
            },
            count: request.count.as_str(),
            upper,
            uncertain: tokens.saturating_sub(low),
            refusal_percent: match upper > outcome.limit {
                true => request.chance_above_budget(),
                false => 0.0,
            },
            unbounded: unbounded_parts(outcome),
            framing: framing.high,
            share: share_percent(tokens, outcome.limit),
            items: outcome.input.path.len(),
            messages: payload.message_count(),
        },
        segments,
        omitted: outcome.omitted_spans(),
        rewritten: outcome.rewritten_items(),
        removed_tools: removed_tools(outcome.input.request),
        readable: has_read_tool(&outcome.input.request.tools),
        repairs: outcome.all_repairs(),
        losses: outcome.all_losses(),
        standing: standing_report(outcome),
        settings: setting_changes(outcome.input.request),
        epoch,
        cache,
        // Only whoever compacts knows.
        compaction_declined: None,
        summary_missing: None,
        payload: PayloadReport {
            bytes: payload.len(),
            fingerprint: fingerprint.to_string(),
        },
    }
}

/// The rules that are shown though their messages are not.
fn standing_report(outcome: &CompileOutcome<'_>) -> Option<StandingReport> {
    let rules = outcome.rule_choice;
    let own = outcome.slots.iter().zip(outcome.placed).find(|(slot, _)| {
        let own = rules.contribution.as_ref();
        own.is_some_and(|own| std::ptr::eq(own, slot.contribution))
    });
    rules.report(own.map_or(0, |(_, placed)| placed.text.high))
}

/// Why the upper bound may not hold, if it may not: what the provider adds that nobody else can count.
fn unbounded_parts(outcome: &CompileOutcome<'_>) -> Vec<String> {
    let request = outcome.input.request;
    let format = request.dialect.format;
    let own = request.fields.wire_fields(format.as_str());
    let own = own.iter().map(|(name, value)| (name, value.get()));
    let params = request.params.iter();
    let members = own.chain(params.map(|(name, value)| (name.as_str(), value.get())));
    let added = members
        .filter(|(_, value)| *value != "null")
        .filter_map(|(name, value)| format.spec().uncounted_member(name, value));
    let mut all: Vec<String> = added.map(str::to_owned).collect();
    let own_tools = request.tools.iter().filter_map(|tool| match tool {
        ToolDefinition::Provider(_) => Some(format!("the provider's tool {}", tool.name())),
        ToolDefinition::Function(_) => None,
    });
    all.extend(own_tools);
    match outcome.sent_totals.unseen {
        0 => {}
        count => all.push(format!(
            "files that only the provider sees, in {}",
            count_with_noun(count, "message")
        )),
    }
    all
}

/// What the format adds to the request. It has one row for all of it: split by message it would only be noise.
fn total_framing(outcome: &CompileOutcome<'_>) -> TokenBounds {
    let placed = outcome.placed.iter().map(|placed| placed.framing);
    outcome.overhead.framing + placed.sum::<TokenBounds>() + outcome.sent_totals.framing
}

fn target_report(outcome: &CompileOutcome<'_>) -> TargetReport {
    let request = outcome.input.request;
    TargetReport {
        format: request.target_name().to_owned().into(),
        model: request.model.clone(),
        window: request.window,
        reserve: request.reserve,
        limit: outcome.limit,
        encoding: outcome.input.counter.name().to_owned(),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share is shown with one decimal"
)]
fn share_percent(tokens: u64, limit: u64) -> f64 {
    // Rounded to one decimal here, so the JSON, the table and the page agree.
    (tokens as f64 * 1000.0 / limit.max(1) as f64).round() / 10.0
}

struct SegmentRows<'a> {
    limit: u64,
    segments: &'a mut Vec<Segment>,
}

impl SegmentRows<'_> {
    fn push(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    fn blank_segment(&self, band: &'static str, source: &str, tokens: TokenBounds) -> Segment {
        Segment {
            band,
            source: source.to_owned(),
            label: String::new(),
            items: 0,
            tokens: tokens.high,
            low: tokens.low,
            omitted_tokens: 0,
            share: share_percent(tokens.high, self.limit),
            verdict: SegmentVerdict::Kept,
            rule: String::new(),
            rule_kind: SegmentRule::Fits,
            span: None,
        }
    }

    fn add_tools(&mut self, outcome: &CompileOutcome<'_>) {
        let count = outcome.input.request.tools.len();
        if count > 0 {
            self.push(Segment {
                label: count_with_noun(count as u64, "tool"),
                rule: "offered tools are always sent".to_owned(),
                rule_kind: SegmentRule::OfferedTools,
                verdict: SegmentVerdict::Required,
                ..self.blank_segment("tools", "tools", outcome.overhead.tools)
            });
        }
    }

    fn add_contributions(&mut self, outcome: &CompileOutcome<'_>, bands: fn(Band) -> bool) {
        let all = outcome
            .slots
            .iter()
            .zip(outcome.placed)
            .zip(outcome.natural);
        for ((slot, placed), natural) in all {
            if bands(slot.band) {
                let segment = self.contribution_segment(outcome, slot, placed);
                self.push(Segment {
                    omitted_tokens: natural.saturating_sub(segment.tokens),
                    ..segment
                });
            }
        }
    }

    fn contribution_segment(
        &self,
        outcome: &CompileOutcome<'_>,
        slot: &PayloadSlot<'_>,
        placed: &PlacedContribution,
    ) -> Segment {
        let contribution = slot.contribution;
        let moved = if slot.band == contribution.band {
            String::new()
        } else {
            format!("from {}", contribution.band.as_str())
        };
        let (verdict, rule, rule_kind) = contribution_verdict(contribution, placed.units);
        let rules = outcome.rule_choice;
        let label = match &rules.contribution {
            Some(own) if std::ptr::eq(own, contribution) => {
                count_with_noun(rules.shown_count() as u64, "rule")
            }
            _ => moved,
        };
        Segment {
            label,
            verdict,
            rule,
            rule_kind,
            ..self.blank_segment(slot.band.as_str(), &contribution.source, placed.text)
        }
    }

    fn add_history(&mut self, outcome: &CompileOutcome<'_>) {
        let (history, cut) = (&outcome.prepared.history, outcome.trim_point);
        for kept in &cut.kept {
            self.add_required_message(outcome, kept);
        }
        if cut.round > 0 {
            let (trimmed, rounds) = (&outcome.trimmed, 0..cut.round);
            self.push(Segment {
                label: rounds_label(history, &rounds),
                omitted_tokens: outcome.trimmed_tokens().high,
                verdict: SegmentVerdict::Trimmed,
                rule: trim_rule_text(trimmed.count, outcome.input.request.history.trim.low_water),
                rule_kind: SegmentRule::OldestTrimmed,
                span: trimmed.ends(),
                ..self.blank_segment("history", "rounds", TokenBounds::ZERO)
            });
        }
        self.add_left_out_thinking(outcome);
        let mut apart: Vec<&RequiredMessage> =
            history.task.iter().chain(&history.compactions).collect();
        // Those of rounds that were cut have their rows above.
        apart.retain(|kept| kept.round >= cut.round);
        apart.sort_by_key(|kept| kept.entry);
        for kept in &apart {
            self.add_required_message(outcome, kept);
        }
        let last = history.last.max(cut.round);
        // Rounds are told in three stretches: those that were changed, those as they are, and the last
        // one, which is required.
        let treated = outcome.treated_until().clamp(cut.round, last);
        let changed = outcome.prepared.rewritten_totals(&(cut.round..treated));
        let (rule, omitted_tokens) = rewrite_summary(&changed, outcome);
        let (verdict, rule_kind) = treated_verdict(&changed);
        let treatment = RoundTreatment {
            verdict,
            rule,
            rule_kind,
            omitted_tokens,
        };
        self.add_rounds(history, cut.round..treated, &apart, treatment);
        let treatment = RoundTreatment {
            verdict: SegmentVerdict::Kept,
            rule: "fits".to_owned(),
            rule_kind: SegmentRule::Fits,
            omitted_tokens: 0,
        };
        self.add_rounds(history, treated..last, &apart, treatment);
        let newest = last..history.rounds.len();
        let changed = outcome.prepared.rewritten_totals(&newest);
        let (rule, omitted_tokens) = rewrite_summary(&changed, outcome);
        let treatment = RoundTreatment {
            verdict: SegmentVerdict::Required,
            rule: match rule.as_str() {
                "" => "last round".to_owned(),
                rule => format!("last round; {rule}"),
            },
            rule_kind: SegmentRule::LastRound,
            omitted_tokens,
        };
        self.add_rounds(history, newest, &apart, treatment);
    }

    /// Thinking that may not be sent any more.
    fn add_left_out_thinking(&mut self, outcome: &CompileOutcome<'_>) {
        if let Some((count, span)) = outcome.prepared.bound_thinking {
            self.push(Segment {
                label: count_with_noun(count as u64, "thought"),
                omitted_tokens: outcome.prepared.left_out_thinking.high,
                verdict: SegmentVerdict::Dropped,
                rule: "bound to a history that was edited".to_owned(),
                rule_kind: SegmentRule::BoundThinking,
                span: Some(span),
                ..self.blank_segment("history", "thinking", TokenBounds::ZERO)
            });
        }
    }

    /// A message that has a row of its own, or a pinned round.
    fn add_required_message(&mut self, outcome: &CompileOutcome<'_>, kept: &RequiredMessage) {
        let name = outcome.prepared.history.required_role(kept);
        let mut covers = outcome.prepared.compactions.iter();
        let covered = covers.find(|covered| kept.sources == [covered.cover.compaction]);
        let (label, rule, rule_kind) = required_message_rule(name, covered);
        let span = match covered {
            Some(ActiveCompaction { cover, .. }) => Some((cover.first, cover.last)),
            None => index_span(kept.sources.iter().copied()),
        };
        self.push(Segment {
            label,
            items: kept.sources.len(),
            omitted_tokens: covered.map_or(0, |covered| covered.tokens.high),
            verdict: SegmentVerdict::Required,
            rule: rule.to_owned(),
            rule_kind,
            span,
            ..self.blank_segment("history", name, kept.text_tokens())
        });
    }

    /// A stretch of rounds, without what has a row of its own.
    fn add_rounds(
        &mut self,
        history: &History,
        rounds: Range<usize>,
        apart: &[&RequiredMessage],
        treatment: RoundTreatment,
    ) {
        let mut text = history.block_totals_of(&rounds).text;
        let RoundTotals {
            mut items, span, ..
        } = history.round_totals(rounds.clone());
        for kept in apart.iter().filter(|kept| rounds.contains(&kept.round)) {
            // Has a row of its own; without this its tokens would be summed twice.
            text = text - kept.text_tokens();
            items = items.saturating_sub(kept.sources.len());
        }
        if items == 0 && text == TokenBounds::ZERO {
            return;
        }
        self.push(Segment {
            label: rounds_label(history, &rounds),
            items,
            omitted_tokens: treatment.omitted_tokens,
            verdict: treatment.verdict,
            rule: treatment.rule,
            rule_kind: treatment.rule_kind,
            span,
            ..self.blank_segment("history", "rounds", text)
        });
    }
}

/// The label of a message that has a row of its own, and the rule by which it is sent.
fn required_message_rule(
    name: &str,
    covered: Option<&ActiveCompaction>,
) -> (String, &'static str, SegmentRule) {
    let user = "user".to_owned();
    match (name, covered) {
        (_, Some(ActiveCompaction { cover, .. })) => {
            let span = format!("items {}–{}", cover.first, cover.last);
            (span, "stands for what it covers", SegmentRule::Compaction)
        }
        ("task", None) => (user, "first user message", SegmentRule::FirstMessage),
        ("opening", None) => {
            let rule = "what the history opens with";
            (String::new(), rule, SegmentRule::Opening)
        }
        ("pinned", None) => (String::new(), "pinned", SegmentRule::Pinned),
        _ => (user, "user message being answered", SegmentRule::Question),
    }
}

/// What became of a stretch of rounds, and by which rule.
struct RoundTreatment {
    verdict: SegmentVerdict,
    rule: String,
    rule_kind: SegmentRule,
    omitted_tokens: u64,
}

/// The first and the last of some indexes.
fn index_span(indexes: impl Iterator<Item = usize>) -> Option<(usize, usize)> {
    indexes.fold(None, |span, at| match span {
        None => Some((at, at)),
        Some((first, last)) => Some((first.min(at), last.max(at))),
    })
}

/// What became of rounds in which this was rewritten. Where it was several things, what took most away decides.
const fn treated_verdict(changed: &RewrittenTotals) -> (SegmentVerdict, SegmentRule) {
    match () {
        () if changed.cleared > 0 => (SegmentVerdict::Cleared, SegmentRule::OldOutputs),
        () if changed.repeated > 0 => (SegmentVerdict::Cleared, SegmentRule::RepeatedOutputs),
        () if changed.previewed > 0 => (SegmentVerdict::Shortened, SegmentRule::LongOutputs),
        () => (SegmentVerdict::Shortened, SegmentRule::ThinkingText),
    }
}

/// What became of a contribution of which `units` parts are sent, and the rule that decided.
fn contribution_verdict(
    contribution: &Contribution,
    units: usize,
) -> (SegmentVerdict, String, SegmentRule) {
    let all = unit_count(&contribution.content);
    let (verdict, rule, kind) = if contribution.is_required() {
        let (why, kind) = if contribution.pinned {
            ("pinned", SegmentRule::Pinned)
        } else {
            ("instructions are never cut", SegmentRule::Instructions)
        };
        (SegmentVerdict::Required, why, kind)
    } else if units == all {
        let kind = SegmentRule::WithinBudget;
        (SegmentVerdict::Kept, "within its budget", kind)
    } else if units == 0 {
        let kind = SegmentRule::NoRoom;
        (SegmentVerdict::Dropped, "no room within its budget", kind)
    } else {
        let rule = format!("first {} of {all} within its budget", units);
        return (
            SegmentVerdict::Shortened,
            rule,
            SegmentRule::PartWithinBudget,
        );
    };
    (verdict, rule.to_owned(), kind)
}

/// What was rewritten of some rounds in a few words, and how many tokens that saved.
fn rewrite_summary(changed: &RewrittenTotals, outcome: &CompileOutcome<'_>) -> (String, u64) {
    let mut words = Vec::new();
    if changed.cleared > 0 {
        let policy = outcome.input.request.history.clear.policy();
        let newest = policy.map_or(0, |policy| policy.keep_recent);
        let outputs = count_with_noun(changed.cleared, "output");
        words.push(format!("{outputs} cleared (newest {newest} kept)"));
    }
    for (count, noun, verb) in [
        (changed.repeated, "repeated output", "cleared"),
        (changed.thoughts, "thought", "as text"),
        (changed.previewed, "output", "previewed"),
    ] {
        if count > 0 {
            words.push(format!("{} {verb}", count_with_noun(count, noun)));
        }
    }
    (words.join("; "), changed.saved)
}

fn trim_rule_text(items: usize, low_water: u8) -> String {
    let oldest = format!("oldest {} trimmed", count_with_noun(items as u64, "item"));
    match low_water {
        100.. => oldest,
        mark => format!("{oldest}, down to {mark} % of the room"),
    }
}

fn rounds_label(history: &History, rounds: &Range<usize>) -> String {
    let calls = history.block_totals_of(rounds).calls;
    let (first, last) = (rounds.start + 1, rounds.end);
    let name = if last == first {
        format!("round {first}")
    } else {
        format!("rounds {first}–{last}")
    };
    if calls == 0 {
        name
    } else {
        format!("{name}, {}", count_with_noun(calls as u64, "call"))
    }
}
