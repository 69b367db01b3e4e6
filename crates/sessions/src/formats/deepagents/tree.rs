//! The rows of a chat as a tree of items.
//!
//! A row whose parent is not there, or that is its own ancestor, is a beginning, as it is for the
//! package: its chains end there.

use std::collections::{BTreeMap, BTreeSet};

use contexture_ir::{ContentHash, Message, MessageId, UiRole};

use crate::error::SessionError;
use crate::formats::deepagents::rows::{MessageRow, RowFaults};
use crate::formats::ui::as_message;
use crate::session::{SessionNode, audience_of, origin_of};

/// Items in their places.
#[derive(Debug, Default)]
pub(super) struct ChatTree {
    /// System messages that stand before everything.
    pub(super) instructions: Vec<Message>,
    pub(super) nodes: Vec<SessionNode>,
    /// What the nodes' ids derive from: what a node says and all that is before it.
    pub(super) keys: Vec<ContentHash>,
    /// The node a row ends with, by row: its own last one, else the one before it.
    pub(super) ends: Vec<Option<usize>>,
}

/// A path is walked down and up again.
enum WalkStep {
    Down(usize),
    Up(usize),
}

/// Puts the rows in their places, each behind its parent.
pub(super) fn build_tree(
    rows: &[MessageRow],
    faults: &mut RowFaults,
) -> Result<ChatTree, SessionError> {
    let parents = resolve_parents(rows, faults)?;
    let children = children_of(&parents);
    let mut walk = TreeWalk {
        rows,
        parents,
        children,
        reached: vec![false; rows.len()],
        on_path: BTreeMap::new(),
        tree: ChatTree {
            ends: vec![None; rows.len()],
            ..ChatTree::default()
        },
    };
    // Beginnings in order; recursion is replaced by a stack of steps, since a chat is as deep as it is long.
    for row in 0..rows.len() {
        if walk.parents.get(row) == Some(&None) {
            walk.walk_from(row, faults)?;
        }
    }
    walk.break_cycles(faults)?;
    Ok(walk.tree)
}

/// Children by parent, in the order of the rows: siblings stay in the order they were written.
fn children_of(parents: &[Option<usize>]) -> Vec<Vec<usize>> {
    let mut children: Vec<Vec<usize>> = parents.iter().map(|_| Vec::new()).collect();
    for (row, parent) in parents.iter().enumerate() {
        if let Some(list) = parent.and_then(|parent| children.get_mut(parent)) {
            list.push(row);
        }
    }
    children
}

/// The parent of each row, where it is a row of this chat.
fn resolve_parents(
    rows: &[MessageRow],
    faults: &mut RowFaults,
) -> Result<Vec<Option<usize>>, SessionError> {
    let mut places: BTreeMap<&str, usize> = BTreeMap::new();
    // The later of two rows with one id wins in the map, as in the package.
    for (index, row) in rows.iter().enumerate() {
        if places.insert(&row.id, index).is_some() {
            faults.record_fault(&row.place, "an id of its own", "one that stands twice")?;
        }
    }
    let mut parents = Vec::with_capacity(rows.len());
    for row in rows {
        let found = row.parent.as_deref().map(|parent| places.get(parent));
        if found == Some(None) {
            let parent = row.parent.as_deref().unwrap_or_default();
            let found = format!("parent {parent:.60?}, which is not there");
            faults.record_fault(&row.place, "a parent in this chat", &found)?;
        }
        // A parent that is not there makes the row a beginning.
        parents.push(found.flatten().copied());
    }
    Ok(parents)
}

struct TreeWalk<'a> {
    rows: &'a [MessageRow],
    parents: Vec<Option<usize>>,
    children: Vec<Vec<usize>>,
    reached: Vec<bool>,
    /// How often a message id stands on the path that is walked.
    on_path: BTreeMap<&'a str, usize>,
    tree: ChatTree,
}

impl<'a> TreeWalk<'a> {
    /// Walks what no beginning leads to: rows behind a circle, which is cut at its first row.
    fn break_cycles(&mut self, faults: &mut RowFaults) -> Result<(), SessionError> {
        let rows = self.rows;
        for row in 0..rows.len() {
            if self.reached.get(row) != Some(&false) {
                continue;
            }
            let cut = self.cycle_start(row);
            if let Some(row) = rows.get(cut) {
                let found = "itself among those before it";
                faults.record_fault(&row.place, "a message after another one", found)?;
            }
            // Cutting the link at the circle's first row makes it a beginning like any other.
            if let Some(parent) = self.parents.get_mut(cut) {
                *parent = None;
            }
            self.walk_from(cut, faults)?;
        }
        Ok(())
    }

