//! The window of a call: its picture, what is said of it, and the same as a table.

use contexture_report::{
    BandPart, CallBand, EpochReason, PrefixBreak, break_text, part_kind, render_band,
    render_left_out,
};
use maud::{Markup, PreEscaped, html};
use serde_json::{Value, json};

use crate::document::View;
use crate::figures::{number, per_cent, words};

/// The picture of a call, and the words of its parts.
pub(crate) struct Window<'a> {
    band: CallBand,
    /// The parts as the API tells them; empty for a call that was sent as it came.
    parts: Vec<View<'a>>,
    basis: Basis,
}

/// Source of the picture's data.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Basis {
    /// The band that was stored with the call.
    Stored,
    /// The tokens that the provider reported: nothing was decided about a request that was sent as it came.
    Reported,
}

impl<'a> Window<'a> {
    /// Reads the window of a call; `None` if nothing is known of what it was made of.
    pub(crate) fn of_call(call: View<'a>) -> Option<Self> {
        match call.at("band").present() {
            Some(band) => Some(Self::of_band(band)),
            None => Self::of_reported_tokens(call.at("tokens").present()?),
        }
    }

    fn of_band(document: View<'a>) -> Self {
        let parts: Vec<View<'a>> = document.list("parts").collect();
        let band = CallBand {
            limit: document.count("limit"),
            path_items: document.count("path_items"),
            parts: parts.iter().map(|part| read_part(*part)).collect(),
            is_joined: document.is("joined"),
            cache_read: document.count("cache_read"),
            cache_written: document.count("cache_written"),
            prefix_break: document.at("prefix_break").present().and_then(read_break),
        };
        Self {
            band,
            parts,
            basis: Basis::Stored,
        }
    }

    fn of_reported_tokens(tokens: View<'a>) -> Option<Self> {
        let all = tokens.count("input");
        // Of no kind: who sent it knows what it was made of, and nobody here does.
        let part = BandPart {
            tokens: all,
            ..BandPart::default()
        };
        (all > 0).then(|| Self {
            band: CallBand {
                parts: vec![part],
                // Some hosts report more from the cache than they report in all.
                cache_read: tokens.count("cache_read").min(all),
                cache_written: tokens.count("cache_written").min(all),
                ..CallBand::default()
            },
            parts: Vec::new(),
            basis: Basis::Reported,
        })
    }

    /// What a part of a number is, counted from 1.
    fn part_name(&self, at: usize) -> String {
        let part = at.checked_sub(1).and_then(|at| self.band.parts.get(at));
        let Some(part) = part else {
            return String::new();
        };
        let tokens =
            contexture_report::number_format::group_thousands(part.tokens.max(part.omitted_tokens));
        match self.parts.get(at - 1) {
            Some(said) => format!(
                "{at} {}: {tokens} tokens, {}",
                part_words(*said),
                said.text("verdict")
            ),
            None => format!("sent as it came: {tokens} tokens"),
        }
    }

    /// Draws the picture with its key and what is said of it.
    pub(crate) fn picture(&self, id: &str) -> Markup {
        let picture = render_band(&self.band, id, |at| self.part_name(at));
        html! {
            div.picture { (PreEscaped(picture)) }
            ul.key {
                @for kind in self.kinds() { li { i class=(kind) {} " " (words(kind)) } }
                @if self.band.cache_read > 0 { li { i.hatched {} " read from the cache" } }
            }
        }
    }

    /// Draws what was left out, to a scale of its own; nothing if nothing was.
    pub(crate) fn left_out(&self) -> Markup {
        let picture = render_left_out(&self.band, |at| self.part_name(at));
        html! {
            // There for the module where this call left nothing out: another one may have.
            div data-left-out hidden[picture.is_empty()] {
                h3 { "Left out " small { span data-left-out-tokens { (number(self.band.omitted_tokens())) } " tokens, to a scale of their own" } }
                div.picture { (PreEscaped(picture)) }
            }
        }
    }

