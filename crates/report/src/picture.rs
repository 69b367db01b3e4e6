//! The window of a call as a picture: one band, its parts in the order of the payload and to scale.
//!
//! A picture is SVG without scripts, styles or links: colours come by class from the page's style sheet, so that a strict
//! content security policy may stand. Widths are per cent of what the picture has, so text is not stretched with it. Every
//! number in it stands in the page's table too.
//!
//! It is drawn of the band that is stored with a call, so a past call looks as it did.

use std::fmt::Write as _;

use crate::band::{BandPart, CallBand};
use crate::escape::escape_html;
use crate::number_format::group_thousands;

/// The style sheet of the pictures: a colour for each kind of part, as a filled rectangle and as the background of an `<i>`.
pub const BAND_STYLE: &str = include_str!("band.css");

/// Parts narrower than this have no number in them: it would run into the next.
const NUMBERED_FROM: u64 = 2_000;

/// What a part is, as colours tell it apart.
///
/// ```
/// use contexture_report::{BandPart, part_kind};
///
/// let task = BandPart { band: Some("history"), source: Some("task"), ..BandPart::default() };
/// assert_eq!(part_kind(&task), "task");
/// ```
#[must_use]
pub fn part_kind(part: &BandPart) -> &'static str {
    match (part.band, part.source) {
        (_, Some("compaction")) => "compaction",
        (_, Some("memory" | "retrieval" | "observations" | "scratchpad")) => "memory",
        (_, Some("skills")) => "skills",
        (Some("history"), Some("task" | "opening" | "question" | "pinned")) => "task",
        (Some("history"), Some("thinking")) => "thinking",
        (Some("history"), Some("rounds")) => "rounds",
        (Some(band), _) => band,
        (None, _) => "several",
    }
}

/// Draws the band of a call. `id` names the picture in its page, where each needs another; `name_of` says in a few words what
/// the part of a number is, counted from 1: it is shown under the pointer and read aloud.
///
/// The whole width is the space of the request, or all its tokens, if those are more. Hatching is what was expected to be
/// read from the provider's cache; the line is where the prefix of the call before did not hold any more.
#[must_use]
pub fn render_band(band: &CallBand, id: &str, name_of: impl Fn(usize) -> String) -> String {
    let scale = Scale::of(band.limit.max(band.tokens()));
    let mut out = format!(
        "<svg class=\"window\" width=\"100%\" height=\"78\" role=\"img\" aria-label=\"{}\">\n\
         <defs><pattern id=\"{id}-read\" width=\"7\" height=\"7\" patternUnits=\"userSpaceOnUse\" \
         patternTransform=\"rotate(45)\"><line class=\"hatch\" x1=\"0\" y1=\"0\" x2=\"0\" y2=\"7\"/></pattern></defs>\n\
         <rect class=\"free\" x=\"0\" y=\"18\" width=\"100%\" height=\"40\"/>\n",
        escape_html(&spoken_summary(band)),
        id = escape_html(id),
    );
    let mut before = 0;
    for (number, part) in (1..).zip(&band.parts) {
        push_part(
            &mut out,
            &scale,
            (before, part.tokens),
            number,
            part,
            &name_of,
        );
        before = part.tokens.saturating_add(before);
    }
    if band.cache_read > 0 {
        let _ = writeln!(
            out,
            "<rect class=\"cached\" x=\"0\" y=\"18\" width=\"{}%\" height=\"40\" fill=\"url(#{}-read)\"/>",
            scale.per_cent(band.cache_read),
            escape_html(id)
        );
    }
    if band.cache_written > 0 {
        let _ = writeln!(
            out,
            "<rect class=\"written\" x=\"{}%\" y=\"60\" width=\"{}%\" height=\"5\"><title>{}</title></rect>",
            scale.per_cent(band.cache_read),
            scale.per_cent(band.cache_written),
            escape_html(&format!(
                "{} tokens expected to be written to the cache",
                group_thousands(band.cache_written)
            ))
        );
    }
    if band.prefix_break.is_some() {
        let at = scale.per_cent(band.cache_read);
        let _ = writeln!(
            out,
            "<line class=\"break\" x1=\"{at}%\" y1=\"8\" x2=\"{at}%\" y2=\"70\"/>"
        );
    }
    out.push_str("</svg>\n");
    out
}

