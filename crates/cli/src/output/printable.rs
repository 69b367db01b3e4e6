//! Text from outside, made safe for a terminal.

use std::borrow::Cow;

use contexture::compile::number_format::is_unsafe;
pub(crate) use contexture::compile::number_format::{count_with_noun, group_thousands, one_line};
use unicode_width::{UnicodeWidthChar, UnicodeWidthStr};

/// The text with its lines; control characters other than tab and newline shown as `�`.
pub(crate) fn printable_lines(text: &str) -> Cow<'_, str> {
    let bad = |c: char| is_unsafe(c) && c != '\n' && c != '\t';
    if text.contains(bad) {
        // Line ends of Windows first, or each would show a sign.
        Cow::Owned(text.replace("\r\n", "\n").replace(bad, "\u{fffd}"))
    } else {
        Cow::Borrowed(text)
    }
}

/// At most `columns` columns of the text; `…` stands for the rest.
pub(crate) fn clip_to_width(text: &str, columns: usize) -> String {
    if text.width() <= columns {
        return text.to_owned();
    }
    // One column is kept for the mark that something is missing.
    let mut left = columns.saturating_sub(1);
    let mut out = String::new();
    for c in text.chars() {
        // A wide character that does not fit ends the text: half of one cannot be shown.
        let width = c.width().unwrap_or(0);
        if width > left {
            break;
        }
        left -= width;
        out.push(c);
    }
    // No space before the mark.
    out.truncate(out.trim_end().len());
    out.push('…');
    out
}

/// What becomes of a word that is wider than its line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LongWords {
    /// It stays whole, for an id, a path or a link is copied.
    Keep,
    /// It goes on in the next line, as text of scripts without spaces does.
    Break,
}

/// The text in lines of at most `columns`, broken between words, each further line after `indent` spaces. Lines that fit
/// stay as they are. Colours take no columns.
pub(crate) fn wrap_words(text: &str, columns: usize, indent: usize, long: LongWords) -> String {
    let mut out = String::with_capacity(text.len());
    for line in text.split_inclusive('\n') {
        let body = line.trim_end_matches('\n');
        if visible_width(body) <= columns {
            out.push_str(line);
            continue;
        }
        wrap_line(body, columns, indent, long, &mut out);
        if line.ends_with('\n') {
            out.push('\n');
        }
    }
    out
}

fn wrap_line(line: &str, columns: usize, indent: usize, long: LongWords, out: &mut String) {
    // A line of which half is indent has no room for words.
    let indent = indent.min(columns / 2);
    let (mut used, mut has_word) = (0, false);
    for word in line.split_inclusive(' ') {
        let mut word = word;
        let mut width = visible_width(word.trim_end());
        if has_word && width > 0 && used + width > columns {
            start_line(indent, out);
            (used, has_word) = (indent, false);
        }
        while long == LongWords::Break && used + width > columns {
            let (head, rest) = split_at_width(word, columns.saturating_sub(used));
            out.push_str(head);
            start_line(indent, out);
            (used, word, width) = (indent, rest, visible_width(rest.trim_end()));
        }
        out.push_str(word);
        used += visible_width(word);
        has_word |= width > 0;
    }
    out.truncate(out.trim_end_matches(' ').len());
}

fn start_line(indent: usize, out: &mut String) {
    out.truncate(out.trim_end_matches(' ').len());
    out.push('\n');
    out.extend(std::iter::repeat_n(' ', indent));
}

/// The text up to `columns`, at least one character, and the rest. Colours take no columns.
fn split_at_width(text: &str, columns: usize) -> (&str, &str) {
    let (mut used, mut in_colour) = (0, false);
    for (at, c) in text.char_indices() {
        // Of colours only, which end in `m`: text from outside has no escapes left.
        if in_colour || c == '\u{1b}' {
            in_colour = c != 'm';
            continue;
        }
        let width = c.width().unwrap_or(0);
        if used > 0 && used + width > columns {
            return text.split_at(at);
        }
        used += width;
    }
    (text, "")
}

/// The text's width on a terminal, its colours not counted.
pub(crate) fn visible_width(text: &str) -> usize {
    match text.contains('\u{1b}') {
        true => anstream::adapter::strip_str(text).to_string().width(),
        false => text.width(),
    }
}

/// Enough of an id to name it.
pub(crate) fn short_id(id: &str) -> &str {
    id.get(..12).unwrap_or(id)
}

/// The text, padded with spaces to `columns`.
pub(crate) fn pad_right(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{text}{}", " ".repeat(missing))
}

/// The text, with spaces before it up to `columns`.
pub(crate) fn pad_left(text: &str, columns: usize) -> String {
    let missing = columns.saturating_sub(text.width());
    format!("{}{text}", " ".repeat(missing))
}

/// The text's width on a terminal.
pub(crate) fn display_width(text: &str) -> usize {
    text.width()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_moves_the_cursor() {
        assert_eq!(one_line("  a\n\n\tb\u{1b}[31m c\u{7}"), "a b [31m c");
        assert_eq!(one_line("\u{202e}abc"), "abc");
        assert_eq!(
            printable_lines("a\r\n\u{1b}]0;x\u{7}\tb"),
            "a\n\u{fffd}]0;x\u{fffd}\tb"
        );
        assert_eq!(printable_lines("a\n\tb"), "a\n\tb");
    }

    #[test]
    fn clipping_counts_columns() {
        for (text, columns, expected) in [
            ("abc", 3, "abc"),
            ("abcd", 3, "ab…"),
            ("漢字漢字", 5, "漢字…"),
            ("漢字漢字", 4, "漢…"),
            ("ab cd", 4, "ab…"),
            ("", 0, ""),
        ] {
            assert_eq!(clip_to_width(text, columns), expected, "{text} {columns}");
        }
        assert_eq!(pad_right("漢", 4), "漢  ");
        assert_eq!(pad_left("7", 3), "  7");
    }

    #[test]
    fn prose_is_wrapped_between_words() {
        for (text, columns, indent, long, expected) in [
            ("one two", 7, 2, LongWords::Keep, "one two"),
            ("one two three", 8, 2, LongWords::Keep, "one two\n  three"),
            ("  a  b cc\nd\n", 7, 0, LongWords::Keep, "  a  b\ncc\nd\n"),
            (
                "see /a/long/path now",
                9,
                2,
                LongWords::Keep,
                "see\n  /a/long/path\n  now",
            ),
            ("漢字漢字", 5, 0, LongWords::Break, "漢字\n漢字"),
            ("ab cdefgh", 4, 0, LongWords::Break, "ab\ncdef\ngh"),
            (
                "\u{1b}[31mab cd\u{1b}[0m",
                4,
                0,
                LongWords::Keep,
                "\u{1b}[31mab\ncd\u{1b}[0m",
            ),
        ] {
            assert_eq!(wrap_words(text, columns, indent, long), expected, "{text}");
        }
    }
}
