//! Tables that keep to the terminal's width: the one rule for every list that the command prints.
//!
//! What can be seen in full elsewhere is cut with `…`, ids stay whole, and where there is no room a column is left out.
//! Not here: prose, which is wrapped by words; see [`wrap_words`](crate::output::printable::wrap_words).

use crate::output::printable::{clip_to_width, display_width, one_line, pad_left, pad_right};

/// What a column holds, which says how it gives way on a narrow terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    /// What people copy, whole: it is never cut and never left out, even if the line gets too wide.
    Id,
    /// Words, cut down to so many columns, then left out.
    Words(usize),
    /// A word or a figure of which a part would say something else: left out as a whole.
    Whole,
}

/// A column of a table.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Column {
    title: &'static str,
    content: Content,
    is_right: bool,
    rank: u8,
    /// Colours a cell that has its width already; colour codes have none.
    paint: fn(&str) -> String,
}

impl Column {
    /// Ids and names that are typed again. Without a title in any column a table has no head.
    pub(crate) const fn id(title: &'static str) -> Self {
        Self::new(title, Content::Id)
    }

    /// Words, cut where they are long, but not below `least` columns.
    pub(crate) const fn words(title: &'static str, least: usize) -> Self {
        Self::new(title, Content::Words(least))
    }

    /// Single words of a few, from the left, never cut.
    pub(crate) const fn word(title: &'static str) -> Self {
        Self::new(title, Content::Whole)
    }

    /// Figures, to the right, never cut.
    pub(crate) const fn figure(title: &'static str) -> Self {
        let column = Self::new(title, Content::Whole);
        Self {
            is_right: true,
            ..column
        }
    }

    /// The same; columns of the lowest rank are left out first, of equal ones the last. Default: 0.
    pub(crate) const fn with_rank(self, rank: u8) -> Self {
        Self { rank, ..self }
    }

    /// The same with colours.
    pub(crate) const fn with_paint(self, paint: fn(&str) -> String) -> Self {
        Self { paint, ..self }
    }

    const fn new(title: &'static str, content: Content) -> Self {
        Self {
            title,
            content,
            is_right: false,
            rank: 0,
            paint: str::to_owned,
        }
    }
}

/// The columns that are shown, and how wide each is.
#[derive(Debug)]
pub(crate) struct TableLayout<'a>(Vec<ShownColumn<'a>>);

#[derive(Debug)]
struct ShownColumn<'a> {
    column: &'a Column,
    /// Its place in a row.
    place: usize,
    width: usize,
}

impl ShownColumn<'_> {
    /// The fewest columns it takes.
    fn least_width(&self) -> usize {
        match self.column.content {
            Content::Words(least) => self.width.min(least),
            Content::Id | Content::Whole => self.width,
        }
    }
}

impl<'a> TableLayout<'a> {
    /// Gives each column its width, so that no row is wider than `width`. Columns without content in any row are left out.
    pub(crate) fn measure(columns: &'a [Column], rows: &[Vec<String>], width: usize) -> Self {
        let mut shown: Vec<ShownColumn<'a>> = Vec::new();
        for (place, column) in columns.iter().enumerate() {
            let cells = rows.iter().map(|row| display_width(&cell_text(row, place)));
            let cells = cells.max().unwrap_or(0);
            if cells > 0 {
                let width = cells.max(display_width(column.title));
                shown.push(ShownColumn {
                    column,
                    place,
                    width,
                });
            }
        }
        while shown.len() > 1 && total_width(shown.iter().map(ShownColumn::least_width)) > width {
            let places = shown.iter().enumerate().rev();
            let spare = places.filter(|(_, one)| one.column.content != Content::Id);
            let Some((first, _)) = spare.min_by_key(|(_, one)| one.column.rank) else {
                break;
            };
            shown.remove(first);
        }
        let mut excess = total_width(shown.iter().map(|one| one.width)).saturating_sub(width);
        let mut words: Vec<_> = shown.iter_mut().collect();
        // The widest gives first: there is most to be spared.
        words.sort_by_key(|one| std::cmp::Reverse(one.width));
        for one in words {
            let given = excess.min(one.width - one.least_width());
            one.width -= given;
            excess -= given;
        }
        Self(shown)
    }

