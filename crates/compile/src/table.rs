//! The report as a table for people: plain text, no colours.

use contexture_catalogue::CacheKind;

use crate::cache::report::CacheReport;
use crate::report::{Report, Segment, Verdict};

/// How wide the table may be, in characters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Width(pub usize);

impl Default for Width {
    fn default() -> Self {
        Self(100)
    }
}

/// The table at its default width.
impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&render_table(self, Width::default()))
    }
}

/// The report as a table; the last column is cut to the width.
#[must_use]
pub fn render_table(report: &Report, width: Width) -> String {
    let mut rows: Vec<[String; 5]> =
        vec![["band", "segment", "tokens", "share", "verdict"].map(str::to_owned)];
    let mut band = "";
    for segment in &report.segments {
        let shown = if segment.band == band {
            ""
        } else {
            segment.band
        };
        band = segment.band;
        rows.push(row(shown, segment));
    }
    rows.push(total(report));
    let mut out = align(&rows, width);
    out.push('\n');
    for (name, text) in notes(report) {
        out.push_str(&clip(&format!("  {name:<9} {text}"), width));
        out.push('\n');
    }
    out
}

fn row(band: &str, segment: &Segment) -> [String; 5] {
    let plain = segment.source == segment.band || segment.label.starts_with("round");
    let name = if plain {
        segment.label.clone()
    } else {
        join(&segment.source, "  ", &segment.label)
    };
    let word = segment.verdict.as_str();
    let verdict = match (segment.verdict, segment.omitted_tokens) {
        (Verdict::Kept, _) => word.to_owned(),
        (_, 0) => format!("{word}: {}", segment.rule),
        (_, omitted) => format!("{word}, {} tokens: {}", grouped(omitted), segment.rule),
    };
    [
        band.to_owned(),
        name,
        grouped(segment.tokens),
        format!("{:.1} %", segment.share),
        verdict,
    ]
}

fn total(report: &Report) -> [String; 5] {
    let (totals, target) = (&report.totals, &report.target);
    let bounds = format!("{} … {}", grouped(totals.low), grouped(totals.tokens));
    let certainty = if totals.exact {
        format!("{bounds}, text exact")
    } else {
        format!("estimate, {bounds}")
    };
    [
        "total".to_owned(),
        String::new(),
        grouped(totals.tokens),
        format!("{:.1} %", totals.share),
        format!("of {} · {certainty}", grouped(target.limit)),
    ]
}

fn notes(report: &Report) -> Vec<(&'static str, String)> {
    let (target, epoch) = (&report.target, &report.epoch);
    let state = if epoch.opened { "opened" } else { "continued" };
    let mut notes = vec![
        (
            "target",
            format!(
                "{} · {} · window {}, reserve {}",
                target.format,
                target.model,
                grouped(target.window),
                grouped(target.reserve)
            ),
        ),
        (
            "epoch",
            format!("{} {state}: {}", epoch.number, epoch.reason.as_str()),
        ),
    ];
    notes.extend(cache(&report.cache).map(|cache| ("cache", cache)));
    let omitted: usize = report.omitted.iter().map(|span| span.items).sum();
    if omitted > 0 {
        notes.push((
            "omitted",
            format!("{omitted} of {} items", report.totals.items),
        ));
    }
    for repair in &report.repairs {
        let at = repair
            .index
            .map_or(String::new(), |at| format!("items[{at}] "));
        notes.push(("repaired", format!("{at}{}", repair.why)));
    }
    for loss in &report.losses {
        notes.push(("lost", loss.to_string()));
    }
    notes.push((
        "payload",
        format!(
            "{} bytes, {} messages, {}",
            grouped(report.payload.bytes as u64),
            report.totals.messages,
            report.payload.fingerprint
        ),
    ));
    notes
}

/// What is expected of the cache; nothing where there is none.
fn cache(cache: &CacheReport) -> Option<String> {
    if cache.kind == CacheKind::None {
        return None;
    }
    let used = &cache.predicted;
    let mut words = Vec::new();
    match cache.marks.len() {
        0 => {}
        1 => words.push("1 mark".to_owned()),
        count => words.push(format!("{count} marks")),
    }
    let written = used.write.saturating_add(used.write_long);
    words.push(format!(
        "predicted read {}, write {}, fresh {}",
        grouped(used.read),
        grouped(written),
        grouped(used.fresh)
    ));
    if let (Some(cost), Some(uncached)) = (cache.cost, cache.cost_uncached) {
        words.push(format!(
            "{} instead of {}",
            dollars(cost),
            dollars(uncached)
        ));
    }
    if cache.first {
        words.push("first request".to_owned());
    }
    Some(words.join(" · "))
}

/// Pico-dollars as dollars with four decimals.
fn dollars(pico: u64) -> String {
    let ten_thousandths = pico.saturating_add(50_000_000) / 100_000_000;
    format!(
        "${}.{:04}",
        ten_thousandths / 10_000,
        ten_thousandths % 10_000
    )
}

fn join(a: &str, between: &str, b: &str) -> String {
    if b.is_empty() {
        a.to_owned()
    } else {
        format!("{a}{between}{b}")
    }
}

/// Thousands apart: `13,986`.
fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut out = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            out.push(',');
        }
        out.push(digit);
    }
    out
}

/// Two columns of words, two of figures, one of words.
fn align(rows: &[[String; 5]], width: Width) -> String {
    let mut widths = [0; 5];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (at, (cell, width)) in row.iter().zip(widths).enumerate() {
            line.push_str("  ");
            match at {
                2 | 3 => line.push_str(&format!("{cell:>width$}")),
                _ => line.push_str(&format!("{cell:<width$}")),
            }
        }
        out.push_str(&clip(line.trim_end(), width));
        out.push('\n');
    }
    out
}

fn clip(line: &str, width: Width) -> String {
    let line: String = line
        .chars()
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect();
    if line.chars().count() <= width.0 {
        return line;
    }
    let kept: String = line.chars().take(width.0.saturating_sub(1)).collect();
    format!("{kept}…")
}
