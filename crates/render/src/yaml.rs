//! Fragments as YAML. What it parses to, under YAML 1.2 and 1.1 rules alike, is
//! [`DataOptions::document`]: nothing is lost, nulls included.
//!
//! Block style; a text of several lines is a literal block (`|`), so code reads as code. A text that
//! any reader might take for something else (`no`, `1e3`, `~`, `2024-01-01`) is quoted. The text ends
//! in a newline only if the last value does.

use std::fmt::Write as _;

use contexture_ir::Fragment;
use serde_json::Number;

use crate::document::{DataOptions, DataValue, Nulls};
use crate::prepare::prepare_fragments;
use crate::primitives::push_spaces;
use crate::renderer::RenderError;
use crate::renderer::Renderer;

/// Longer keys are written `? key`: YAML reads a simple key within 1024 characters only.
const LONGEST_SIMPLE_KEY: usize = 1000;

/// Words that YAML 1.1 or 1.2 reads as something other than a text.
const RESERVED: [&str; 9] = ["null", "true", "false", "yes", "no", "on", "off", "y", "n"];

/// Renders fragments as YAML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct YamlRenderer {
    options: DataOptions,
}

impl YamlRenderer {
    /// A renderer with these options.
    #[must_use]
    pub fn new(options: DataOptions) -> Self {
        Self { options }
    }
}

impl Renderer for YamlRenderer {
    fn name(&self) -> &str {
        "yaml"
    }

    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError> {
        let prepared = prepare_fragments(fragments)?;
        let mut out = String::new();
        write_block(
            &mut out,
            &DataValue::new(&prepared, &self.options, Nulls::Keep),
            0,
            BlockStart::Line,
        );
        Ok(out)
    }
}

/// Where a block begins.
#[derive(Clone, Copy, PartialEq, Eq)]
enum BlockStart {
    /// On a line of its own.
    Line,
    /// Behind the dash of an item, at the block's own indentation.
    Dash,
}

/// Writes an array or object whose lines are indented by `indent`, or a lone value.
fn write_block(out: &mut String, document: &DataValue<'_>, indent: usize, start: BlockStart) {
    match document {
        DataValue::Array(items) if !items.is_empty() => {
            for (index, item) in items.iter().enumerate() {
                begin_entry(out, indent, start, index);
                out.push('-');
                match item {
                    DataValue::Array(_) | DataValue::Object(_) if !is_empty(item) => {
                        out.push(' ');
                        write_block(out, item, indent + 2, BlockStart::Dash);
                    }
                    leaf => write_leaf(out, leaf, indent + 2),
                }
            }
        }
        DataValue::Object(entries) if !entries.is_empty() => {
            for (index, (key, value)) in entries.iter().enumerate() {
                begin_entry(out, indent, start, index);
                write_key(out, key, indent);
                match value {
                    DataValue::Array(_) | DataValue::Object(_) if !is_empty(value) => {
                        write_block(out, value, indent + 2, BlockStart::Line);
                    }
                    leaf => write_leaf(out, leaf, indent + 2),
                }
            }
        }
        DataValue::Array(_) => out.push_str("[]"),
        DataValue::Object(_) => out.push_str("{}"),
        leaf => write_leaf(out, leaf, indent),
    }
}

fn begin_entry(out: &mut String, indent: usize, start: BlockStart, index: usize) {
    if start == BlockStart::Dash && index == 0 {
        return;
    }
    begin_line(out, indent);
}

fn begin_line(out: &mut String, indent: usize) {
    // Only a literal block leaves the text at the start of a line.
    if !out.is_empty() && !out.ends_with('\n') {
        out.push('\n');
    }
    push_spaces(out, indent);
}

fn is_empty(document: &DataValue<'_>) -> bool {
    match document {
        DataValue::Array(items) => items.is_empty(),
        DataValue::Object(entries) => entries.is_empty(),
        _ => false,
    }
}

