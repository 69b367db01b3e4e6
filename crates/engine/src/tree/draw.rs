//! The tree as text, for logs, tests and programs without a terminal of their own.
//!
//! Not here: colours, ages and columns that fit a terminal, which the command line adds.

use std::fmt::Write as _;

use super::cover::CoveredEntries;
use super::entry::{TreeEntries, TreeEntry};
use super::layout::{TreeRow, elide_long_stretches, layout_rows};
use super::load::{ConversationTree, load_tree};
use super::summary::summarise_entry;
use crate::append::load_pins;
use crate::compaction::list_compactions;
use crate::error::EngineError;
use crate::handle::Conversation;

impl TreeRow {
    /// Returns the lines and the mark at the left of the row: `@` for a message of the active branch's end, `○` for any other.
    #[must_use]
    pub fn graph(&self, entries: &TreeEntries) -> String {
        let lanes = |lane: &usize| "│ ".repeat(*lane);
        match self {
            Self::Entry { lane, entry } => {
                let is_active = entries.0.get(*entry).is_some_and(|entry| entry.active);
                format!("{}{}", lanes(lane), if is_active { "@" } else { "○" })
            }
            Self::Join { lane } => format!("{}├─╯", lanes(lane)),
            Self::Elided { lane, .. } | Self::Covered { lane, .. } => format!("{}⋮", lanes(lane)),
            Self::Hidden { .. } => "⋮".to_owned(),
            Self::Gap => String::new(),
        }
    }
}

impl TreeEntry {
    /// Returns the names that stand at the entry: that it is pinned, its branches, its checkpoints (`◆ name`).
    #[must_use]
    pub fn labels(&self) -> String {
        let pin = self.pinned.then(|| "pinned".to_owned());
        let checkpoints = self.checkpoints.iter().map(|name| format!("◆ {name}"));
        let labels = pin.into_iter().chain(self.branches.iter().cloned());
        labels.chain(checkpoints).collect::<Vec<_>>().join(" ")
    }
}

/// Draws the conversation: a line for each message, newest first, with the names of branches and checkpoints, its id, its role and
/// how it begins. Long straight stretches are shortened, and what a compaction stands for is one line, as `contexture log` does it.
///
/// ```
/// # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
/// use contexture_engine::Engine;
/// use contexture_engine::tree::draw_tree;
/// use contexture_ir::user;
///
/// let chat = Engine::in_memory().conversation("c").open().await?;
/// let said = chat.save([user("one"), user("two")]).await?;
/// chat.rewind(&said.messages[0]).await?;
/// chat.save([user("other")]).await?;
///
/// let drawn = draw_tree(&chat).await?;
/// let words: Vec<&str> = drawn.lines().map(|line| line.split("  ").last().unwrap()).collect();
/// assert_eq!(words, [r#"user "other""#, r#"user "two""#, "├─╯", r#"user "one""#]);
/// # Ok::<(), contexture_engine::EngineError>(()) }).unwrap();
/// ```
///
/// # Errors
/// The store's, or a node that is damaged.
pub async fn draw_tree(chat: &Conversation) -> Result<String, EngineError> {
    let tree = load_tree(chat).await?;
    let mut entries = TreeEntries::from_tree(&tree).without_state_rows();
    entries.mark_pinned(&load_pins(chat).await?);
    let covered = CoveredEntries::from_covers(&list_compactions(chat).await?, &tree, &entries);
    let rows = covered.fold_rows(layout_rows(&entries), &entries);
    draw_rows(&tree, &entries, &elide_long_stretches(rows, &entries))
}

fn draw_rows(
    tree: &ConversationTree,
    entries: &TreeEntries,
    rows: &[TreeRow],
) -> Result<String, EngineError> {
    let mut out = String::new();
    // They have no place in the tree.
    for branch in tree.refs.branches.iter().filter(|one| one.head.is_none()) {
        let mark = if branch.active { "@" } else { "○" };
        let _ = writeln!(out, "{mark}  {}  (empty)", branch.name);
    }
    let digits = tree.id_digits();
    for row in rows {
        let text = match row {
            TreeRow::Entry { entry, .. } => match entries.0.get(*entry) {
                Some(entry) => describe_entry(entry, digits)?,
                None => continue,
            },
            TreeRow::Elided { entries, .. } => format!("{entries} messages"),
            TreeRow::Covered { entries, .. } => format!("{entries} messages, compacted"),
            TreeRow::Hidden { entries, .. } => format!("{entries} more messages"),
            TreeRow::Join { .. } | TreeRow::Gap => String::new(),
        };
        let line = format!("{}  {text}", row.graph(entries));
        let _ = writeln!(out, "{}", line.trim_end());
    }
    Ok(out)
}

/// Names, id, role and beginning of a message.
fn describe_entry(entry: &TreeEntry, digits: usize) -> Result<String, EngineError> {
    let text = summarise_entry(entry, |_| {})?;
    let id = entry.head().map(|node| node.id.to_string());
    let id = id.unwrap_or_default();
    let id = id.get(..digits).unwrap_or(&id);
    let labels = entry.labels();
    let place = match labels.is_empty() {
        true => id.to_owned(),
        false => format!("{labels}  {id}"),
    };
    Ok(format!("{place}  {} {text}", entry.role()))
}
