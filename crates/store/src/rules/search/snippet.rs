//! Cuts the excerpt of a text that shows why it was found.
//!
//! Not here: highlighting the matches; the snippet is plain text with ranges.

use std::collections::HashMap;
use std::ops::Range;

use crate::contract::Snippet;

/// Approximate length of a snippet in bytes, and how much of it precedes the first match.
const LENGTH: usize = 200;
const BEFORE: usize = 50;
/// Largest distance that a cut moves to fall between words.
const SLACK: usize = 20;

/// Returns the excerpt with the most different words that match, the first such.
#[must_use]
pub(crate) fn build_snippet(text: &str, places: &[Range<usize>]) -> Snippet {
    let first = densest_match(text, places);
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

/// Returns the match behind which, within the length of a snippet, the most different words stand; among equals the most
/// matches, then the first. A listing repeats one word of a question in each line, but the line that is meant has others too.
fn densest_match(text: &str, places: &[Range<usize>]) -> Range<usize> {
    let word = |place: &Range<usize>| text.get(place.clone()).unwrap_or_default().to_lowercase();
    let words: Vec<String> = places.iter().map(word).collect();
    let mut inside: HashMap<&str, usize> = HashMap::new();
    let mut best = ((0, 0), 0..0);
    let mut last = 0;
    for (first, place) in places.iter().enumerate() {
        while let (Some(next), Some(word)) = (places.get(last), words.get(last))
            && (last <= first || next.end <= place.start + LENGTH - BEFORE)
        {
            *inside.entry(word).or_default() += 1;
            last += 1;
        }
        let count = (inside.len(), last - first);
        if count > best.0 {
            best = (count, place.clone());
        }
        // The next window begins behind this match.
        if let Some(word) = words.get(first)
            && let Some(times) = inside.get_mut(word.as_str())
        {
            *times -= 1;
            if *times == 0 {
                inside.remove(word.as_str());
            }
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
    fn the_part_with_the_most_different_words_is_shown() {
        let lines = (0..100).map(|n| format!("line {n} of a listing"));
        let text = lines.collect::<Vec<_>>().join("\n");
        let shown = shown("line 60", &text);
        assert!(shown.contains("[line] [60] of"), "{shown}");
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
