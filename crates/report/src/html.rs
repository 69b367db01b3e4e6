//! The report as one page: a picture of the window to scale, and the table below it.
//!
//! The page is a single file without scripts, links or anything else to load, and its own policy forbids them.
//! It follows the reader's choice of dark or light. Every part of the picture has a number that stands in the
//! table too, so it can be read without colour. Text of sources, labels and models is never markup.
//!
//! Not here: what is said beside the segments; see `notes`.

use std::fmt::Write as _;

use contexture_prompt_cache::CacheReport;

use crate::document::{Omitted, Report, Rewritten, Segment, SegmentVerdict};
use crate::note::{certainty_text, report_notes, segment_name, verdict_text};
use crate::number_format::{group_thousands, is_unsafe};

const STYLE: &str = include_str!("html.css");

/// Draws the report as an HTML page with this title.
#[must_use]
pub fn render_html(report: &Report, title: &str) -> String {
    let page = HtmlPage {
        report,
        scale: bar_scale_tokens(report),
    };
    let target = &report.target;
    // Titles, labels and links quote what users and models wrote: no script and no request to elsewhere may come of it, so
    // everything is escaped, and the policy forbids the rest.
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p>{model} · {format} · {tokens} tokens {certainty}</p>\n\
         {window}{cache}{cut}{table}{notes}{items}</main>\n</body>\n</html>\n",
        title = escape_html(title),
        model = escape_html(&target.model),
        format = escape_html(&target.format),
        tokens = group_thousands(report.totals.tokens),
        certainty = escape_html(&certainty_text(report)),
        window = page.window_bar(),
        cache = page.cache_bar(&report.cache),
        cut = page.omitted_bar(),
        table = page.segment_table(),
        notes = page.note_list(),
        items = page.item_table(),
    )
}

/// How many tokens the whole width of a bar stands for, the same for all bars of a page.
fn bar_scale_tokens(report: &Report) -> u64 {
    let segments = report.segments.iter();
    let cut = segments.fold(0_u64, |sum, one| sum.saturating_add(one.omitted_tokens));
    let window = report.target.window.max(report.target.limit);
    // One scale for all bars, so that their lengths can be compared; at least 1, since widths are divided by it.
    window
        .max(report.totals.tokens)
        .max(report.cache.predicted.total_tokens())
        .max(cut)
        .max(1)
}

struct HtmlPage<'a> {
    report: &'a Report,
    scale: u64,
}

/// A part of a bar.
struct BarPart<'a> {
    class: &'a str,
    label: String,
    title: String,
    tokens: u64,
}

