//! Excerpts of a text, by lines.

use crate::cut_points::{count_lines, head_end};

/// A position in a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct TextPosition {
    /// The line number; the first is 1.
    pub line: u64,
    /// Characters to skip on that line, for lines too long to be read at once.
    pub column: u64,
}

impl TextPosition {
    /// Returns the start of a line; line 0 is treated as line 1.
    #[must_use]
    pub const fn line_start(line: u64) -> Self {
        Self {
            line: if line == 0 { 1 } else { line },
            column: 0,
        }
    }
}

/// A part of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Excerpt<'t> {
    /// Text of the part.
    pub text: &'t str,
    /// Where the excerpt starts.
    pub from: TextPosition,
    /// The last line that is at least partly included; the line before `from` if the excerpt is empty.
    pub last: u64,
    /// Lines of the whole text.
    pub lines: u64,
    /// Characters of the whole text, as Unicode scalar values.
    pub characters: u64,
    /// Where to continue reading, if there is more.
    pub next: Option<TextPosition>,
}

/// Returns at most `lines` lines and at most `characters` characters of a text. The excerpt ends at a line end if one
/// is nearby, otherwise between grapheme clusters, and has at least one character if any is left.
///
/// ```
/// use contexture_condense::{TextPosition, extract_excerpt};
///
/// let part = extract_excerpt("one\ntwo\nthree\n", TextPosition::line_start(2), 1, 100);
/// assert_eq!((part.text, part.lines), ("two\n", 3));
/// assert_eq!(part.next, Some(TextPosition::line_start(3)));
/// ```
#[must_use]
pub fn extract_excerpt(
    text: &str,
    from: TextPosition,
    lines: u64,
    characters: usize,
) -> Excerpt<'_> {
    let start = start_of(text, from);
    let rest = text.get(start..).unwrap_or_default();
    // Lines first, characters second: the caller pages by lines, and the limit of characters protects the context.
    let within = rest.get(..end_of(rest, lines.max(1))).unwrap_or_default();
    // At least one character, so that reading on always reaches the end.
    let least = within.chars().next().map_or(0, char::len_utf8);
    let end = head_end(within, characters.max(1)).max(least);
    let part = within.get(..end).unwrap_or_default();
    let whole = count_lines(text);
    let next = (part.len() < rest.len()).then(|| position_after(part, from));
    Excerpt {
        text: part,
        from,
        last: (from.line + count_lines(part)).saturating_sub(1),
        lines: whole,
        characters: text.chars().count() as u64,
        next,
    }
}

/// Returns the position after a part that starts at `from`.
fn position_after(part: &str, from: TextPosition) -> TextPosition {
    let feeds = count_lines(part) - u64::from(!part.is_empty() && !part.ends_with('\n'));
    match part.rfind('\n') {
        Some(feed) => TextPosition {
            line: from.line + feeds,
            column: part
                .get(feed + 1..)
                .map_or(0, |open| open.chars().count() as u64),
        },
        // Still on the first line: the column continues from the start of the part.
        None => TextPosition {
            line: from.line,
            column: from.column + part.chars().count() as u64,
        },
    }
}

/// Converts a position to bytes; the end of the line, or of the text, if the position does not exist.
fn start_of(text: &str, from: TextPosition) -> usize {
    let line = end_of(text, from.line.saturating_sub(1));
    let rest = text.get(line..).unwrap_or_default();
    let column = usize::try_from(from.column).unwrap_or(usize::MAX);
    let open = rest.find('\n').unwrap_or(rest.len());
    let within = rest.get(..open).unwrap_or_default();
    line + within.char_indices().nth(column).map_or(open, |(at, _)| at)
}

/// Returns the end of the first `lines` lines, in bytes.
fn end_of(text: &str, lines: u64) -> usize {
    let Some(last) = usize::try_from(lines).unwrap_or(usize::MAX).checked_sub(1) else {
        return 0;
    };
    let mut feeds = text.match_indices('\n');
    feeds.nth(last).map_or(text.len(), |(feed, _)| feed + 1)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Reads on until nothing is left.
    fn pages(text: &str, lines: u64, characters: usize) -> Vec<String> {
        let mut pages = Vec::new();
        let mut at = Some(TextPosition::line_start(1));
        while let Some(from) = at {
            let part = extract_excerpt(text, from, lines, characters);
            assert!(part.text.chars().count() <= characters);
            assert!(part.next.is_none_or(|next| next > from), "{part:?}");
            pages.push(part.text.to_owned());
            at = part.next;
        }
        pages
    }

    #[test]
    fn pages_are_the_text() {
        for text in [
            "",
            "a",
            "a\n",
            "\n\n\n",
            "one\ntwo\nthree",
            "one\r\ntwo\r\n",
            "a line of some length\nand one more\n\nx\n",
            "{\"one\":\"line of JSON\"}\n",
            "ünï👩‍👩‍👧‍👦çödé\n🇩🇪🇫🇷\n",
        ] {
            for lines in [1, 2, u64::MAX] {
                for characters in [1, 2, 7, 1_000] {
                    let pages = pages(text, lines, characters);
                    assert_eq!(pages.concat(), text, "{text:?} {lines} {characters}");
                }
            }
        }
    }

    #[test]
    fn a_part_says_where_it_stands() {
        let text = "one\ntwo\nthree\nfour\n";
        let part = extract_excerpt(text, TextPosition::line_start(2), 2, 1_000);
        assert_eq!((part.text, part.last, part.lines), ("two\nthree\n", 3, 4));
        assert_eq!(
            (part.characters, part.next),
            (19, Some(TextPosition::line_start(4)))
        );
        let from = TextPosition { line: 3, column: 2 };
        let part = extract_excerpt(text, from, 1, 1_000);
        assert_eq!((part.text, part.last), ("ree\n", 3));
        for beyond in [
            TextPosition::line_start(5),
            TextPosition::line_start(u64::MAX),
        ] {
            let part = extract_excerpt(text, beyond, 9, 9);
            assert_eq!((part.text, part.next), ("", None));
        }
        let beyond = TextPosition {
            line: 1,
            column: u64::MAX,
        };
        assert_eq!(extract_excerpt(text, beyond, 1, 9).text, "\n");
    }
}
