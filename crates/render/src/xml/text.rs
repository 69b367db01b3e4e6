//! The elements as text.

use super::escape::{escape_lines, escape_text};
use super::name::write_name;
use super::walk::Sink;
use crate::primitives::push_spaces;

/// Writes into one string.
#[derive(Debug, Default)]
pub(super) struct TextSink {
    out: String,
    open: Vec<OpenElement>,
}

/// An element whose start tag is written: where it begins and where what it holds begins.
#[derive(Debug)]
struct OpenElement {
    start: usize,
    content: usize,
}

impl TextSink {
    pub(super) fn into_text(self) -> String {
        self.out
    }

    fn begin_line(&mut self, depth: usize) {
        if !self.out.is_empty() {
            self.out.push('\n');
        }
        push_spaces(&mut self.out, 2 * depth);
    }

    fn start_tag(&mut self, name: &str) {
        self.out.push('<');
        write_name(&mut self.out, name);
        self.out.push('>');
    }

    fn end_tag(&mut self, name: &str) {
        self.out.push_str("</");
        write_name(&mut self.out, name);
        self.out.push('>');
    }
}

impl Sink for TextSink {
    fn open_element(&mut self, name: &str, depth: usize) {
        let start = self.out.len();
        self.begin_line(depth);
        self.start_tag(name);
        self.open.push(OpenElement {
            start,
            content: self.out.len(),
        });
    }

    fn close_element(&mut self, name: &str, depth: usize) {
        let Some(OpenElement { start, content }) = self.open.pop() else {
            return;
        };
        // Nothing was written since the start tag, so the element disappears with its line.
        if self.out.len() == content {
            return self.out.truncate(start);
        }
        self.begin_line(depth);
        self.end_tag(name);
    }

    fn add_leaf(&mut self, name: &str, text: &str, depth: usize) {
        self.begin_line(depth);
        self.start_tag(name);
        if text.as_bytes().contains(&b'\n') {
            self.out.push('\n');
            // A text of blanks alone gets no indentation, which a reader would take for its content.
            if !text.chars().all(is_blank) {
                push_spaces(&mut self.out, 2 * (depth + 1));
                escape_lines(&mut self.out, text, 2 * (depth + 1));
            }
            self.begin_line(depth);
        } else {
            escape_text(&mut self.out, text);
        }
        self.end_tag(name);
    }
}

/// What ECMAScript's `trim` removes.
fn is_blank(c: char) -> bool {
    c.is_whitespace() && c != '\u{85}' || c == '\u{feff}'
}
