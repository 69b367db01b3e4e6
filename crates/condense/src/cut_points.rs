//! Cut points in a text: between lines if one ends nearby, otherwise between grapheme clusters.

use std::ops::Range;

use unicode_segmentation::GraphemeCursor;

/// The length of a regional indicator, half of a flag, in UTF-8.
const REGIONAL_INDICATOR_BYTES: usize = 4;

/// Returns the end, in bytes, of at most `characters` characters from the start of a text. Cuts after a line that ends
/// in the last quarter, otherwise inside a line.
pub(crate) fn head_end(text: &str, characters: usize) -> usize {
    let Some((at, _)) = text.char_indices().nth(characters) else {
        return text.len();
    };
    let line = text
        .get(..at)
        .and_then(|head| head.rfind('\n'))
        .map(|feed| feed + 1);
    match line {
        // A cut between lines reads better, but must not cost more than a quarter of the room.
        Some(line) if line >= at - at / 4 => line,
        _ => previous_grapheme_boundary(text, at),
    }
}

/// Returns the start, in bytes, of at most `characters` characters at the end of a text, cut as [`head_end`] does.
pub(crate) fn tail_start(text: &str, characters: usize) -> usize {
    let Some(last) = characters.checked_sub(1) else {
        return text.len();
    };
    let Some((at, _)) = text.char_indices().rev().nth(last) else {
        return 0;
    };
    if at == 0 || text.get(..at).is_some_and(|before| before.ends_with('\n')) {
        return at;
    }
    let room = (text.len() - at) / 4;
    let feed = text.get(at..).and_then(|tail| tail.find('\n'));
    match feed {
        Some(feed) if feed < room => at + feed + 1,
        _ => next_grapheme_boundary(text, at),
    }
}

/// Returns the part of a line longer than `characters` to show: a range of bytes around the byte `at`.
pub(crate) fn clip_range(line: &str, at: usize, characters: usize) -> Range<usize> {
    // Bytes first: most lines are short, and a text never has more characters than bytes.
    if line.len() <= characters || line.chars().nth(characters).is_none() {
        return 0..line.len();
    }
    // A quarter of the room goes before the match: what follows a word is usually more informative.
    let before = line.get(..at).unwrap_or_default();
    let start = tail_start(before, characters / 4);
    let rest = line.get(start..).unwrap_or_default();
    start..start + head_end(rest, characters)
}

/// Returns a line of which only `range` is shown, with `…` where it was cut.
pub(crate) fn clip_line(line: &str, range: &Range<usize>) -> String {
    let opening = if range.start > 0 { "…" } else { "" };
    let closing = if range.end < line.len() { "…" } else { "" };
    format!(
        "{opening}{}{closing}",
        line.get(range.clone()).unwrap_or_default()
    )
}

/// Counts the line feeds in a text.
pub(crate) fn count_feeds(text: &str) -> u64 {
    // Chunks of 255 bytes: the sum fits into a `u8`, which compilers vectorize.
    let feeds = |chunk: &[u8]| {
        let count: u8 = chunk.iter().map(|byte| u8::from(*byte == b'\n')).sum();
        u64::from(count)
    };
    text.as_bytes().chunks(255).map(feeds).sum()
}

/// Counts the lines of a text; a line feed at the end starts no further line.
pub(crate) fn count_lines(text: &str) -> u64 {
    count_feeds(text) + open_lines(text)
}

/// Returns 1 if the last line of a text has no line feed, otherwise 0.
pub(crate) fn open_lines(text: &str) -> u64 {
    u64::from(!text.is_empty() && !text.ends_with('\n'))
}

fn previous_grapheme_boundary(text: &str, at: usize) -> usize {
    let start = flag_start(text, at);
    let text = text.get(start..).unwrap_or_default();
    let mut cursor = GraphemeCursor::new(at - start, text.len(), true);
    if cursor.is_boundary(text, 0) == Ok(true) {
        return at;
    }
    match cursor.prev_boundary(text, 0) {
        Ok(Some(before)) if start + before >= at / 2 => start + before,
        // A grapheme cluster as long as half of the text shown is abuse of combining marks, so it is cut.
        _ => at,
    }
}

fn next_grapheme_boundary(text: &str, at: usize) -> usize {
    let start = flag_start(text, at);
    let text = text.get(start..).unwrap_or_default();
    let at_here = at - start;
    let mut cursor = GraphemeCursor::new(at_here, text.len(), true);
    if cursor.is_boundary(text, 0) == Ok(true) {
        return at;
    }
    match cursor.next_boundary(text, 0) {
        Ok(Some(after)) if after - at_here <= (text.len() - at_here) / 2 => start + after,
        _ => at,
    }
}