/// Draws what the request left out, to a scale of its own; nothing if it left out nothing.
#[must_use]
pub fn render_left_out(band: &CallBand, name_of: impl Fn(usize) -> String) -> String {
    let all = band.omitted_tokens();
    // An empty picture would look as if something had been left out.
    if all == 0 {
        return String::new();
    }
    // Of its own: what was left out of a long session is many times the window.
    let scale = Scale::of(all);
    let mut out = format!(
        "<svg class=\"window\" width=\"100%\" height=\"64\" role=\"img\" aria-label=\"{} tokens left out\">\n",
        group_thousands(all)
    );
    let mut before = 0;
    let gone = (1..)
        .zip(&band.parts)
        .filter(|(_, part)| part.omitted_tokens > 0);
    for (number, part) in gone {
        push_part(
            &mut out,
            &scale,
            (before, part.omitted_tokens),
            number,
            part,
            &name_of,
        );
        before += part.omitted_tokens;
    }
    out.push_str("</svg>\n");
    out
}

/// Says of a broken prefix why it broke and what that cost; `None` if it held.
#[must_use]
pub fn break_text(band: &CallBand) -> Option<String> {
    let broken = band.prefix_break?;
    let mut text = format!(
        "the cached prefix ends here: {}",
        broken.reason.as_str().replace('_', " ")
    );
    if broken.lost_tokens > 0 {
        let _ = write!(
            text,
            "; {} tokens were read again",
            group_thousands(broken.lost_tokens)
        );
    }
    if let Some(pico) = broken.pico_dollars.filter(|pico| *pico > 0) {
        // Six decimals: a single break costs parts of a cent.
        let micro = pico.div_ceil(1_000_000);
        let _ = write!(text, " for ${}.{:06}", micro / 1_000_000, micro % 1_000_000);
    }
    Some(text)
}

/// What the picture shows, for those who hear it.
fn spoken_summary(band: &CallBand) -> String {
    let mut text = format!(
        "{} of {} tokens in {} parts",
        group_thousands(band.tokens()),
        group_thousands(band.limit),
        band.parts.iter().filter(|part| part.tokens > 0).count()
    );
    if band.cache_read > 0 {
        let _ = write!(
            text,
            "; {} expected from the cache",
            group_thousands(band.cache_read)
        );
    }
    if let Some(broken) = break_text(band) {
        let _ = write!(text, "; {broken}");
    }
    text
}

/// Draws a part from `before` on; nothing of one that has no tokens.
fn push_part(
    out: &mut String,
    scale: &Scale,
    (before, tokens): (u64, u64),
    number: usize,
    part: &BandPart,
    name_of: impl Fn(usize) -> String,
) {
    if tokens == 0 {
        return;
    }
    let x = scale.per_cent(before);
    let _ = write!(
        out,
        "<g class=\"part {}\"><title>{}</title><rect x=\"{x}%\" y=\"18\" width=\"{}%\" height=\"40\"/>",
        part_kind(part),
        escape_html(&name_of(number)),
        scale.per_cent(tokens)
    );
    // The name under the pointer has the number of those that are too narrow.
    if scale.thousandths(tokens) >= NUMBERED_FROM {
        let _ = write!(out, "<text x=\"{x}%\" dx=\"5\" y=\"43\">{number}</text>");
    }
    out.push_str("</g>\n");
}

/// How many tokens the whole width stands for.
struct Scale(u64);

impl Scale {
    /// At least one token, since widths are divided by it.
    fn of(tokens: u64) -> Self {
        Self(tokens.max(1))
    }

    /// Thousandths of a per cent. Whole numbers: the same band gives the same picture on every machine.
    fn thousandths(&self, tokens: u64) -> u64 {
        let part = u128::from(tokens) * 100_000 / u128::from(self.0);
        u64::try_from(part).unwrap_or(u64::MAX)
    }

