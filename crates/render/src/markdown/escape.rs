//! Texts, names and keys that cannot become Markdown structure.
//!
//! Blocks begin at the start of a line, so that is where a text is guarded: a backslash stands before
//! a character that would begin a heading, bullet, number, quotation, fence, table, rule, definition,
//! HTML block or link definition there. (CommonMark 0.31, chapter 4, and GFM's tables.) A line that
//! begins with a backslash gets another, so removing one from each line gives the text back.
//!
//! * Every line break Unicode knows (`\n`, `\r\n`, `\r`, VT, FF, U+0085, U+2028, U+2029) becomes
//!   `\n` and the indentation of the bullet.
//! * Other control characters become their pictures, as in XML.
//! * In labels and headings, which are one line, line breaks become `␤`, and characters with a
//!   meaning inside a line are escaped too, so that a label ends where it ends.

use crate::indent::push_spaces;

/// Where a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Position {
    /// In a heading.
    Heading,
    /// In the bold label of a bullet.
    Label,
    /// Behind a label, on its line.
    Line,
    /// Behind a bullet.
    Item,
    /// Below a heading, at the start of a line.
    Body,
}

/// Writes a name or key into a heading or label.
pub(super) fn write_label(out: &mut String, name: &str, position: Position) {
    for c in name.chars() {
        match c {
            '\\' | '`' | '*' | '[' | ']' | '<' | '~' => {
                out.push('\\');
                out.push(c);
            }
            '#' if position == Position::Heading => out.push_str("\\#"),
            c if is_break(c) => out.push('␤'),
            c => push_visible(out, c),
        }
    }
}

/// Writes a text; lines after the first are indented by `indent`.
pub(super) fn write_text(out: &mut String, text: &str, position: Position, indent: usize) {
    let mut lines = Lines { rest: Some(text) };
    let first = lines.next().unwrap_or_default();
    if position == Position::Line {
        first.chars().for_each(|c| push_visible(out, c));
    } else if position == Position::Item && is_blank(first) && lines.rest.is_some() {
        // A bullet that begins with blank lines would end there and leave its text outside.
        out.push('\\');
        first.chars().for_each(|c| push_visible(out, c));
    } else {
        write_line(out, first);
    }
    for line in lines {
        out.push('\n');
        if !is_blank(line) {
            push_spaces(out, indent);
        }
        write_line(out, line);
    }
}

/// A line that stands where a block could begin.
fn write_line(out: &mut String, line: &str) {
    let body = line.trim_start();
    let margin = line.len() - body.len();
    line.get(..margin)
        .unwrap_or_default()
        .chars()
        .for_each(|c| push_visible(out, c));
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = body.split_at(digits);
    let next = rest.chars().next();
    // A bullet's number has at most nine digits; longer ones are harmless, and guarded all the same.
    let guarded = match (digits, next) {
        (0, Some(c)) => "#-+*>`~|=_:<[\\".contains(c),
        (_, Some(c)) => matches!(c, '.' | ')'),
        (_, None) => false,
    };
    out.push_str(number);
    if guarded {
        out.push('\\');
    }
    rest.chars().for_each(|c| push_visible(out, c));
}

fn push_visible(out: &mut String, c: char) {
    match u32::from(c) {
        9 => out.push('\t'),
        code @ 0..0x20 => out.push(char::from_u32(0x2400 + code).unwrap_or('\u{fffd}')),
        _ => out.push(c),
    }
}

fn is_blank(line: &str) -> bool {
    line.chars().all(char::is_whitespace)
}

fn is_break(c: char) -> bool {
    matches!(
        c,
        '\n' | '\r' | '\u{b}' | '\u{c}' | '\u{85}' | '\u{2028}' | '\u{2029}'
    )
}

/// The lines of a text; an empty text is one empty line, as is what follows a last line break.
struct Lines<'a> {
    rest: Option<&'a str>,
}

impl<'a> Iterator for Lines<'a> {
    type Item = &'a str;

    fn next(&mut self) -> Option<&'a str> {
        let text = self.rest.take()?;
        let Some((at, c)) = text.char_indices().find(|(_, c)| is_break(*c)) else {
            return Some(text);
        };
        let (line, after) = text.split_at(at);
        let mut after = after.get(c.len_utf8()..).unwrap_or_default();
        if c == '\r' {
            after = after.strip_prefix('\n').unwrap_or(after);
        }
        self.rest = Some(after);
        Some(line)
    }
}