    /// The sentence of figures over the picture.
    pub(crate) fn summary(&self) -> Markup {
        let band = &self.band;
        html! {
            p.summary data-summary {
                @match self.basis {
                    Basis::Stored => {
                        strong { (number(band.tokens())) } " of " (number(band.limit)) " tokens"
                        @if let Some(share) = per_cent(band.tokens(), band.limit) { " · " (share) " % full" }
                        @if let Some(share) = per_cent(band.cache_read, band.tokens()) { " · " (share) " % expected from the cache" }
                        @if band.omitted_tokens() > 0 { " · " (number(band.omitted_tokens())) " left out" }
                    }
                    Basis::Reported => {
                        strong { (number(band.tokens())) } " tokens, as the provider reported them. "
                        "The request was sent as it came, so nothing was decided about its parts."
                    }
                }
            }
            // Always there, so that the module has a place for what it says of other calls.
            p.broken data-break hidden[break_text(band).is_none()] { (break_text(band).unwrap_or_default()) }
        }
    }

    /// The table of the parts, for those who do not see the picture and those who want the figures.
    pub(crate) fn table(&self, part_link: impl Fn(usize) -> Option<String>) -> Markup {
        html! {
            @if !self.parts.is_empty() {
                div.wide tabindex="0" role="region" aria-label="Parts of the request" { table.parts {
                    thead { tr {
                        th scope="col" { "№" } th scope="col" { "part" }
                        th.n scope="col" { "tokens" } th.n scope="col" { "left out" }
                        th.n scope="col" { "items" } th scope="col" { "verdict" } th scope="col" { "rule" }
                    } }
                    tbody { @for (at, (said, part)) in (1..).zip(self.parts.iter().zip(&self.band.parts)) {
                        tr id={ "part-" (at) } {
                            td.n { (at) }
                            th scope="row" {
                                i class=(part_kind(part)) {} " "
                                @match part_link(at) {
                                    Some(link) => a href=(link) { (part_words(*said)) },
                                    None => (part_words(*said)),
                                }
                            }
                            td.n { (number(part.tokens)) }
                            td.n { @if part.omitted_tokens > 0 { (number(part.omitted_tokens)) } }
                            td.n { (items_of(part)) }
                            td { (said.text("verdict")) }
                            td { (words(said.text("rule"))) }
                        }
                    } }
                    tfoot { tr {
                        td {} th scope="row" { "total" } td.n { (number(self.band.tokens())) }
                        td.n { (number(self.band.omitted_tokens())) } td {} td {} td {}
                    } }
                } }
            }
        }
    }

    /// The kinds of parts in the picture, in their order, each once.
    fn kinds(&self) -> Vec<&'static str> {
        let mut kinds = Vec::new();
        // At most a dozen kinds, so that looking through them is no work.
        for part in self.band.parts.iter().filter(|part| part.tokens > 0) {
            let kind = part_kind(part);
            if !kinds.contains(&kind) {
                kinds.push(kind);
            }
        }
        kinds
    }

    /// The picture for the module, which moves rectangles.
    pub(crate) fn to_json(&self) -> Value {
        let parts = self.band.parts.iter();
        let parts: Vec<Value> = parts
            .map(|part| json!([part_kind(part), part.tokens, part.omitted_tokens]))
            .collect();
        json!({
            "limit": self.band.limit,
            "tokens": self.band.tokens(),
            "read": self.band.cache_read,
            "written": self.band.cache_written,
            "omitted": self.band.omitted_tokens(),
            "break": break_text(&self.band),
            "stored": self.basis == Basis::Stored,
            "parts": parts,
        })
    }

    /// Returns a part by its number, from 1; `None` for a request of which no parts are known.
    pub(crate) fn part(&self, number: usize) -> Option<&BandPart> {
        self.told(number)?;
        self.band.parts.get(number - 1)
    }

    /// What the API tells of the part of a number.
    fn told(&self, number: usize) -> Option<View<'a>> {
        self.parts.get(number.checked_sub(1)?).copied()
    }

    /// What the part of a number is, in a few words.
    pub(crate) fn part_words(&self, number: usize) -> String {
        self.told(number).map(part_words).unwrap_or_default()
    }

    /// What became of the part of a number, and by which rule; `None` if it is not known.
    pub(crate) fn rule_words(&self, number: usize) -> Option<String> {
        let said = self.told(number)?;
        let verdict = words(said.text_of("verdict")?);
        Some(match said.text_of("rule") {
            Some(rule) => format!("{verdict}: {}", words(rule)),
            None => verdict,
        })
    }
}

