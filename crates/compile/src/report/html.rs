//! The report as one page: a picture of the window to scale, and the table below it.
//!
//! The page is a single file without scripts, links or anything else to load, and its own policy forbids them.
//! It follows the reader's choice of dark or light. Every part of the picture has a number that stands in the
//! table too, so it can be read without colour. Text of sources, labels and models is never markup.
//!
//! Not here: what is said beside the segments; see `notes`.

use std::fmt::Write as _;

use crate::cache::report::CacheReport;
use crate::report::document::{Omitted, Report, Rewritten, Segment, Verdict};
use crate::report::figures::{grouped, is_unsafe};
use crate::report::notes::{certainty, name, notes, verdict};

const STYLE: &str = include_str!("html.css");

/// Draws the report as an HTML page with this title.
///
/// ```
/// # use contexture_catalogue::Catalogue;
/// # use contexture_compile::{Compiler, Target, render_html};
/// # use contexture_ir::{Item, Message, Role};
/// # let items = [Item::from(Message::text(Role::User, "Hi"))];
/// # let compiled = Compiler::new(Catalogue::builtin()).compile(&items, &Target::openai_chat("gpt-4o"))?;
/// let page = render_html(&compiled.report, "support-42");
/// assert!(page.starts_with("<!doctype html>"));
/// # Ok::<(), contexture_compile::CompileError>(())
/// ```
#[must_use]
pub fn render_html(report: &Report, title: &str) -> String {
    let page = Page {
        report,
        scale: scale(report),
    };
    let target = &report.target;
    format!(
        "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{title}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n\
         <h1>{title}</h1>\n<p>{model} · {format} · {tokens} tokens {certainty}</p>\n\
         {window}{cache}{cut}{table}{notes}{items}</main>\n</body>\n</html>\n",
        title = escaped(title),
        model = escaped(&target.model),
        format = escaped(target.format),
        tokens = grouped(report.totals.tokens),
        certainty = escaped(&certainty(report)),
        window = page.window(),
        cache = page.cache(&report.cache),
        cut = page.cut(),
        table = page.table(),
        notes = page.notes(),
        items = page.items(),
    )
}

/// How many tokens the whole width of a bar stands for, the same for all bars of a page.
fn scale(report: &Report) -> u64 {
    let segments = report.segments.iter();
    let cut = segments.fold(0_u64, |sum, one| sum.saturating_add(one.omitted_tokens));
    let window = report.target.window.max(report.target.limit);
    window
        .max(report.totals.tokens)
        .max(report.cache.predicted.total())
        .max(cut)
        .max(1)
}

struct Page<'a> {
    report: &'a Report,
    scale: u64,
}

/// A part of a bar.
struct Bit<'a> {
    class: &'a str,
    label: String,
    title: String,
    tokens: u64,
}

