//! The report as one page: a picture of the window to scale, the table below it, and the texts behind both.
//!
//! The page is a single file without scripts, links or anything else to load, and its own policy forbids them.
//! It follows the reader's choice of dark or light. Every part of the picture has a number that stands in the
//! table too, so it can be read without colour. Text of sources, labels, models and items is never markup.
//!
//! Not here: how the picture is drawn (`picture`); what is said beside the segments (`note`).

use std::fmt::Write as _;

use contexture_prompt_cache::CacheReport;

use crate::band::CallBand;
use crate::document::{Omitted, Report, Rewritten, Segment};
use crate::escape::escape_html;
use crate::note::{certainty_text, report_notes, segment_name, verdict_text};
use crate::number_format::group_thousands;
use crate::picture::{BAND_STYLE, break_text, part_kind, render_band, render_left_out};

const STYLE: &str = include_str!("html.css");

/// Characters of one text that a page shows.
const TEXT_CHARACTERS: usize = 2_000;
/// Items whose texts a page shows: those that are not as they are first, then the newest.
const TEXT_ITEMS: usize = 300;

/// The text of an item of the path, for a page.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct PageItem {
    /// Its index on the path, from 0.
    pub index: usize,
    /// `message`, `function_call`, ….
    pub kind: String,
    /// What became of it, if it is not sent as it is: `cleared`, `trimmed`, ….
    pub verdict: Option<String>,
    /// Its text as it is stored.
    pub text: String,
    /// Its text as it is sent; `None`: it is not sent.
    pub sent: Option<String>,
}

/// Draws the report as an HTML page with this title.
#[must_use]
pub fn render_html(report: &Report, title: &str) -> String {
    render_html_with(report, title, &[])
}

/// As [`render_html`], with the texts of the items of the path: what each says, and what is sent in its place. At most 300
/// items are shown, with 2,000 characters of each; the page says of how many more it knows.
#[must_use]
pub fn render_html_with(report: &Report, title: &str, items: &[PageItem]) -> String {
    let page = HtmlPage {
        report,
        band: CallBand::from_report(report),
    };
    let target = &report.target;
    // Titles, labels and links quote what users and models wrote: no script and no request to elsewhere may come of it, so
    // everything is escaped, and the policy forbids the rest.
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{BAND_STYLE}{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p>{model} · {format} · {tokens} tokens {certainty}</p>\n\
         {window}{cut}{table}{notes}{verdicts}{texts}</main>\n</body>\n</html>\n",
        title = escape_html(title),
        model = escape_html(&target.model),
        format = escape_html(&target.format),
        tokens = group_thousands(report.totals.tokens),
        certainty = escape_html(&certainty_text(report)),
        window = page.window_section(),
        cut = page.left_out_section(),
        table = page.segment_table(),
        notes = page.note_list(),
        verdicts = page.item_table(),
        texts = text_section(items),
    )
}

struct HtmlPage<'a> {
    report: &'a Report,
    band: CallBand,
}

impl HtmlPage<'_> {
    /// The segments that are sent, what is free, and what is expected of the provider's cache.
    fn window_section(&self) -> String {
        let target = &self.report.target;
        let mut out = format!(
            "<section>\n<h2>Window <small>{} of {} tokens; {} more are kept free for the answer</small></h2>\n",
            group_thousands(self.report.totals.tokens),
            group_thousands(target.limit),
            group_thousands(target.reserve)
        );
        out.push_str(&render_band(&self.band, "window", |number| {
            self.title_of(number)
        }));
        out.push_str(&self.key(|segment| segment.tokens));
        if let Some(said) = cache_text(&self.report.cache) {
            let _ = writeln!(out, "<p class=\"said\">{}</p>", escape_html(&said));
        }
        if let Some(said) = break_text(&self.band) {
            let _ = writeln!(out, "<p class=\"said\"><b>|</b> {}</p>", escape_html(&said));
        }
        out.push_str("</section>\n");
        out
    }

    /// What was cut, cleared, covered, or shown in part.
    fn left_out_section(&self) -> String {
        let picture = render_left_out(&self.band, |number| self.title_of(number));
        if picture.is_empty() {
            return String::new();
        }
        format!(
            "<section>\n<h2>Left out <small>{} tokens, to a scale of their own</small></h2>\n{picture}{}</section>\n",
            group_thousands(self.band.omitted_tokens()),
            self.key(|segment| segment.omitted_tokens)
        )
    }

    /// The parts of a picture with their names.
    fn key(&self, tokens_of: impl Fn(&Segment) -> u64) -> String {
        let mut out = "<ul class=\"key\">".to_owned();
        let parts = self.numbered_segments().zip(&self.band.parts);
        for ((number, one), part) in parts.filter(|((_, one), _)| tokens_of(one) > 0) {
            let _ = write!(
                out,
                "<li><i class=\"{}\"></i> {}</li>",
                part_kind(part),
                escape_html(&part_title(number, one, tokens_of(one)))
            );
        }
        out.push_str("</ul>\n");
        out
    }

    fn title_of(&self, number: usize) -> String {
        let segment = number.checked_sub(1);
        let segment = segment.and_then(|at| self.report.segments.get(at));
        segment.map_or_else(String::new, |one| {
            part_title(number, one, one.tokens.max(one.omitted_tokens))
        })
    }

    fn numbered_segments(&self) -> impl Iterator<Item = (usize, &Segment)> {
        (1..).zip(&self.report.segments)
    }

    fn segment_table(&self) -> String {
        let mut out =
            "<section>\n<h2>Segments</h2>\n<div class=\"wide\"><table>\n<tr><th>№</th><th>band</th><th>segment</th>\
            <th class=\"n\">tokens</th><th class=\"n\">share</th><th>verdict</th></tr>\n"
                .to_owned();
        for ((number, one), part) in self.numbered_segments().zip(&self.band.parts) {
            let _ = writeln!(
                out,
                "<tr><td>{number}</td><td><i class=\"{5}\"></i> {0}</td><td>{1}</td><td class=\"n\">{2}</td>\
                 <td class=\"n\">{3:.1} %</td><td>{4}</td></tr>",
                escape_html(one.band),
                escape_html(&segment_name(one)),
                group_thousands(one.tokens),
                one.share,
                escape_html(&verdict_text(one)),
                part_kind(part)
            );
        }
        let _ = writeln!(
            out,
            "<tr class=\"sum\"><td></td><td>total</td><td></td><td class=\"n\">{}</td><td class=\"n\">{:.1} %</td>\
             <td>{}</td></tr>\n</table></div>\n</section>",
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
        let mut out = "<details>\n<summary>Items that are not shown as they are</summary>\n<div class=\"wide\"><table>\n\
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
        out.push_str("</table></div>\n</details>\n");
        out
    }
}

