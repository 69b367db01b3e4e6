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
}