fn read_part(part: View<'_>) -> BandPart {
    BandPart {
        items: part.count("items"),
        span: part.number("first").zip(part.number("last")),
        tokens: part.count("tokens"),
        omitted_tokens: part.count("omitted_tokens"),
        ..BandPart::from_words(part.text_of("band"), part.text_of("source"))
    }
}

fn read_break(broken: View<'_>) -> Option<PrefixBreak> {
    Some(PrefixBreak {
        // A reason of a later version: without words for it nothing is claimed.
        reason: EpochReason::from_word(broken.text("reason"))?,
        lost_tokens: broken.count("lost_tokens"),
        pico_dollars: broken.number("pico_dollars"),
    })
}

/// What a part is, in a few words.
fn part_words(part: View<'_>) -> String {
    match (part.text_of("band"), part.text_of("source")) {
        (Some(band), Some(source)) if band != source => {
            format!("{} · {}", words(band), words(source))
        }
        (Some(word), _) | (None, Some(word)) => words(word),
        (None, None) => "several".to_owned(),
    }
}

fn items_of(part: &BandPart) -> Markup {
    html! {
        @if let Some((first, last)) = part.span { span title={ "items " (first) " to " (last) } { (number(part.items)) } }
        @else if part.items > 0 { (number(part.items)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call() -> Value {
        json!({"band": {
            "limit": 1000, "tokens": 700, "cache_read": 100, "cache_written": 0, "path_items": 9, "joined": false,
            "prefix_break": {"reason": "rules_changed", "lost_tokens": 12345, "pico_dollars": 4_500_000_000_u64},
            "parts": [
                {"band": "tools", "source": "tools", "verdict": "kept", "rule": "offered_tools", "items": 0,
                    "first": null, "last": null, "tokens": 100, "omitted_tokens": 0},
                {"band": "history", "source": "rounds", "verdict": "trimmed", "rule": "oldest_trimmed", "items": 7,
                    "first": 1, "last": 7, "tokens": 600, "omitted_tokens": 5000},
            ],
        }})
    }

    #[test]
    fn the_table_says_what_the_picture_shows() {
        let call = call();
        let window = Window::of_call(View::new(&call)).unwrap();
        let picture = window.picture("w").into_string();
        assert!(picture.contains("class=\"part rounds\"") && picture.contains("class=\"break\""));
        let table = window.table(|at| Some(format!("?part={at}"))).into_string();
        assert!(
            table.contains("<data value=\"5000\">5,000</data>") && table.contains("oldest trimmed")
        );
        assert!(table.contains("href=\"?part=2\"") && table.contains("history · rounds"));
        let summary = window.summary().into_string();
        assert!(
            summary.contains("70 % full")
                && summary.contains("rules changed")
                && summary.contains("$0.004500")
        );
        assert_eq!(window.part(2).and_then(|part| part.span), Some((1, 7)));
        assert!(window.part(0).is_none() && window.part(3).is_none());
        assert_eq!(
            window.rule_words(2).as_deref(),
            Some("trimmed: oldest trimmed")
        );
        assert_eq!(
            window.to_json()["parts"],
            json!([["tools", 100, 0], ["rounds", 600, 5000]])
        );
    }

    #[test]
    fn what_was_sent_as_it_came_is_drawn_of_what_was_reported() {
        let call =
            json!({"tokens": {"input": 800, "cache_read": 200, "cache_written": 0, "output": 5}});
        let window = Window::of_call(View::new(&call)).unwrap();
        assert!(window.summary().into_string().contains("sent as it came"));
        assert!(window.table(|_| None).into_string().is_empty());
        assert!(Window::of_call(View::new(&json!({"tokens": null}))).is_none());
    }
}