impl Page<'_> {
    /// The segments that are sent, what is free, and what is kept for the answer.
    fn window(&self) -> String {
        let report = self.report;
        let sent = self.numbered().filter(|(_, one)| one.tokens > 0);
        let mut bits: Vec<Bit<'_>> = sent
            .map(|(number, one)| Bit {
                class: one.band,
                label: number.to_string(),
                title: hover(number, one),
                tokens: one.tokens,
            })
            .collect();
        let free = report.target.limit.saturating_sub(report.totals.tokens);
        bits.push(plain("free", "free", free));
        bits.push(plain("reserve", "reserve", report.target.reserve));
        self.bar("Window", &bits)
    }

    /// What is expected to be read from the provider's cache, written to it, and neither.
    fn cache(&self, cache: &CacheReport) -> String {
        let used = &cache.predicted;
        if used.total() == 0 || cache.kept_seconds == 0 {
            return String::new();
        }
        let bits = [
            plain("read", "read from cache", used.read),
            plain("write", "written to cache", used.write),
            plain("write", "written for longer", used.write_long),
            plain("fresh", "not cached", used.fresh),
        ];
        self.bar("Cache, predicted", &bits)
    }

    /// What was cut, cleared, covered, or shown in part.
    fn cut(&self) -> String {
        let cut = self.numbered().filter(|(_, one)| one.omitted_tokens > 0);
        let bits: Vec<Bit<'_>> = cut
            .map(|(number, one)| Bit {
                class: class(one),
                label: number.to_string(),
                title: hover(number, one),
                tokens: one.omitted_tokens,
            })
            .collect();
        self.bar("Not shown", &bits)
    }

    fn numbered(&self) -> impl Iterator<Item = (usize, &Segment)> {
        (1..).zip(&self.report.segments)
    }

    fn bar(&self, heading: &str, bits: &[Bit<'_>]) -> String {
        let total = bits
            .iter()
            .fold(0_u64, |sum, bit| sum.saturating_add(bit.tokens));
        if total == 0 {
            return String::new();
        }
        let mut out = format!(
            "<section>\n<h2>{} <small>{} tokens</small></h2>\n<div class=\"bar\">",
            escaped(heading),
            grouped(total)
        );
        for bit in bits.iter().filter(|bit| bit.tokens > 0) {
            let _ = write!(
                out,
                "<span class=\"{}\" style=\"width:{}%\" title=\"{}\">{}</span>",
                escaped(bit.class),
                self.width(bit.tokens),
                escaped(&bit.title),
                escaped(&bit.label)
            );
        }
        out.push_str("</div>\n<p class=\"key\">");
        for bit in bits.iter().filter(|bit| bit.tokens > 0) {
            let _ = write!(
                out,
                "<span><i class=\"{}\"></i> {}</span> ",
                escaped(bit.class),
                escaped(&bit.title)
            );
        }
        out.push_str("</p>\n</section>\n");
        out
    }

    /// Per cent of the bar, with three decimals.
    fn width(&self, tokens: u64) -> String {
        let thousandths = u128::from(tokens) * 100_000 / u128::from(self.scale);
        format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
    }

    fn table(&self) -> String {
        let mut out =
            "<section>\n<h2>Segments</h2>\n<table>\n<tr><th>№</th><th>band</th><th>segment</th>\
            <th class=\"n\">tokens</th><th class=\"n\">share</th><th>verdict</th></tr>\n"
                .to_owned();
        for (number, one) in self.numbered() {
            let _ = writeln!(
                out,
                "<tr><td>{number}</td><td><i class=\"{0}\"></i> {0}</td><td>{1}</td><td class=\"n\">{2}</td>\
                 <td class=\"n\">{3:.1} %</td><td>{4}</td></tr>",
                escaped(one.band),
                escaped(&name(one)),
                grouped(one.tokens),
                one.share,
                escaped(&verdict(one))
            );
        }
        let _ = writeln!(
            out,
            "<tr class=\"sum\"><td></td><td>total</td><td></td><td class=\"n\">{}</td><td class=\"n\">{:.1} %</td>\
             <td>{}</td></tr>\n</table>\n</section>",
            grouped(self.report.totals.tokens),
            self.report.totals.share,
            escaped(&certainty(self.report))
        );
        out
    }

    fn notes(&self) -> String {
        let mut out = "<section>\n<dl>\n".to_owned();
        for (name, text) in notes(self.report) {
            let _ = writeln!(out, "<dt>{}</dt><dd>{}</dd>", escaped(name), escaped(&text));
        }
        for mark in &self.report.cache.marks {
            let _ = writeln!(
                out,
                "<dt>cache mark</dt><dd>behind {}</dd>",
                escaped(&mark.ends)
            );
        }
        out.push_str("</dl>\n</section>\n");
        out
    }

    /// Each item that is shown otherwise than it is, and those that are not shown.
    fn items(&self) -> String {
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
                span(one),
                escaped(one.why.as_str())
            );
        }
        for one in &report.rewritten {
            out.push_str(&rewritten(one));
        }
        out.push_str("</table>\n</details>\n");
        out
    }
}

fn rewritten(one: &Rewritten) -> String {
    format!(
        "<tr><td>{}</td><td>{}</td><td class=\"n\">{} → {}</td><td><code>{}</code></td></tr>\n",
        one.index,
        escaped(one.how.as_str()),
        grouped(one.tokens_before),
        grouped(one.tokens_after),
        escaped(&one.link)
    )
}

fn span(omitted: &Omitted) -> String {
    if omitted.first == omitted.last {
        omitted.first.to_string()
    } else {
        format!("{}–{}", omitted.first, omitted.last)
    }
}

fn plain<'a>(class: &'a str, label: &str, tokens: u64) -> Bit<'a> {
    Bit {
        class,
        label: label.to_owned(),
        title: format!("{label}: {}", grouped(tokens)),
        tokens,
    }
}

/// What is said of a part under the pointer, and in the key below its bar.
fn hover(number: usize, segment: &Segment) -> String {
    let name = match name(segment) {
        name if name.is_empty() => segment.band.to_owned(),
        name => name,
    };
    format!(
        "{number} {name}: {} · {}",
        grouped(segment.tokens),
        verdict(segment)
    )
}

fn class(segment: &Segment) -> &'static str {
    match segment.verdict {
        Verdict::Required if segment.source == "compaction" => "covered",
        Verdict::Cleared | Verdict::Shortened | Verdict::Required => "cleared",
        _ => "cut",
    }
}

/// Text that is text wherever it stands: between tags or in quotes.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            c if c.is_whitespace() => out.push(' '),
            c if is_unsafe(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