fn write_key(out: &mut String, key: &str, indent: usize) {
    let start = out.len();
    if is_plain(key) {
        out.push_str(key);
    } else {
        write_quoted(out, key);
    }
    if out.len() - start > LONGEST_SIMPLE_KEY {
        out.insert_str(start, "? ");
        begin_line(out, indent);
    }
    out.push(':');
}

/// Writes a value behind `-` or `:`, the space before it included.
fn write_leaf(out: &mut String, leaf: &DataValue<'_>, indent: usize) {
    out.push(' ');
    match leaf {
        DataValue::Null => out.push_str("null"),
        DataValue::Bool(value) => out.push_str(if *value { "true" } else { "false" }),
        DataValue::Number(number) => write_number(out, number),
        DataValue::Text(text) if is_plain(text) => out.push_str(text),
        DataValue::Text(text) if is_literal(text) => write_literal(out, text, indent),
        DataValue::Text(text) => write_quoted(out, text),
        DataValue::Array(_) => out.push_str("[]"),
        DataValue::Object(_) => out.push_str("{}"),
    }
}

/// YAML 1.1 takes `1e21` for a text: the mantissa needs a point and the exponent a sign.
fn write_number(out: &mut String, number: &Number) {
    let text = number.to_string();
    let Some((mantissa, exponent)) = text.split_once(['e', 'E']) else {
        return out.push_str(&text);
    };
    out.push_str(mantissa);
    if !mantissa.contains('.') {
        out.push_str(".0");
    }
    out.push('e');
    if !exponent.starts_with(['+', '-']) {
        out.push('+');
    }
    out.push_str(exponent);
}

/// Whether a text needs no quotes. Stricter than YAML, so that every reader agrees.
fn is_plain(text: &str) -> bool {
    text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_')
        && !text.ends_with([' ', ':'])
        && text
            .chars()
            .all(|c| is_printable(c) && (c == ' ' || !c.is_whitespace()))
        && !text.contains(": ")
        && !text.contains(" #")
        && !RESERVED.iter().any(|word| word.eq_ignore_ascii_case(text))
}

/// Whether a text of several lines can stand as a literal block without an indentation mark: it
/// begins and ends with a line that says something, and no reader breaks its lines elsewhere.
fn is_literal(text: &str) -> bool {
    let body = text.strip_suffix('\n').unwrap_or(text);
    body.contains('\n')
        && !body.starts_with([' ', '\t'])
        && text
            .chars()
            .all(|c| c == '\n' || c == '\t' || is_printable(c))
        && !body.starts_with('\n')
        && !body.ends_with('\n')
        && body
            .split('\n')
            .all(|line| line.is_empty() || !line.trim().is_empty())
}

fn write_literal(out: &mut String, text: &str, indent: usize) {
    let (mark, body) = match text.strip_suffix('\n') {
        Some(body) => ("|", body),
        None => ("|-", text),
    };
    out.push_str(mark);
    for line in body.split('\n') {
        out.push('\n');
        if !line.is_empty() {
            push_spaces(out, indent);
            out.push_str(line);
        }
    }
    if mark == "|" {
        out.push('\n');
    }
}

/// Whether YAML shows a character as itself and takes it for no line break.
fn is_printable(c: char) -> bool {
    !c.is_control()
        && !matches!(
            c,
            '\u{2028}' | '\u{2029}' | '\u{feff}' | '\u{fffe}' | '\u{ffff}'
        )
}

fn write_quoted(out: &mut String, text: &str) {
    out.push('"');
    for c in text.chars() {
        match c {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\t' => out.push_str("\\t"),
            '\r' => out.push_str("\\r"),
            c if is_printable(c) => out.push(c),
            // None of these lies beyond the basic plane. Writing into a `String` cannot fail.
            c => drop(write!(out, "\\u{:04X}", u32::from(c))),
        }
    }
    out.push('"');
}
