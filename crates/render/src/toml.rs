//! Fragments as TOML 1.0. What it parses to is [`DataOptions::document`] without its nulls, which TOML
//! does not have.
//!
//! A TOML document is a table. Where the document is an array, because a name repeats, it stands under
//! the key `fragments`. Integers from 2^63 up are written in full; a reader limited to 64 signed bits
//! must refuse them, says the specification, and does not round.
//!
//! Everything stands in its order, and every name once. TOML would hoist plain values before tables and repeat the header of
//! an array of tables; so a table is inline where a plain value follows it, and an array is always a value.

use std::borrow::Cow;

use contexture_ir::Fragment;
use serde::Serialize;
use toml::ser::ValueSerializer;

use crate::document::{DataOptions, DataValue, Nulls};
use crate::prepare::prepare_fragments;
use crate::renderer::RenderError;
use crate::renderer::Renderer;

/// Renders fragments as TOML.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TomlRenderer {
    options: DataOptions,
}

impl TomlRenderer {
    /// A renderer with these options.
    #[must_use]
    pub fn new(options: DataOptions) -> Self {
        Self { options }
    }
}

impl Renderer for TomlRenderer {
    fn name(&self) -> &str {
        "toml"
    }

    fn render(&self, fragments: &[Fragment]) -> Result<String, RenderError> {
        let prepared = prepare_fragments(fragments)?;
        let document = match DataValue::new(&prepared, &self.options, Nulls::Drop) {
            table @ DataValue::Object(_) => table,
            // A TOML document is a table at the top; a list needs a key to stand under.
            list => DataValue::Object(vec![(Cow::Borrowed("fragments"), list)]),
        };
        let mut text = String::new();
        if let DataValue::Object(entries) = &document {
            write_table(entries, "", &mut text)
                .map_err(|source| RenderError::format("toml", source))?;
        }
        // The renderer's contract: no trailing newline.
        text.truncate(text.trim_end_matches('\n').len());
        Ok(text)
    }
}

type Entry<'a> = (Cow<'a, str>, DataValue<'a>);

/// Writes the entries of the table at `path`, whose header stands already.
fn write_table(
    entries: &[Entry<'_>],
    path: &str,
    out: &mut String,
) -> Result<(), toml::ser::Error> {
    for (key, value) in entries.iter().take(plain_count(entries)) {
        out.push_str(&quote_key(key));
        out.push_str(" = ");
        write_value(value, out)?;
        out.push('\n');
    }
    for (key, value) in entries.iter().skip(plain_count(entries)) {
        let DataValue::Object(inner) = value else {
            continue;
        };
        let key = quote_key(key);
        let path = match path {
            "" => key.into_owned(),
            path => format!("{path}.{key}"),
        };
        // A table of tables is named by theirs.
        if inner.is_empty() || plain_count(inner) > 0 {
            if !out.is_empty() {
                out.push('\n');
            }
            out.push_str(&format!("[{path}]\n"));
        }
        write_table(inner, &path, out)?;
    }
    Ok(())
}

/// How many entries are written as `key = value`: all up to the last that is no table.
fn plain_count(entries: &[Entry<'_>]) -> usize {
    let is_plain = |(_, value): &Entry<'_>| !matches!(value, DataValue::Object(_));
    entries
        .iter()
        .rposition(is_plain)
        .map_or(0, |last| last + 1)
}

fn write_value(value: &DataValue<'_>, out: &mut String) -> Result<(), toml::ser::Error> {
    match value {
        // One line for each table: a list of them is hard to read otherwise.
        DataValue::Array(items)
            if items
                .iter()
                .any(|item| matches!(item, DataValue::Object(_))) =>
        {
            out.push_str("[\n");
            for item in items {
                out.push_str("  ");
                item.serialize(ValueSerializer::new(out))?;
                out.push_str(",\n");
            }
            out.push(']');
        }
        value => {
            value.serialize(ValueSerializer::new(out))?;
        }
    }
    Ok(())
}

/// A key as TOML writes it: bare, or as a string in quotes, whose escapes are those of JSON.
fn quote_key(key: &str) -> Cow<'_, str> {
    let is_bare = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '-');
    if !key.is_empty() && key.chars().all(is_bare) {
        return Cow::Borrowed(key);
    }
    // JSON leaves the one control character alone that is no C0 control.
    Cow::Owned(contexture_ir::quote_json(key).replace('\u{7f}', "\\u007F"))
}
