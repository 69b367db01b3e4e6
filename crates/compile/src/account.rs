//! The report, drawn up from what the passes decided.

use std::ops::Range;

use crate::contribution::Band;
use crate::count::Tokens;
use crate::frame::Frame;
use crate::history::{History, Single};
use crate::ledger::Ledger;
use crate::passes::place::{Placed, Slot, units};
use crate::payload::Payload;
use crate::plan::EpochReport;
use crate::refusal::RequiredSegment;
use crate::report::{PayloadReport, Report, Segment, TargetReport, Totals, Verdict};

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
    let apart = history
        .singles()
        .filter(|single| single.round < history.last);
    for single in apart {
        let name = history.role_of(single);
        row(name, single.piece.text, single.piece.framing);
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

fn segments_exact(segments: &[Segment]) -> bool {
    segments.iter().all(|segment| segment.low == segment.tokens)
}

/// The report.
pub(crate) fn report(ledger: &Ledger<'_>, epoch: EpochReport, payload: &Payload) -> Report {
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
            .cut
            .pieces(&ledger.front.history)
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
            framing: framing.high,
            share: share(tokens, ledger.limit),
            items: ledger.input.path.len(),
            messages: payload.messages(),
        },
        segments,
        omitted: ledger.omitted(),
        repairs: ledger
            .front
            .repairs
            .iter()
            .chain(ledger.placed.iter().flat_map(|placed| &placed.repairs))
            .cloned()
            .collect(),
        losses: ledger.losses(),
        epoch,
        payload: PayloadReport {
            bytes: payload.len(),
            fingerprint: payload.fingerprint().to_string(),
        },
    }
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
                label: counted(count, "tool"),
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
        let task = history.task.as_ref();
        for single in &cut.singles {
            self.single(single, history.role_of(single));
        }
        if cut.round > 0 {
            let (omitted, rounds) = (ledger.trimmed(), 0..cut.round);
            self.push(Segment {
                label: label(history, &rounds),
                omitted_tokens: ledger.trimmed_tokens().high,
                verdict: Verdict::Trimmed,
                rule: format!(
                    "{} older than what fits, low water {} %",
                    counted(omitted.len(), "item"),
                    ledger.input.request.trim.low_water
                ),
                ..self.blank("history", "rounds", Tokens::ZERO)
            });
        }
        let apart = task.filter(|task| task.round >= cut.round);
        if let Some(task) = apart {
            self.single(task, "task");
        }
        let middle = cut.round..history.last.max(cut.round);
        self.rounds(history, middle, apart, Verdict::Kept, "fits");
        let last = history.last.max(cut.round)..history.rounds.len();
        self.rounds(history, last, apart, Verdict::Required, "last round");
    }

    fn single(&mut self, single: &Single, name: &str) {
        self.push(Segment {
            label: if name == "opening" {
                String::new()
            } else {
                "user".to_owned()
            },
            items: usize::from(single.source.is_some()),
            verdict: Verdict::Required,
            rule: match name {
                "task" => "first user message".to_owned(),
                "opening" => "what the history opens with".to_owned(),
                _ => "user message being answered".to_owned(),
            },
            ..self.blank("history", name, single.piece.text)
        });
    }

    /// A stretch of rounds, without the task, which has a row of its own.
    fn rounds(
        &mut self,
        history: &History,
        rounds: Range<usize>,
        task: Option<&Single>,
        verdict: Verdict,
        rule: &str,
    ) {
        let task = task.filter(|task| rounds.contains(&task.round));
        let pieces = history.pieces_of(&rounds);
        let mut text: Tokens = history
            .pieces
            .get(pieces.clone())
            .unwrap_or_default()
            .iter()
            .map(|piece| piece.text)
            .sum();
        let mut items = history.sources(&rounds).count();
        if let Some(task) = task {
            text = text - task.piece.text;
            items = items.saturating_sub(usize::from(task.source.is_some()));
        }
        if items == 0 && text == Tokens::ZERO {
            return;
        }
        self.push(Segment {
            label: label(history, &rounds),
            items,
            verdict,
            rule: rule.to_owned(),
            ..self.blank("history", "rounds", text)
        });
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
        format!("{name}, {}", counted(calls, "call"))
    }
}

fn counted(count: usize, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{count} {what}{plural}")
}
