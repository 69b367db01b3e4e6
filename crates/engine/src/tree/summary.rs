//! What a message says, in one line.

use contexture_compile::number_format::one_line;
use contexture_ir::Item;
use contexture_tokens::TokenCounter;

use super::entry::TreeEntry;
use crate::append::is_state_node;
use crate::error::EngineError;
use crate::path::parse_node_item;

/// How much of a long text is looked at for its first line, in bytes.
const PREVIEW_BYTES: usize = 1_000;

/// What is said of one entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntrySummary {
    /// The beginning of its text in quotes; else the functions that it calls, or what they gave.
    pub text: String,
    /// Tokens of its items' texts.
    pub tokens: u64,
}

impl EntrySummary {
    /// An entry in one line, and its tokens.
    ///
    /// # Errors
    /// A node of it is damaged.
    pub fn from_entry(entry: &TreeEntry, counter: &dyn TokenCounter) -> Result<Self, EngineError> {
        let mut tokens = 0;
        let text = summarise_entry(entry, |text| tokens += counter.count(text).count)?;
        Ok(Self { text, tokens })
    }
}

/// Returns what an entry says, in one line. `see` is called with the text of each of its items.
pub(super) fn summarise_entry(
    entry: &TreeEntry,
    mut see: impl FnMut(&str),
) -> Result<String, EngineError> {
    let mut message = String::new();
    let mut calls = Vec::new();
    let mut outputs = String::new();
    let mut thoughts = String::new();
    for node in &entry.nodes {
        let item = parse_node_item(node)?;
        let text = item.text();
        see(&text);
        let preview = one_line(preview_prefix(&text));
        match &item {
            Item::FunctionCall(call) => calls.push(one_line(&call.name)),
            Item::FunctionCallOutput(_) if outputs.is_empty() => outputs = preview,
            Item::Reasoning(_) if thoughts.is_empty() => {
                thoughts = format!("(reasoning) {preview}");
            }
            Item::Message(_) | Item::Compaction(_) if message.is_empty() && !preview.is_empty() => {
                message = format!("\"{preview}\"");
            }
            Item::Extension(extension) if entry.nodes.len() == 1 => {
                message = match is_state_node(&item) {
                    true => "(state changed)".to_owned(),
                    false => one_line(&extension.kind),
                }
            }
            _ => {}
        }
    }
    // Words first, then calls, then what they gave; reasoning only where nothing else is.
    Ok(match (message.is_empty(), calls.is_empty()) {
        (false, _) => message,
        (true, false) => calls.join(", "),
        (true, true) if outputs.is_empty() => thoughts.trim_end().to_owned(),
        (true, true) => outputs,
    })
}

fn preview_prefix(text: &str) -> &str {
    text.get(..text.floor_char_boundary(PREVIEW_BYTES))
        .unwrap_or_default()
}