    fn per_cent(&self, tokens: u64) -> String {
        let thousandths = self.thousandths(tokens);
        format!("{}.{:03}", thousandths / 1_000, thousandths % 1_000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::band::PrefixBreak;
    use crate::document::EpochReason;

    fn band() -> CallBand {
        let part = |band, source, tokens| BandPart {
            band: Some(band),
            source: Some(source),
            tokens,
            ..BandPart::default()
        };
        CallBand {
            limit: 1_000,
            parts: vec![
                part("tools", "tools", 100),
                part("history", "compaction", 200),
                BandPart {
                    omitted_tokens: 5_000,
                    ..part("history", "rounds", 0)
                },
                part("history", "rounds", 500),
                part("framing", "framing", 1),
            ],
            cache_read: 100,
            cache_written: 650,
            ..CallBand::default()
        }
    }

    /// The start and the width of each rectangle of a class, in thousandths of a per cent.
    fn places(svg: &str) -> Vec<(u64, u64)> {
        let number = |text: &str| -> u64 {
            let text = text.split('%').next().unwrap_or_default();
            text.replace('.', "").parse().unwrap_or_default()
        };
        let parts = svg
            .lines()
            .filter(|line| line.starts_with("<g class=\"part"));
        parts
            .map(|line| {
                let rect = line.split("<rect x=\"").nth(1).unwrap_or_default();
                let width = rect.split("width=\"").nth(1).unwrap_or_default();
                (number(rect), number(width))
            })
            .collect()
    }

    #[test]
    fn parts_stand_one_behind_the_other_to_scale() {
        let svg = render_band(&band(), "w", |number| number.to_string());
        assert_eq!(
            places(&svg),
            [
                (0, 10_000),
                (10_000, 20_000),
                (30_000, 50_000),
                (80_000, 100)
            ]
        );
        // What has no tokens is not drawn, and what is too narrow has no number.
        assert!(
            svg.contains(">4</text>") && !svg.contains(">3</text>") && !svg.contains(">5</text>")
        );
        assert!(svg.contains("class=\"part compaction\"") && svg.contains("class=\"part rounds\""));
        assert!(!svg.contains("class=\"break\""));
        assert!(svg.contains(
            "aria-label=\"801 of 1,000 tokens in 4 parts; 100 expected from the cache\""
        ));
    }

    #[test]
    fn more_than_there_is_room_for_stays_in_the_picture() {
        let mut band = band();
        band.limit = 400;
        let svg = render_band(&band, "w", |number| number.to_string());
        let (start, width) = places(&svg).last().copied().unwrap_or_default();
        assert!(
            (99_900..=100_000).contains(&(start + width)),
            "{start} {width}"
        );
    }

    #[test]
    fn a_break_says_why_and_what_it_cost() {
        let mut band = band();
        assert_eq!(break_text(&band), None);
        band.prefix_break = Some(PrefixBreak {
            reason: EpochReason::HistoryCompacted,
            lost_tokens: 12_345,
            pico_dollars: Some(4_500_000_000),
        });
        let text = break_text(&band).unwrap_or_default();
        let expected = "the cached prefix ends here: history compacted; 12,345 tokens were read again for $0.004500";
        assert_eq!(text, expected);
        let svg = render_band(&band, "w", |number| number.to_string());
        assert!(svg.contains("<line class=\"break\" x1=\"10.000%\""));
    }

    #[test]
    fn what_is_left_out_has_a_picture_of_its_own() {
        let svg = render_left_out(&band(), |number| number.to_string());
        assert_eq!(places(&svg), [(0, 100_000)]);
        assert!(svg.contains("5,000 tokens left out"));
        assert_eq!(render_left_out(&CallBand::default(), |_| String::new()), "");
    }

    /// Names come from users and models.
    #[test]
    fn names_are_no_markup() {
        let svg = render_band(&band(), "w", |_| "<script>\"'&".to_owned());
        assert!(!svg.contains("<script") && svg.contains("&lt;script&gt;&quot;&#39;&amp;"));
    }
}
