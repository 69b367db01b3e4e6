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

use crate::primitives::push_spaces;

/// Where a text stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum EscapeContext {
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
pub(super) fn write_label(out: &mut String, name: &str, position: EscapeContext) {
    for c in name.chars() {
        match c {
            // Characters with a meaning within a line: a label is bold, so `*` could end it.
            '\\' | '`' | '*' | '[' | ']' | '<' | '~' => {
                out.push('\\');
                out.push(c);
            }
            // Trailing `#`s close a heading in CommonMark; elsewhere they are harmless.
            '#' if position == EscapeContext::Heading => out.push_str("\\#"),
            c if is_break(c) => out.push('␤'),
            c => push_visible(out, c),
        }
    }
}

/// Writes a text; lines after the first are indented by `indent`.
pub(super) fn write_text(out: &mut String, text: &str, position: EscapeContext, indent: usize) {
    let mut lines = Lines { rest: Some(text) };
    let first = lines.next().unwrap_or_default();
    // Behind a label the text stands within a line, where no block can begin.
    if position == EscapeContext::Line {
        first.chars().for_each(|c| push_visible(out, c));
    } else if position == EscapeContext::Item && is_blank(first) {
        // A bullet that begins blank would end there and leave its text outside, or, below a label,
        // be read as the underline of a heading.
        out.push('\\');
        first.chars().for_each(|c| push_visible(out, c));
    } else {
        write_line(out, first, position);
    }
    for line in lines {
        out.push('\n');
        // A blank line without indentation cannot leave its bullet, and trailing spaces would be noise.
        if !is_blank(line) {
            push_spaces(out, indent);
        }
        // Later lines stand at the start of a line, wherever the first one stood.
        write_line(out, line, EscapeContext::Body);
    }
}

/// A line that stands where a block could begin; in an item, where a label could.
fn write_line(out: &mut String, line: &str, position: EscapeContext) {
    let body = line.trim_start();
    let margin = line.len() - body.len();
    line.get(..margin)
        .unwrap_or_default()
        .chars()
        .for_each(|c| push_visible(out, c));
    // A bullet's number has at most nine digits; longer ones are harmless, and guarded all the same.
    let digits = body.bytes().take_while(u8::is_ascii_digit).count();
    let (number, rest) = body.split_at(digits);
    out.push_str(number);
    let begins_label = position == EscapeContext::Item && rest.starts_with("**");
    if begins_label || begins_block(rest, digits > 0) {
        out.push('\\');
    }
    rest.chars().for_each(|c| push_visible(out, c));
}

/// Whether a line that begins so, behind a number or not, could begin a block. Also true of a leading
/// backslash, so that ours can be told from the text's.
fn begins_block(line: &str, numbered: bool) -> bool {
    let Some(first) = line.chars().next() else {
        return false;
    };
    let run = line.trim_start_matches(first);
    let stands_alone = |rest: &str| rest.is_empty() || rest.starts_with(char::is_whitespace);
    let only = |set: &str| line.chars().all(|c| set.contains(c) || c.is_whitespace());
    let behind = line.get(first.len_utf8()..).unwrap_or_default();
    match first {
        '\\' => true,
        // Only a number before it makes `.` or `)` the mark of a list.
        '.' | ')' => numbered && stands_alone(behind),
        _ if numbered => false,
        '#' => stands_alone(run),
        // `---` is a rule, `|---|` a table's second row and `:-` a definition.
        '-' => stands_alone(behind) || only("-|:"),
        '+' => stands_alone(behind),
        '*' => stands_alone(behind) || only("*"),
        '_' => only("_"),
        '=' => only("="),
        // Two of them are inline code, three a fence.
        '`' | '~' => line.len() - run.len() >= 3,
        '>' | '|' | ':' => true,

        '<' => {
            behind.starts_with(|c: char| c.is_ascii_alphabetic() || matches!(c, '!' | '?' | '/'))
        }
        // A link definition needs `]:` on the line; any other bracket is text.
        '[' => line.contains("]:"),
        _ => false,
    }
}

fn push_visible(out: &mut String, c: char) {
    match u32::from(c) {
        9 => out.push('\t'),
        code @ 0..0x20 => out.push(char::from_u32(0x2400 + code).unwrap_or('\u{fffd}')),
        _ => out.push(c),
    }
}

/// Blank as CommonMark has it. A line of other white space, a no-break space say, is text, and without
/// its indentation it would leave its bullet.
fn is_blank(line: &str) -> bool {
    line.chars().all(|c| matches!(c, ' ' | '\t'))
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
        // `\r\n` is one line break.
        if c == '\r' {
            after = after.strip_prefix('\n').unwrap_or(after);
        }
        self.rest = Some(after);
        Some(line)
    }
}
