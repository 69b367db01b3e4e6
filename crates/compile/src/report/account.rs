//! The report, drawn up from what the passes decided.

use std::ops::Range;

use contexture_tools::Removed;

use crate::cache::report::CacheReport;
use crate::contribution::Band;
use crate::count::Tokens;
use crate::frame::Frame;
use crate::front::Covered;
use crate::history::{History, Kept};
use crate::passes::place::{Placed, Slot, units};
use crate::payload::Payload;
use crate::plan::EpochReport;
use crate::reading::offers;
use crate::refusal::RequiredSegment;
use crate::report::document::{
    Counted, PayloadReport, RemovedTool, Report, Rewriting, Rewritten, Segment, TargetReport,
    Totals, Verdict,
};
use crate::report::figures::counted;
use crate::report::ledger::Ledger;
use crate::request::CompileRequest;

/// What must be sent, for a refusal.
pub(crate) fn required(
    history: &History,
    slots: &[Slot<'_>],
    whole: &[Placed],
    frame: &Frame,
) -> Vec<RequiredSegment> {
    let mut segments = Vec::new();
    let mut framing = frame.framing;
    let mut row = |name: &str, text: Tokens, own: Tokens| {
        framing += own;
        segments.push(RequiredSegment {
            name: name.to_owned(),
            tokens: text.high,
        });
    };
    if frame.tools != Tokens::ZERO {
        row("tools", frame.tools, Tokens::ZERO);
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
    for kept in history.kept() {
        if kept.round < history.last {
            row(history.role_of(kept), kept.text(), kept.framing());
        }
    }
    if let Some(last) = last {
        let pieces = history.pieces.get(last.pieces.start..).unwrap_or_default();
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
    let row = |removed: &Removed| {
        let why = serde_json::to_value(removed.why).ok();
        RemovedTool {
            tool: removed.tool.to_string(),
            why: why
                .and_then(|why| serde_json::from_value(why).ok())
                .unwrap_or_default(),
        }
    };
    removed.map(row).collect()
}

fn segments_exact(segments: &[Segment]) -> bool {
    segments.iter().all(|segment| segment.low == segment.tokens)
}

/// The report.
pub(crate) fn report(
    ledger: &Ledger<'_>,
    epoch: EpochReport,
    cache: CacheReport,
    payload: &Payload,
) -> Report {
    let mut segments = Vec::new();
    let mut row = Rows {
        limit: ledger.limit,
        segments: &mut segments,
    };
    row.tools(ledger);
    row.contributions(ledger, |band| band <= Band::Anchor);
    row.history(ledger);
    row.contributions(ledger, |band| band > Band::Anchor);
    let framing = ledger.frame.framing
        + ledger
            .placed
            .iter()
            .map(|placed| placed.framing)
            .sum::<Tokens>()
        + ledger
            .sent
            .iter()
            .map(|piece| piece.framing)
            .sum::<Tokens>();
    let exact = segments_exact(row.segments);
    row.push(Segment {
        rule: "what the format adds".to_owned(),
        ..row.blank("framing", "framing", framing)
    });
    let tokens: u64 = segments.iter().map(|segment| segment.tokens).sum();
    let low: u64 = segments.iter().map(|segment| segment.low).sum();
    Report {
        version: 1,
        target: target(ledger),
        totals: Totals {
            tokens,
            low,
            exact,
            counted: Counted {
                low: ledger.counted.map_or(low, |counted| counted.low),
                high: ledger.counted.map_or(tokens, |counted| counted.high),
            },
            framing: framing.high,
            share: share(tokens, ledger.limit),
            items: ledger.input.path.len(),
            messages: payload.messages(),
        },
        segments,
        omitted: ledger.omitted(),
        rewritten: rewritten(ledger),
        removed_tools: removed_tools(ledger.input.request),
        readable: offers(&ledger.input.request.tools),
        repairs: ledger
            .front
            .repairs
            .iter()
            .chain(ledger.placed.iter().flat_map(|placed| &placed.repairs))
            .cloned()
            .collect(),
        losses: ledger.losses(),
        epoch,
        cache,
        payload: PayloadReport {
            bytes: payload.len(),
            fingerprint: payload.fingerprint().to_string(),
        },
    }
}

/// What is shown otherwise than it is, in path order: of the rounds that are sent, and of what is kept of the others.
fn rewritten(ledger: &Ledger<'_>) -> Vec<Rewritten> {
    let sent = ledger.cut.round..ledger.front.history.rounds.len();
    let kept = ledger.cut.kept.iter().flat_map(|kept| {
        let round = ledger.rewritten(&(kept.round..kept.round + 1)).into_iter();
        round.filter(|one| kept.sources.contains(&one.index))
    });
    let mut all: Vec<Rewritten> = kept.chain(ledger.rewritten(&sent)).cloned().collect();
    all.sort_unstable_by_key(|one| one.index);
    all
}

fn target(ledger: &Ledger<'_>) -> TargetReport {
    let request = ledger.input.request;
    TargetReport {
        format: request.dialect.format.as_str(),
        model: request.model.clone(),
        window: request.window,
        reserve: request.reserve,
        limit: ledger.limit,
        encoding: ledger.input.counter.name().to_owned(),
    }
}

#[expect(
    clippy::cast_precision_loss,
    reason = "a share is shown with one decimal"
)]
fn share(tokens: u64, limit: u64) -> f64 {
    (tokens as f64 * 1000.0 / limit.max(1) as f64).round() / 10.0
}

struct Rows<'a> {
    limit: u64,
    segments: &'a mut Vec<Segment>,
}

