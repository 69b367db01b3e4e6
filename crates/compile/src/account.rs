//! The report, drawn up from what the passes decided.

use std::collections::BTreeSet;
use std::ops::Range;

use contexture_wire::{Envelope, Loss};

use crate::contribution::{Band, Content};
use crate::count::Tokens;
use crate::cut::Cut;
use crate::frame::Frame;
use crate::front::Front;
use crate::history::{History, Single};
use crate::passes::lower::Piece;
use crate::passes::place::{Placed, Slot, units};
use crate::payload::Payload;
use crate::plan::{Advice, EpochReport};
use crate::refusal::RequiredSegment;
use crate::report::{
    OmitReason, Omitted, PayloadReport, Report, Segment, TargetReport, Totals, Verdict,
};
use crate::request::CompileInput;

/// What the passes decided.
pub(crate) struct Ledger<'a> {
    pub(crate) input: &'a CompileInput<'a>,
    pub(crate) limit: u64,
    pub(crate) front: &'a Front,
    pub(crate) slots: &'a [Slot<'a>],
    pub(crate) placed: &'a [Placed],
    /// What each contribution would take whole.
    pub(crate) natural: &'a [u64],
    pub(crate) cut: &'a Cut,
    pub(crate) frame: &'a Frame,
    pub(crate) envelope: &'a Envelope,
}

impl Ledger<'_> {
    /// The texts that must stand in the payload unchanged.
    pub(crate) fn pinned(&self) -> Vec<String> {
        let pinned = self.slots.iter().filter(|slot| slot.contribution.pinned);
        pinned
            .flat_map(|slot| match &slot.contribution.content {
                Content::Text(text) => vec![text.clone()],
                Content::Texts(texts) => texts.clone(),
                Content::Fragments {
                    fragments,
                    renderer,
                } => renderer.render(fragments).into_iter().collect(),
                Content::Instructions(_) | Content::Items(_) => Vec::new(),
            })
            // White space alone is not said to every provider.
            .filter(|text| !text.trim().is_empty())
            .collect()
    }
}

/// What must be sent, for a refusal.
pub(crate) fn required(
    history: &History,
    slots: &[Slot<'_>],
    whole: &[Placed],
    frame: &Frame,
) -> Vec<RequiredSegment> {
    let mut segments = Vec::new();
    let mut framing = frame.framing;
    let mut row = |name: &str, text: Tokens, own: u64| {
        framing += own;
        segments.push(RequiredSegment {
            name: name.to_owned(),
            tokens: text.high,
        });
    };
    if frame.tools != Tokens::ZERO {
        row("tools", frame.tools, 0);
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
        tokens: framing,
    });
    segments
}

/// What the host may want to do next.
pub(crate) fn advice(ledger: &Ledger<'_>) -> Option<Advice> {
    let omitted = trimmed(ledger);
    Some(Advice::Compact {
        first: *omitted.first()?,
        last: *omitted.last()?,
        tokens: trimmed_tokens(ledger).high,
    })
}

