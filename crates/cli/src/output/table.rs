//! Tables that keep to the terminal's width.

use crate::output::printable::{clip_to_width, display_width, one_line, pad_left, pad_right};

/// How the cells of a column stand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Align {
    /// Words, from the left.
    Left,
    /// Numbers, to the right.
    Right,
}

/// Columns that words keep, however narrow the terminal is: a date.
const MIN_WORDS: usize = 10;

/// Formats rows under a head, no line wider than `columns`: where they are, the widest columns of words give way, then the last
/// columns are left out. So are columns without content in any row.
pub(crate) fn format_table(head: &[(&str, Align)], rows: &[Vec<String>], columns: usize) -> String {
    let cell =
        |row: &[String], at: usize| row.get(at).map_or_else(String::new, |text| one_line(text));
    let width = |at: usize| {
        let widths = rows.iter().map(|row| display_width(&cell(row, at)));
        widths.max().unwrap_or(0)
    };
    let mut shown: Vec<(usize, Align, usize)> = Vec::new();
    for (at, (name, align)) in head.iter().enumerate() {
        let cells = width(at);
        if cells > 0 {
            shown.push((at, *align, cells.max(display_width(name))));
        }
    }
    // A figure that is cut off would be another one, so whole columns give way, the last ones first.
    let least = |(_, align, width): &(usize, Align, usize)| match align {
        Align::Left => (*width).min(MIN_WORDS) + 2,
        Align::Right => width + 2,
    };
    while shown.len() > 1 && shown.iter().map(least).sum::<usize>() > columns + 2 {
        shown.pop();
    }
    let total: usize = shown.iter().map(|(_, _, width)| width + 2).sum();
    let mut excess = total.saturating_sub(columns + 2);
    let mut words: Vec<_> = shown
        .iter_mut()
        .filter(|(_, align, _)| *align == Align::Left)
        .collect();
    words.sort_by_key(|(_, _, width)| std::cmp::Reverse(*width));
    for (_, _, width) in words {
        let given = excess.min(width.saturating_sub(MIN_WORDS));
        *width -= given;
        excess -= given;
    }
    let names: Vec<String> = head.iter().map(|(name, _)| (*name).to_owned()).collect();
    let mut out = String::new();
    for row in std::iter::once(&names).chain(rows) {
        let cells = shown.iter().map(|(at, align, width)| {
            let text = clip_to_width(&cell(row, *at), *width);
            match align {
                Align::Left => pad_right(&text, *width),
                Align::Right => pad_left(&text, *width),
            }
        });
        let line = cells.collect::<Vec<_>>().join("  ");
        out.push_str(&clip_to_width(line.trim_end(), columns));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let head = [
            ("model", Align::Left),
            ("empty", Align::Left),
            ("tokens", Align::Right),
        ];
        let row =
            |model: &str, tokens: &str| vec![model.to_owned(), String::new(), tokens.to_owned()];
        let rows = [
            row(&"long-model-name-".repeat(9), "1,234,567"),
            row("漢字", "1"),
        ];
        for columns in [10, 40, 80, 200] {
            let table = format_table(&head, &rows, columns);
            assert!(
                table.lines().all(|line| display_width(line) <= columns),
                "{table}"
            );
            assert_eq!(table.lines().count(), 3);
        }
        let table = format_table(&head, &rows, 40);
        assert!(
            table.contains("1,234,567") && !table.contains("empty"),
            "{table}"
        );
    }
}