impl Rows<'_> {
    fn push(&mut self, segment: Segment) {
        self.segments.push(segment);
    }

    fn blank(&self, band: &'static str, source: &str, tokens: Tokens) -> Segment {
        Segment {
            band,
            source: source.to_owned(),
            label: String::new(),
            items: 0,
            tokens: tokens.high,
            low: tokens.low,
            omitted_tokens: 0,
            share: share(tokens.high, self.limit),
            verdict: Verdict::Kept,
            rule: String::new(),
        }
    }

    fn tools(&mut self, ledger: &Ledger<'_>) {
        let count = ledger.input.request.tools.len();
        if count > 0 {
            self.push(Segment {
                label: counted(count as u64, "tool"),
                rule: "offered tools are always sent".to_owned(),
                verdict: Verdict::Required,
                ..self.blank("tools", "tools", ledger.frame.tools)
            });
        }
    }

    fn contributions(&mut self, ledger: &Ledger<'_>, bands: fn(Band) -> bool) {
        let all = ledger.slots.iter().zip(ledger.placed).zip(ledger.natural);
        for ((slot, placed), natural) in all {
            if bands(slot.band) {
                let segment = self.contribution(slot, placed);
                self.push(Segment {
                    omitted_tokens: natural.saturating_sub(segment.tokens),
                    ..segment
                });
            }
        }
    }

    fn contribution(&self, slot: &Slot<'_>, placed: &Placed) -> Segment {
        let contribution = slot.contribution;
        let all = units(&contribution.content);
        let moved = if slot.band == contribution.band {
            String::new()
        } else {
            format!("from {}", contribution.band.as_str())
        };
        let (verdict, rule) = if contribution.is_required() {
            let why = if contribution.pinned {
                "pinned"
            } else {
                "instructions are never cut"
            };
            (Verdict::Required, why.to_owned())
        } else if placed.units == all {
            (Verdict::Kept, "within its budget".to_owned())
        } else if placed.units == 0 {
            (Verdict::Dropped, "no room within its budget".to_owned())
        } else {
            let rule = format!("first {} of {all} within its budget", placed.units);
            (Verdict::Shortened, rule)
        };
        Segment {
            label: moved,
            verdict,
            rule,
            ..self.blank(slot.band.as_str(), &contribution.source, placed.text)
        }
    }

    fn history(&mut self, ledger: &Ledger<'_>) {
        let (history, cut) = (&ledger.front.history, ledger.cut);
        for kept in &cut.kept {
            self.kept(ledger, kept);
        }
        if cut.round > 0 {
            let (omitted, rounds) = (&ledger.trimmed, 0..cut.round);
            self.push(Segment {
                label: label(history, &rounds),
                omitted_tokens: ledger.trimmed_tokens().high,
                verdict: Verdict::Trimmed,
                rule: trimmed(omitted.len(), ledger.input.request.history.trim.low_water),
                ..self.blank("history", "rounds", Tokens::ZERO)
            });
        }
        let mut apart: Vec<&Kept> = history.task.iter().chain(&history.compactions).collect();
        apart.retain(|kept| kept.round >= cut.round);
        apart.sort_by_key(|kept| kept.entry);
        for kept in &apart {
            self.kept(ledger, kept);
        }
        let last = history.last.max(cut.round);
        let treated = ledger.treated_until().clamp(cut.round, last);
        let changed = ledger.rewritten(&(cut.round..treated));
        let (rule, saved) = summary(&changed, ledger);
        let cleared = changed.iter().any(|one| one.how != Rewriting::Previewed);
        let verdict = if cleared {
            Verdict::Cleared
        } else {
            Verdict::Shortened
        };
        self.rounds(history, cut.round..treated, &apart, (verdict, &rule, saved));
        self.rounds(history, treated..last, &apart, (Verdict::Kept, "fits", 0));
        let newest = last..history.rounds.len();
        let (rule, saved) = summary(&ledger.rewritten(&newest), ledger);
        let rule = if rule.is_empty() {
            "last round".to_owned()
        } else {
            format!("last round; {rule}")
        };
        self.rounds(history, newest, &apart, (Verdict::Required, &rule, saved));
    }

    /// A message that has a row of its own, or a pinned round.
    fn kept(&mut self, ledger: &Ledger<'_>, kept: &Kept) {
        let name = ledger.front.history.role_of(kept);
        let mut covers = ledger.front.covered.iter();
        let covered = covers.find(|covered| kept.sources == [covered.cover.compaction]);
        let (label, rule) = match (name, covered) {
            (_, Some(Covered { cover, .. })) => {
                let span = format!("items {}–{}", cover.first, cover.last);
                (span, "stands for what it covers")
            }
            ("task", None) => ("user".to_owned(), "first user message"),
            ("opening", None) => (String::new(), "what the history opens with"),
            ("pinned", None) => (String::new(), "pinned"),
            _ => ("user".to_owned(), "user message being answered"),
        };
        self.push(Segment {
            label,
            items: kept.sources.len(),
            omitted_tokens: covered.map_or(0, |covered| covered.tokens.high),
            verdict: Verdict::Required,
            rule: rule.to_owned(),
            ..self.blank("history", name, kept.text())
        });
    }

    /// A stretch of rounds, without what has a row of its own.
    fn rounds(
        &mut self,
        history: &History,
        rounds: Range<usize>,
        apart: &[&Kept],
        (verdict, rule, omitted_tokens): (Verdict, &str, u64),
    ) {
        let pieces = history.pieces_of(&rounds);
        let mut text: Tokens = history
            .pieces
            .get(pieces.clone())
            .unwrap_or_default()
            .iter()
            .map(|piece| piece.text)
            .sum();
        let mut items = history.sources(&rounds).count();
        for kept in apart.iter().filter(|kept| rounds.contains(&kept.round)) {
            text = text - kept.text();
            items = items.saturating_sub(kept.sources.len());
        }
        if items == 0 && text == Tokens::ZERO {
            return;
        }
        self.push(Segment {
            label: label(history, &rounds),
            items,
            omitted_tokens,
            verdict,
            rule: rule.to_owned(),
            ..self.blank("history", "rounds", text)
        });
    }
}

