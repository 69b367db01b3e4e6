//! Cuts the excerpt of a text that shows why it was found.
//!
//! Not here: highlighting the matches; the snippet is plain text with ranges.

use std::ops::Range;

use crate::contract::Snippet;

/// Approximate length of a snippet in bytes, and how much of it precedes the first match.
const LENGTH: usize = 200;
const BEFORE: usize = 50;
/// Largest distance that a cut moves to fall between words.
const SLACK: usize = 20;

/// Returns the excerpt with the most matches, the first such.
#[must_use]
pub(crate) fn build_snippet(text: &str, places: &[Range<usize>]) -> Snippet {
    let first = densest_match(places);
    let from = snippet_start(text, first.start.saturating_sub(BEFORE), first.start);
    let to = snippet_end(
        text,
        from.saturating_add(LENGTH).min(text.len()),
        first.start,
    );
    let mut out = String::new();
    if from > 0 {
        out.push('…');
    }
    let shift = out.len();
    let shown = text.get(from..to).unwrap_or_default();
    out.push_str(shown);
    if to < text.len() {
        out.push('…');
    }
    let inside = |place: &&Range<usize>| place.start < to && place.end > from;
    let matches = places.iter().filter(inside).map(|place| {
        let (start, end) = (place.start.max(from), place.end.min(to));
        start - from + shift..end - from + shift
    });
    Snippet {
        matches: matches.collect(),
        text: out,
    }
}

/// Returns the match with the most others after it within the length of a snippet.
fn densest_match(places: &[Range<usize>]) -> Range<usize> {
    let mut best = (0, 0..0);
    let mut last = 0;
    for (first, place) in places.iter().enumerate() {
        while places
            .get(last)
            .is_some_and(|place_of_last| place_of_last.end <= place.start + LENGTH - BEFORE)
        {
            last += 1;
        }
        let count = last.saturating_sub(first).max(1);
        if count > best.0 {
            best = (count, place.clone());
        }
    }
    best.1
}

/// Returns the start of a snippet, at or after `from` but not after `limit`: after white space if
/// there is some nearby.
fn snippet_start(text: &str, from: usize, limit: usize) -> usize {
    if from == 0 {
        return 0;
    }
    let near = text.floor_char_boundary(from.saturating_add(SLACK).min(limit));
    let from = text.floor_char_boundary(from).min(near);
    let gap = text.get(from..near).unwrap_or_default();
    match gap.char_indices().find(|(_, c)| c.is_whitespace()) {
        Some((at, c)) => from + at + c.len_utf8(),
        None => from,
    }
}

/// Returns the end of a snippet, at or before `to` but after `after`: before white space if there
/// is some nearby.
fn snippet_end(text: &str, to: usize, after: usize) -> usize {
    if to >= text.len() {
        return text.len();
    }
    let to = text.floor_char_boundary(to);
    let near = text.floor_char_boundary(to.saturating_sub(SLACK).max(after));
    let gap = text.get(near..to).unwrap_or_default();
    match gap.rfind(char::is_whitespace) {
        Some(at) if near + at > after => near + at,
        _ => to,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{Query, match_all};

    fn shown(query: &str, text: &str) -> String {
        let found = match_all(&Query::parse(query), text).unwrap();
        let snippet = build_snippet(text, &found.places);
        let mut out = String::new();
        let mut at = 0;
        for place in &snippet.matches {
            out.push_str(&snippet.text[at..place.start]);
            out.push('[');
            out.push_str(&snippet.text[place.clone()]);
            out.push(']');
            at = place.end;
        }
        out + &snippet.text[at..]
    }

    #[test]
    fn short_texts_are_shown_whole() {
        assert_eq!(shown("b", "a b\nc B"), "a [b]\nc [B]");
        assert_eq!(
            shown("script", "<script>x</script>"),
            "<[script]>x</[script]>"
        );
    }

    #[test]
    fn long_texts_are_cut_between_words() {
        let text = format!(
            "{}needle {}",
            "hay straw ".repeat(100),
            "grass ".repeat(100)
        );
        let shown = shown("needle", &text);
        assert!(
            shown.starts_with("…hay straw") || shown.starts_with("…straw hay"),
            "{shown}"
        );
        assert!(
            shown.contains(" [needle] grass") && shown.ends_with("grass…"),
            "{shown}"
        );
        assert!(shown.len() <= LENGTH + 8, "{shown}");
    }

    #[test]
    fn the_densest_stretch_is_shown() {
        let text = format!("a {} a b a b", "x ".repeat(500));
        assert!(shown("a b", &text).ends_with("[a] [b] [a] [b]"));
    }

    #[test]
    fn cuts_fall_between_characters() {
        for filler in ["東", "é", "👍"] {
            let text = format!("{}needle{}", filler.repeat(300), filler.repeat(300));
            let text = text.replace("needle", " needle ");
            assert!(shown("needle", &text).contains("[needle]"));
        }
        let long = "x".repeat(1000);
        assert!(shown("x*", &long).starts_with("[xxx"));
    }
}