    /// One line, without its end.
    pub(crate) fn format_row(&self, row: &[String]) -> String {
        self.join_cells(|one| {
            let text = self.fit_cell(one, &cell_text(row, one.place));
            (one.column.paint)(&text)
        })
    }

    /// The titles; `None` if no column has one.
    fn format_head(&self) -> Option<String> {
        let titled = self.0.iter().any(|one| !one.column.title.is_empty());
        titled.then(|| self.join_cells(|one| self.fit_cell(one, one.column.title)))
    }

    fn fit_cell(&self, one: &ShownColumn<'_>, text: &str) -> String {
        let text = match one.column.content {
            Content::Id => text.to_owned(),
            Content::Words(_) | Content::Whole => clip_to_width(text, one.width),
        };
        let is_last = self.0.last().is_some_and(|last| last.place == one.place);
        match (one.column.is_right, is_last) {
            (true, _) => pad_left(&text, one.width),
            (false, false) => pad_right(&text, one.width),
            // Nothing stands behind it.
            (false, true) => text,
        }
    }

    fn join_cells(&self, cell: impl Fn(&ShownColumn<'_>) -> String) -> String {
        let cells: Vec<String> = self.0.iter().map(cell).collect();
        cells.join("  ").trim_end().to_owned()
    }
}

/// The width of a row of these columns: two spaces stand between them.
fn total_width(columns: impl Iterator<Item = usize>) -> usize {
    columns
        .map(|width| width + 2)
        .sum::<usize>()
        .saturating_sub(2)
}

fn cell_text(row: &[String], place: usize) -> String {
    row.get(place)
        .map_or_else(String::new, |text| one_line(text))
}

/// Formats rows under their titles, no line wider than `width` unless an id is: see [`Column`].
pub(crate) fn format_table(columns: &[Column], rows: &[Vec<String>], width: usize) -> String {
    let layout = TableLayout::measure(columns, rows, width);
    let mut out = String::new();
    let rows = rows.iter().map(|row| layout.format_row(row));
    for line in layout.format_head().into_iter().chain(rows) {
        out.push_str(&line);
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_line_is_wider_than_the_terminal() {
        let columns = [
            Column::words("model", 10),
            Column::words("empty", 10),
            Column::figure("tokens"),
        ];
        let row =
            |model: &str, tokens: &str| vec![model.to_owned(), String::new(), tokens.to_owned()];
        let rows = [
            row(&"long-model-name-".repeat(9), "1,234,567"),
            row("漢字", "1"),
        ];
        for width in [10, 40, 80, 200] {
            let table = format_table(&columns, &rows, width);
            assert!(
                table.lines().all(|line| display_width(line) <= width),
                "{table}"
            );
            assert_eq!(table.lines().count(), 3);
        }
        let table = format_table(&columns, &rows, 40);
        assert!(
            table.contains("1,234,567") && !table.contains("empty"),
            "{table}"
        );
    }

    #[test]
    fn ids_stay_whole_and_columns_go_by_rank() {
        let columns = [
            Column::id(""),
            Column::figure("").with_rank(1),
            Column::figure(""),
            Column::words("", 5).with_rank(2),
        ];
        let rows = [[
            "conversation-1",
            "12 messages",
            "$0.25",
            "A title of some length",
        ]
        .map(str::to_owned)
        .to_vec()];
        for (width, expected) in [
            (
                60,
                "conversation-1  12 messages  $0.25  A title of some length",
            ),
            (44, "conversation-1  12 messages  $0.25  A title…"),
            (34, "conversation-1  12 messages  A ti…"),
            (30, "conversation-1  A title of so…"),
            (10, "conversation-1"),
        ] {
            let table = format_table(&columns, &rows, width);
            assert_eq!(table.trim_end(), expected, "{width}");
        }
    }
}