/// What was rewritten of some rounds in a few words, and how many tokens that saved.
fn summary(changed: &[&Rewritten], ledger: &Ledger<'_>) -> (String, u64) {
    let of = |how: Rewriting| changed.iter().filter(|one| one.how == how).count();
    let saved = |one: &&Rewritten| one.tokens_before.saturating_sub(one.tokens_after);
    let mut words = Vec::new();
    let cleared = of(Rewriting::Cleared);
    if cleared > 0 {
        let policy = ledger.input.request.history.clear.policy();
        let newest = policy.map_or(0, |policy| policy.keep_recent);
        let outputs = counted(cleared as u64, "output");
        words.push(format!("{outputs} cleared (newest {newest} kept)"));
    }
    let repeated = of(Rewriting::Repeated);
    if repeated > 0 {
        words.push(format!(
            "{} cleared",
            counted(repeated as u64, "repeated output")
        ));
    }
    let previewed = of(Rewriting::Previewed);
    if previewed > 0 {
        words.push(format!("{} previewed", counted(previewed as u64, "output")));
    }
    (words.join("; "), changed.iter().map(saved).sum())
}

fn trimmed(items: usize, low_water: u8) -> String {
    let oldest = format!("oldest {} trimmed", counted(items as u64, "item"));
    match low_water {
        100.. => oldest,
        mark => format!("{oldest}, down to {mark} % of the room"),
    }
}

fn label(history: &History, rounds: &Range<usize>) -> String {
    let calls = history.calls(history.pieces_of(rounds));
    let (first, last) = (rounds.start + 1, rounds.end);
    let name = if last == first {
        format!("round {first}")
    } else {
        format!("rounds {first}–{last}")
    };
    if calls == 0 {
        name
    } else {
        format!("{name}, {}", counted(calls as u64, "call"))
    }
}