/// Returns where the flag before `at` begins if other flags stand before it without a gap, otherwise 0.
///
/// A flag is two regional indicators, so only their number tells where one begins. [`GraphemeCursor`] counts them by
/// characters to the start of the run; by bytes, a text of nothing else takes a third of the time.
fn flag_start(text: &str, at: usize) -> usize {
    let before = text.as_bytes().get(..at).unwrap_or_default();
    let run = before
        .rchunks_exact(REGIONAL_INDICATOR_BYTES)
        .take_while(|bytes| matches!(bytes, [0xF0, 0x9F, 0x87, 0xA6..=0xBF]))
        .count();
    match run {
        // What stands before the first flag may belong to it.
        0..=2 => 0,
        run => at - REGIONAL_INDICATOR_BYTES * (2 - run % 2),
    }
}

#[cfg(test)]
mod tests {
    use unicode_segmentation::UnicodeSegmentation as _;

    use super::*;

    #[test]
    fn a_cut_goes_to_a_line_nearby_and_no_further() {
        let head = |text: &str, characters| text[..head_end(text, characters)].to_owned();
        assert_eq!(head("abcdefgh\nij", 10), "abcdefgh\n");
        assert_eq!(head("ab\ncdefghijkl", 10), "ab\ncdefghi");
        assert_eq!(head("abc", 10), "abc");
        assert_eq!(head("abc", 0), "");
        let tail = |text: &str, characters| text[tail_start(text, characters)..].to_owned();
        assert_eq!(tail("ij\nabcdefgh", 9), "abcdefgh");
        assert_eq!(tail("ijk\nabcdefghi", 10), "abcdefghi");
        assert_eq!(tail("cdefghijkl\nab", 10), "fghijkl\nab");
        assert_eq!(tail("{json}\n", 3), "n}\n");
        assert_eq!(tail("abc", 10), "abc");
        assert_eq!(tail("abc", 0), "");
    }

    #[test]
    fn no_character_is_cut_in_half() {
        let family = "👩‍👩‍👧‍👦";
        let text = family.repeat(4);
        let scalars = family.chars().count();
        for characters in scalars * 2..scalars * 3 {
            assert_eq!(&text[..head_end(&text, characters)], family.repeat(2));
            assert_eq!(&text[tail_start(&text, characters)..], family.repeat(2));
        }
        assert_eq!(head_end("ab\r\ncd", 3), 2);
        let marks = format!("a{}", "\u{301}".repeat(100));
        assert_eq!(head_end(&marks, 50), 99);
    }

    #[test]
    fn flags_are_cut_where_the_unicode_rules_say() {
        // Marks and a prepended sign join a flag; an odd indicator stands alone.
        for (before, after) in [
            ("", ""),
            ("a", "b"),
            ("\u{600}", "\u{301}"),
            ("🇦", "\u{200d}x"),
        ] {
            for indicators in 0..9 {
                let text = format!("{before}{}{after}", "🇩".repeat(indicators));
                let clusters = text.grapheme_indices(true).map(|(at, _)| at);
                let clusters: Vec<usize> = clusters.chain([text.len()]).collect();
                for (at, _) in text.char_indices().filter(|&(at, _)| at >= text.len() / 2) {
                    let last = clusters.iter().rev().find(|&&cluster| cluster <= at);
                    let found = previous_grapheme_boundary(&text, at);
                    assert!(
                        found == *last.unwrap() || *last.unwrap() < at / 2,
                        "{text} {at}"
                    );
                }
                for (at, _) in text.char_indices().filter(|&(at, _)| at <= text.len() / 2) {
                    let next = *clusters.iter().find(|&&cluster| cluster >= at).unwrap();
                    let found = next_grapheme_boundary(&text, at);
                    assert!(
                        found == next || next - at > (text.len() - at) / 2,
                        "{text} {at}"
                    );
                }
            }
        }
    }

    #[test]
    fn a_long_line_is_shown_around_what_matters() {
        let line = format!("{}error{}", "a".repeat(100), "b".repeat(100));
        let shown = clip_line(&line, &clip_range(&line, 100, 40));
        assert!(shown.starts_with('…') && shown.ends_with('…'), "{shown}");
        assert!(shown.contains("aerrorb") && shown.chars().count() <= 42);
        assert_eq!(clip_range("short", 2, 40), 0..5);
        assert_eq!(clip_line("short", &(0..5)), "short");
    }

    #[test]
    fn lines_are_counted_as_editors_do() {
        for (text, lines) in [("", 0), ("a", 1), ("a\n", 1), ("a\nb", 2), ("\n\n", 2)] {
            assert_eq!(count_lines(text), lines, "{text:?}");
        }
        assert_eq!(count_lines(&"\n".repeat(1_000)), 1_000);
    }
}