/// The report.
pub(crate) fn report(
    ledger: &Ledger<'_>,
    epoch: EpochReport,
    payload: &Payload,
    pieces: &[&Piece],
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
            .sum::<u64>()
        + ledger
            .cut
            .pieces(&ledger.front.history)
            .iter()
            .map(|piece| piece.framing)
            .sum::<u64>();
    row.push(Segment {
        rule: "what the format adds".to_owned(),
        ..row.blank("framing", "framing", Tokens::exact(framing))
    });
    let tokens: u64 = segments.iter().map(|segment| segment.tokens).sum();
    let low: u64 = segments.iter().map(|segment| segment.low).sum();
    Report {
        version: 1,
        target: target(ledger),
        totals: Totals {
            tokens,
            low,
            exact: low == tokens,
            framing,
            share: share(tokens, ledger.limit),
            items: ledger.input.path.len(),
            messages: pieces
                .iter()
                .map(|piece| piece.lowered.chunk.facts.elements)
                .sum(),
        },
        segments,
        omitted: omitted(ledger),
        repairs: ledger
            .front
            .repairs
            .iter()
            .chain(ledger.placed.iter().flat_map(|placed| &placed.repairs))
            .cloned()
            .collect(),
        losses: losses(ledger),
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
            let (omitted, rounds) = (trimmed(ledger), 0..cut.round);
            self.push(Segment {
                label: label(history, &rounds),
                omitted_tokens: trimmed_tokens(ledger).high,
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
        let pieces = pieces_of(history, &rounds);
        let mut text: Tokens = history
            .pieces
            .get(pieces.clone())
            .unwrap_or_default()
            .iter()
            .map(|piece| piece.text)
            .sum();
        let mut items = sources(history, &rounds).count();
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

fn pieces_of(history: &History, rounds: &Range<usize>) -> Range<usize> {
    let own = history.rounds.get(rounds.clone()).unwrap_or_default();
    own.first().map_or(0, |round| round.pieces.start)
        ..own.last().map_or(0, |round| round.pieces.end)
}

/// The path indexes of some rounds' items.
fn sources<'h>(history: &'h History, rounds: &Range<usize>) -> impl Iterator<Item = usize> + 'h {
    let own = history.rounds.get(rounds.clone()).unwrap_or_default();
    let range = own.first().map_or(0, |round| round.entries.start)
        ..own.last().map_or(0, |round| round.entries.end);
    let entries = history.entries.get(range).unwrap_or_default();
    entries.iter().filter_map(|entry| entry.source)
}

fn label(history: &History, rounds: &Range<usize>) -> String {
    let calls = history.calls(pieces_of(history, rounds));
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

/// The path indexes that trimming left out, ascending.
fn trimmed(ledger: &Ledger<'_>) -> Vec<usize> {
    let history = &ledger.front.history;
    let kept: BTreeSet<usize> = ledger
        .cut
        .singles
        .iter()
        .filter_map(|single| single.source)
        .collect();
    let mut out: Vec<usize> = sources(history, &(0..ledger.cut.round))
        .filter(|source| !kept.contains(source))
        .collect();
    out.sort_unstable();
    out
}

fn trimmed_tokens(ledger: &Ledger<'_>) -> Tokens {
    let history = &ledger.front.history;
    let pieces = history
        .pieces
        .get(pieces_of(history, &(0..ledger.cut.round)));
    let all: Tokens = pieces
        .unwrap_or_default()
        .iter()
        .map(|piece| piece.text)
        .sum();
    all - ledger
        .cut
        .singles
        .iter()
        .map(|single| single.piece.text)
        .sum()
}

fn omitted(ledger: &Ledger<'_>) -> Vec<Omitted> {
    let trimmed = trimmed(ledger)
        .into_iter()
        .map(|at| (at, OmitReason::Trimmed));
    let dropped = ledger
        .front
        .dropped
        .iter()
        .map(|at| (*at, OmitReason::Repaired));
    let mut all: Vec<(usize, OmitReason)> = trimmed
        .chain(dropped)
        .chain(ledger.front.hidden.iter().copied())
        .collect();
    all.sort_unstable_by_key(|(at, _)| *at);
    let mut spans: Vec<Omitted> = Vec::new();
    for (at, why) in all {
        match spans.last_mut() {
            Some(span) if span.why == why && span.last + 1 == at => {
                span.last = at;
                span.items += 1;
            }
            _ => spans.push(Omitted {
                first: at,
                last: at,
                items: 1,
                why,
            }),
        }
    }
    spans
}

/// All losses, with paths that mean something outside this crate.
fn losses(ledger: &Ledger<'_>) -> Vec<Loss> {
    let mut out = ledger.envelope.losses.clone();
    for (slot, placed) in ledger.slots.iter().zip(ledger.placed) {
        for piece in &placed.pieces {
            out.extend(piece.lowered.chunk.losses.iter().map(|loss| {
                let (index, rest) = split(&loss.path);
                let source = &slot.contribution.source;
                let at = piece.entries.start + index;
                rename(loss, format!("contributions[{source}][{at}]{rest}"))
            }));
        }
    }
    let history = &ledger.front.history;
    for piece in ledger.cut.pieces(history) {
        out.extend(piece.lowered.chunk.losses.iter().map(|loss| {
            let (index, rest) = split(&loss.path);
            let entry = history.entries.get(piece.entries.start + index);
            match entry.and_then(|entry| entry.source) {
                Some(source) => rename(loss, format!("items[{source}]{rest}")),
                None => rename(loss, format!("repaired{rest}")),
            }
        }));
    }
    out
}

fn split(path: &str) -> (usize, &str) {
    let cut = path.strip_prefix('[').and_then(|rest| rest.split_once(']'));
    match cut.map(|(index, rest)| (index.parse(), rest)) {
        Some((Ok(index), rest)) => (index, rest),
        _ => (0, path),
    }
}

fn rename(loss: &Loss, path: String) -> Loss {
    Loss {
        path,
        ..loss.clone()
    }
}