fn rewritten_row(one: &Rewritten) -> String {
    let link = one.link.as_deref();
    let link = link.map(|link| format!("<code>{}</code>", escape_html(link)));
    format!(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{} → {}</td><td>{}</td></tr>\n",
        one.index,
        escape_html(one.rewriting.as_str()),
        group_thousands(one.tokens_before),
        group_thousands(one.tokens_after),
        link.unwrap_or_default()
    )
}

fn span_label(omitted: &Omitted) -> String {
    if omitted.first == omitted.last {
        omitted.first.to_string()
    } else {
        format!("{}–{}", omitted.first, omitted.last)
    }
}

/// What is said of a part under the pointer, and in the key below its picture.
fn part_title(number: usize, segment: &Segment, tokens: u64) -> String {
    let name = match segment_name(segment) {
        name if name.is_empty() => segment.band.to_owned(),
        name => name,
    };
    format!(
        "{number} {name}: {} · {}",
        group_thousands(tokens),
        verdict_text(segment)
    )
}

/// What is expected of the provider's cache; `None` where it keeps nothing.
fn cache_text(cache: &CacheReport) -> Option<String> {
    let used = &cache.predicted;
    // A provider that keeps nothing would only be said to read everything anew.
    if used.total_tokens() == 0 || cache.retention_seconds == 0 {
        return None;
    }
    let parts = [
        (used.read, "tokens read (hatched)"),
        (used.write, "written (the bar below the parts)"),
        (used.write_long, "written for longer (the same bar)"),
        (used.fresh, "not cached"),
    ];
    let said: Vec<String> = parts
        .iter()
        .filter(|(tokens, _)| *tokens > 0)
        .map(|(tokens, what)| format!("{} {what}", group_thousands(*tokens)))
        .collect();
    Some(format!(
        "Expected of the provider's cache, by the likely count: {}",
        said.join(", ")
    ))
}

/// The texts of items: what was changed or left out first, then the newest.
fn text_section(items: &[PageItem]) -> String {
    if items.is_empty() {
        return String::new();
    }
    // What is not as it was is what a reader came for; of the rest the newest says most.
    let is_changed = |one: &PageItem| one.sent.as_deref() != Some(one.text.as_str());
    let changed = items.iter().filter(|one| is_changed(one));
    let newest = items.iter().rev().filter(|one| !is_changed(one));
    let mut shown: Vec<&PageItem> = changed.chain(newest).take(TEXT_ITEMS).collect();
    shown.sort_by_key(|one| one.index);
    let mut out =
        "<section>\n<h2>Texts <small>as they are, and as they are sent</small></h2>\n".to_owned();
    for one in &shown {
        out.push_str(&item_text(one, is_changed(one)));
    }
    let more = items.len() - shown.len();
    if more > 0 {
        let _ = writeln!(
            out,
            "<p class=\"said\">{} more items are sent as they are</p>",
            group_thousands(more as u64)
        );
    }
    out.push_str("</section>\n");
    out
}

fn item_text(one: &PageItem, is_changed: bool) -> String {
    let verdict = one
        .verdict
        .as_deref()
        .unwrap_or(match (&one.sent, is_changed) {
            (None, _) => "not sent",
            (_, true) => "changed",
            (_, false) => "as it is",
        });
    let mut out = format!(
        "<details><summary>{} {} · {}</summary>\n<div class=\"pair\">",
        one.index,
        escape_html(&one.kind),
        escape_html(verdict)
    );
    let heading = if is_changed { "<h3>as it is</h3>" } else { "" };
    let _ = write!(
        out,
        "<div>{heading}<pre>{}</pre></div>",
        escape_text(&one.text)
    );
    if is_changed {
        let sent = match &one.sent {
            Some(sent) => format!("<pre>{}</pre>", escape_text(sent)),
            None => "<p>nothing</p>".to_owned(),
        };
        let _ = write!(out, "<div><h3>as it is sent</h3>{sent}</div>");
    }
    out.push_str("</div>\n</details>\n");
    out
}

/// The beginning of a text with its lines, and how much more there is.
fn escape_text(text: &str) -> String {
    let mut out = String::new();
    let mut characters = text.chars();
    for c in characters.by_ref().take(TEXT_CHARACTERS) {
        match c {
            // Lines are kept here alone: elsewhere a text is one line.
            '\n' => out.push('\n'),
            c => out.push_str(&escape_html(c.encode_utf8(&mut [0; 4]))),
        }
    }
    match characters.count() {
        0 => out,
        more => format!("{out}\n… {} more characters", group_thousands(more as u64)),
    }
}