    fn walk_from(&mut self, beginning: usize, faults: &mut RowFaults) -> Result<(), SessionError> {
        let rows = self.rows;
        let mut steps = vec![WalkStep::Down(beginning)];
        while let Some(step) = steps.pop() {
            match step {
                WalkStep::Down(index) => {
                    let Some(row) = rows.get(index) else { continue };
                    // A row is walked once, even where a damaged chat reaches it twice.
                    match self.reached.get_mut(index) {
                        Some(reached) if !*reached => *reached = true,
                        _ => continue,
                    }
                    let message = self.message_id(row, faults)?;
                    self.add_row_nodes(index, row, &message);
                    // Counted down again on the way up, so that the count is of ancestors only.
                    *self.on_path.entry(&row.message_id).or_default() += 1;
                    steps.push(WalkStep::Up(index));
                    let children = self.children.get(index).into_iter().flatten();
                    // Reversed, because a stack gives back the last first.
                    steps.extend(children.rev().copied().map(WalkStep::Down));
                }
                WalkStep::Up(index) => {
                    self.leave_row(index);
                }
            }
        }
        Ok(())
    }

    fn leave_row(&mut self, index: usize) {
        let id = self.rows.get(index).map(|row| row.message_id.as_str());
        if let Some(count) = id.and_then(|id| self.on_path.get_mut(id)) {
            *count -= 1;
        }
    }

    /// The message's id, unique on its path.
    fn message_id(&self, row: &MessageRow, faults: &mut RowFaults) -> Result<String, SessionError> {
        let id = &row.message_id;
        // A row without items has no node that an id could belong to.
        if row.items.is_empty() {
            return Ok(String::new());
        }
        let repeated = self
            .on_path
            .get(id.as_str())
            .is_some_and(|count| *count > 0);
        // Message ids are unique on a path here; the package allows an edited message to keep the old one.
        let unique = if repeated || id.is_empty() {
            format!("{id}#{}", row.id)
        } else {
            id.clone()
        };
        if MessageId::new(&unique).is_ok() {
            return Ok(unique);
        }
        // Derived from the row, so that importing again gives the same id.
        let instead = format!("message-{}", ContentHash::of(row.id.as_bytes()));
        let expected = "a message id of 1 to 255 bytes without control characters";
        faults.record_fault(
            &row.place,
            expected,
            &format!("another one, replaced by {instead}"),
        )?;
        Ok(instead)
    }

    fn add_row_nodes(&mut self, index: usize, row: &'a MessageRow, message: &str) {
        let tree = &mut self.tree;
        let parent = self.parents.get(index).copied().flatten();
        let mut end = parent.and_then(|parent| tree.ends.get(parent).copied().flatten());
        // Leading system messages are instructions, as in every other format.
        let leads = row.role == UiRole::System && tree.nodes.is_empty();
        if leads {
            tree.instructions
                .extend(row.items.iter().filter_map(as_message));
        }
        for item in row.items.iter().filter(|_| !leads) {
            // The key folds the key before it: a change to any ancestor gives all nodes after it new ids, as
            // new content must.
            let before = end.and_then(|end| tree.keys.get(end));
            let before = before.map_or(&[][..], |key| key.as_bytes());
            let said = item.to_json();
            let parts = [
                before,
                row.id.as_bytes(),
                message.as_bytes(),
                said.as_bytes(),
            ];
            tree.keys.push(ContentHash::derive("deepagents", &parts));
            let node = tree.nodes.len();
            tree.nodes.push(SessionNode {
                parent: end,
                origin: origin_of(item),
                audience: audience_of(item),
                item: item.clone(),
                message_id: Some(message.to_owned()),
                created_at: row.created_at,
                imported: Some(node),
            });
            end = Some(node);
        }
        // A row without items ends where its parent does.
        if let Some(place) = tree.ends.get_mut(index) {
            *place = end;
        }
    }

    /// The first row of the circle that a row's ancestors end in.
    fn cycle_start(&self, row: usize) -> usize {
        let mut climbed = BTreeSet::new();
        let mut path = Vec::new();
        let mut at = row;
        // Climbs until a row repeats: that row is on the circle. The smallest index makes the choice
        // independent of the start.
        while climbed.insert(at) {
            path.push(at);
            at = self.parents.get(at).copied().flatten().unwrap_or(at);
        }
        let first = path.iter().position(|one| *one == at).unwrap_or(0);
        path.iter().skip(first).min().copied().unwrap_or(row)
    }
}