impl HtmlPage<'_> {
    /// The segments that are sent, what is free, and what is kept for the answer.
    fn window_bar(&self) -> String {
        let report = self.report;
        let sent = self.numbered_segments().filter(|(_, one)| one.tokens > 0);
        let mut bits: Vec<BarPart<'_>> = sent
            .map(|(number, one)| BarPart {
                class: one.band,
                label: number.to_string(),
                title: hover_title(number, one),
                tokens: one.tokens,
            })
            .collect();
        let free = report.target.limit.saturating_sub(report.totals.tokens);
        bits.push(plain_part("free", "free", free));
        bits.push(plain_part("reserve", "reserve", report.target.reserve));
        self.render_bar("Window", &bits)
    }

    /// What is expected to be read from the provider's cache, written to it, and neither.
    fn cache_bar(&self, cache: &CacheReport) -> String {
        let used = &cache.predicted;
        // Without a cache the bar would only repeat the window.
        if used.total_tokens() == 0 || cache.retention_seconds == 0 {
            return String::new();
        }
        let bits = [
            plain_part("read", "read from cache", used.read),
            plain_part("write", "written to cache", used.write),
            plain_part("write", "written for longer", used.write_long),
            plain_part("fresh", "not cached", used.fresh),
        ];
        self.render_bar("Cache, predicted", &bits)
    }

    /// What was cut, cleared, covered, or shown in part.
    fn omitted_bar(&self) -> String {
        let cut = self
            .numbered_segments()
            .filter(|(_, one)| one.omitted_tokens > 0);
        let bits: Vec<BarPart<'_>> = cut
            .map(|(number, one)| BarPart {
                class: css_class(one),
                label: number.to_string(),
                title: hover_title(number, one),
                tokens: one.omitted_tokens,
            })
            .collect();
        self.render_bar("Not shown", &bits)
    }

    fn numbered_segments(&self) -> impl Iterator<Item = (usize, &Segment)> {
        (1..).zip(&self.report.segments)
    }

    fn render_bar(&self, heading: &str, bits: &[BarPart<'_>]) -> String {
        let total = bits
            .iter()
            .fold(0_u64, |sum, bit| sum.saturating_add(bit.tokens));
        if total == 0 {
            return String::new();
        }
        let mut out = format!(
            "<section>\n<h2>{} <small>{} tokens</small></h2>\n<div class=\"bar\">",
            escape_html(heading),
            group_thousands(total)
        );
        for bit in bits.iter().filter(|bit| bit.tokens > 0) {
            let _ = write!(
                out,
                "<span class=\"{}\" style=\"width:{}%\" title=\"{}\">{}</span>",
                escape_html(bit.class),
                self.width_percent(bit.tokens),
                escape_html(&bit.title),
                escape_html(&bit.label)
            );
        }
        out.push_str("</div>\n<p class=\"key\">");
        for bit in bits.iter().filter(|bit| bit.tokens > 0) {
            let _ = write!(
                out,
                "<span><i class=\"{}\"></i> {}</span> ",
                escape_html(bit.class),
                escape_html(&bit.title)
            );
        }
        out.push_str("</p>\n</section>\n");
        out
    }

    /// Per cent of the bar, with three decimals.
    fn width_percent(&self, tokens: u64) -> String {
        // Whole numbers: the same report gives the same page on every machine.
        let thousandths = u128::from(tokens) * 100_000 / u128::from(self.scale);
        format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
    }

    fn segment_table(&self) -> String {
        let mut out =
            "<section>\n<h2>Segments</h2>\n<table>\n<tr><th>№</th><th>band</th><th>segment</th>\
            <th class=\"n\">tokens</th><th class=\"n\">share</th><th>verdict</th></tr>\n"
                .to_owned();
        for (number, one) in self.numbered_segments() {
            let _ = writeln!(
                out,
                "<tr><td>{number}</td><td><i class=\"{0}\"></i> {0}</td><td>{1}</td><td class=\"n\">{2}</td>\
                 <td class=\"n\">{3:.1} %</td><td>{4}</td></tr>",
                escape_html(one.band),
                escape_html(&segment_name(one)),
                group_thousands(one.tokens),
                one.share,
                escape_html(&verdict_text(one))
            );
        }
        let _ = writeln!(
            out,
            "<tr class=\"sum\"><td></td><td>total</td><td></td><td class=\"n\">{}</td><td class=\"n\">{:.1} %</td>\
             <td>{}</td></tr>\n</table>\n</section>",
            group_thousands(self.report.totals.tokens),
            self.report.totals.share,
            escape_html(&certainty_text(self.report))
        );
        out
    }

    fn note_list(&self) -> String {
        let mut out = "<section>\n<dl>\n".to_owned();
        for (name, text) in report_notes(self.report) {
            let _ = writeln!(
                out,
                "<dt>{}</dt><dd>{}</dd>",
                escape_html(name),
                escape_html(&text)
            );
        }
        for mark in &self.report.cache.markers {
            let _ = writeln!(
                out,
                "<dt>cache mark</dt><dd>behind {}</dd>",
                escape_html(&mark.ends)
            );
        }
        out.push_str("</dl>\n</section>\n");
        out
    }

    /// Each item that is shown otherwise than it is, and those that are not shown.
    fn item_table(&self) -> String {
        let report = self.report;
        if report.rewritten.is_empty() && report.omitted.is_empty() {
            return String::new();
        }
        let mut out = "<details>\n<summary>Items that are not shown as they are</summary>\n<table>\n\
            <tr><th>items</th><th>what became of them</th><th class=\"n\">tokens</th><th>link</th></tr>\n"
            .to_owned();
        for one in &report.omitted {
            let _ = writeln!(
                out,
                "<tr><td>{}</td><td>{}</td><td class=\"n\"></td><td></td></tr>",
                span_label(one),
                escape_html(one.reason.as_str())
            );
        }
        for one in &report.rewritten {
            out.push_str(&rewritten_row(one));
        }
        out.push_str("</table>\n</details>\n");
        out
    }
}

fn rewritten_row(one: &Rewritten) -> String {
    format!(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{} → {}</td><td><code>{}</code></td></tr>\n",
        one.index,
        escape_html(one.rewriting.as_str()),
        group_thousands(one.tokens_before),
        group_thousands(one.tokens_after),
        escape_html(&one.link)
    )
}

fn span_label(omitted: &Omitted) -> String {
    if omitted.first == omitted.last {
        omitted.first.to_string()
    } else {
        format!("{}–{}", omitted.first, omitted.last)
    }
}

fn plain_part<'a>(class: &'a str, label: &str, tokens: u64) -> BarPart<'a> {
    BarPart {
        class,
        label: label.to_owned(),
        title: format!("{label}: {}", group_thousands(tokens)),
        tokens,
    }
}

/// What is said of a part under the pointer, and in the key below its bar.
fn hover_title(number: usize, segment: &Segment) -> String {
    let name = match segment_name(segment) {
        name if name.is_empty() => segment.band.to_owned(),
        name => name,
    };
    format!(
        "{number} {name}: {} · {}",
        group_thousands(segment.tokens),
        verdict_text(segment)
    )
}

fn css_class(segment: &Segment) -> &'static str {
    match segment.verdict {
        // What a compaction stands for can still be read, which a cut cannot: it has a colour of its own.
        SegmentVerdict::Required if segment.source == "compaction" => "covered",
        SegmentVerdict::Cleared | SegmentVerdict::Shortened | SegmentVerdict::Required => "cleared",
        _ => "cut",
    }
}

/// Escapes a text, so that it is text wherever it stands in a page: between tags or in quotes, on one line.
#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Line breaks too: a title or label is one line.
            c if c.is_whitespace() => out.push(' '),
            c if is_unsafe(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
