//! The report as a table for people: plain text, no colours.
//!
//! Not here: what is said beside the segments; see `note`.

use crate::document::{Report, Segment};
use crate::note::{certainty_text, report_notes, segment_name, verdict_text};
use crate::number_format::{group_thousands, is_unsafe};

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

/// How far the text of a note is indented.
const NOTE: usize = 12;
/// The last column goes below its row where less than this is left for it.
const NARROW: usize = 24;

/// The report as a table. What is too long for its line goes on below it, at the same indent.
#[must_use]
pub fn render_table(report: &Report, width: Width) -> String {
    let mut rows: Vec<[String; 5]> =
        vec![["band", "segment", "tokens", "share", "verdict"].map(str::to_owned)];
    let mut band = "";
    for segment in &report.segments {
        // A band is named once, at its first segment.
        let shown = if segment.band == band {
            ""
        } else {
            segment.band
        };
        band = segment.band;
        rows.push(segment_row(shown, segment));
    }
    rows.push(total_row(report));
    let mut out = align_columns(&rows, width);
    out.push('\n');
    for (name, text) in report_notes(report) {
        let room = width.0.saturating_sub(NOTE);
        let mut lines = wrap_text(&text, room).into_iter();
        let first = lines.next().unwrap_or_default();
        push_clipped_line(&mut out, &format!("  {name:<9} {first}"), width);
        for line in lines {
            push_clipped_line(&mut out, &format!("{:NOTE$}{line}", ""), width);
        }
    }
    out
}

fn segment_row(band: &str, segment: &Segment) -> [String; 5] {
    [
        band.to_owned(),
        segment_name(segment),
        group_thousands(segment.tokens),
        format!("{:.1} %", segment.share),
        verdict_text(segment),
    ]
}

fn total_row(report: &Report) -> [String; 5] {
    [
        "total".to_owned(),
        String::new(),
        group_thousands(report.totals.tokens),
        format!("{:.1} %", report.totals.share),
        certainty_text(report),
    ]
}

/// Two columns of words, two of figures, one of words that may take several lines.
fn align_columns(rows: &[[String; 5]], width: Width) -> String {
    let mut widths = [0; 4];
    for row in rows {
        for (width, cell) in widths.iter_mut().zip(row) {
            *width = (*width).max(cell.chars().count());
        }
    }
    let indent = widths.iter().map(|width| width + 2).sum::<usize>() + 2;
    // On a narrow terminal a column of a few characters would be harder to read than a line below.
    let beside = indent + NARROW <= width.0;
    let mut out = String::new();
    for [band, name, tokens, share, verdict] in rows {
        let [a, b, c, d] = widths;
        let figures = format!("  {band:<a$}  {name:<b$}  {tokens:>c$}  {share:>d$}");
        let (indent, first) = if beside {
            (indent, figures.as_str())
        } else {
            push_clipped_line(&mut out, figures.trim_end(), width);
            (4, "")
        };
        let lines = wrap_text(verdict, width.0.saturating_sub(indent));
        for (at, line) in lines.iter().enumerate() {
            let before = if at == 0 { first } else { "" };
            let pad = indent.saturating_sub(before.chars().count());
            push_clipped_line(&mut out, &format!("{before}{:pad$}{line}", ""), width);
        }
    }
    out
}

/// The text in lines of at most so many characters, broken between words; a longer word stays whole.
fn wrap_text(text: &str, room: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    let mut used = 0;
    for word in text.split(' ') {
        let length = word.chars().count();
        if used > 0 && used + 1 + length > room {
            lines.push(String::new());
            used = 0;
        }
        if let Some(line) = lines.last_mut() {
            if used > 0 {
                line.push(' ');
                used += 1;
            }
            line.push_str(word);
            used += length;
        }
    }
    lines
}

/// Adds a line, cut to the width if it cannot be broken, and with nothing that moves a cursor.
fn push_clipped_line(out: &mut String, line: &str, width: Width) {
    // Segments are named by fragments and tools, whose names may hold escape sequences.
    let line = line.replace(is_unsafe, " ");
    let line = line.trim_end();
    if line.chars().count() <= width.0 {
        out.push_str(line);
    } else {
        out.extend(line.chars().take(width.0.saturating_sub(1)));
        out.push('…');
    }
    out.push('\n');
}
