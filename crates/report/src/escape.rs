//! Text of strangers in a page: whatever it says, it stays text.

use crate::number_format::is_unsafe;

/// Escapes a text, so that it is text wherever it stands in a page: between tags or in quotes, on one line.
#[must_use]
pub fn escape_html(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // Line breaks too: a title or label is one line.
            c if c.is_whitespace() => out.push(' '),
            c if is_unsafe(c) => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}
