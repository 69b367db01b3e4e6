//! Newer statements about one thing replace older ones among the best hits.
//!
//! Only statements of one person are compared. Whose words something is, is known from the kind of the item and from the
//! conversation: an owner, such as an application, may have many users.
//!
//! Not here: reading statements from texts (`slots`), and scores.

use std::collections::BTreeMap;
use std::ops::Range;

use contexture_ir::ConversationId;

use super::neighbours::NodePlace;
use super::slots::{SlotStatement, find_statements};
use crate::contract::{Hit, NodeKind, ReplacingStatement};

/// Number of best hits among which statements are compared. A constant: pages of one search must agree.
const COMPARED_STATEMENTS: usize = 100;

/// A hit whose final score is not known yet.
#[derive(Debug)]
pub(super) struct ExaminedText<K> {
    pub(super) place: NodePlace<K>,
    /// The hit with its own score and without its snippet.
    pub(super) hit: Hit,
    /// Resource of the hit's conversation.
    pub(super) resource: Option<String>,
    pub(super) text: String,
    pub(super) places: Vec<Range<usize>>,
}

/// Whose statement something is.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Speaker {
    /// The user of a conversation without a resource.
    OfConversation(ConversationId),
    /// The user of all conversations with one resource.
    OfResource(String),
}

impl Speaker {
    fn of<K>(examined: &ExaminedText<K>) -> Self {
        match &examined.resource {
            Some(resource) => Self::OfResource(resource.clone()),
            None => Self::OfConversation(examined.hit.conversation.clone()),
        }
    }
}

/// Marks statements that a newer one of the same person replaced, and ranks the newer at least as high.
pub(super) fn mark_replaced<K>(examined: &mut [ExaminedText<K>]) {
    let mut by_slot: BTreeMap<(Speaker, String), Vec<(usize, SlotStatement)>> = BTreeMap::new();
    // Neighbours without a match depend on the page, so they are left out.
    let found = examined
        .iter()
        .enumerate()
        .filter(|(_, one)| !one.places.is_empty());
    for (number, one) in found.take(COMPARED_STATEMENTS) {
        // The kind is a field of the item and never read from its text.
        if one.hit.kind == NodeKind::User {
            for (slot, statement) in find_statements(&one.text) {
                let key = (Speaker::of(one), slot);
                by_slot.entry(key).or_default().push((number, statement));
            }
        }
    }
    let mut replaced: Vec<(usize, usize)> = Vec::new();
    for mut statements in by_slot.into_values() {
        statements.sort_by_key(|(number, _)| age_of(examined, *number));
        for (place, (older, statement)) in statements.iter().enumerate() {
            let newer = statements.iter().skip(place + 1);
            let mut newer = newer.filter(|(newer, _)| is_newer(examined, *newer, *older));
            let next = newer.find(|(_, newer)| newer.replaces(statement));
            replaced.extend(next.map(|(next, _)| (*older, *next)));
        }
    }
    // Oldest first, so that of a chain of statements each has the rank to lend.
    replaced.sort_by_key(|(older, _)| age_of(examined, *older));
    for (older, newer) in replaced {
        replace_statement(examined, older, newer);
    }
}

fn age_of<K>(examined: &[ExaminedText<K>], number: usize) -> Option<(i64, u64)> {
    let hit = &examined.get(number)?.hit;
    Some((hit.created_ms, hit.depth))
}

/// Says of a text what replaced it, and ranks that at least as high.
fn replace_statement<K>(examined: &mut [ExaminedText<K>], older: usize, newer: usize) {
    let Some(score) = examined.get(older).map(|older| older.hit.score) else {
        return;
    };
    let replacing = examined.get_mut(newer).map(|newer| {
        newer.hit.score = newer.hit.score.max(score);
        ReplacingStatement {
            conversation: newer.hit.conversation.clone(),
            node: newer.hit.node,
            created_ms: newer.hit.created_ms,
        }
    });
    if let Some(older) = examined.get_mut(older) {
        older.hit.replaced = replacing;
    }
}

/// Whether one text was said after another: later, or further on in the same conversation at the same time, which is what an
/// import without times gives. Of two conversations at one time neither is known to be newer.
fn is_newer<K>(examined: &[ExaminedText<K>], newer: usize, older: usize) -> bool {
    let (Some(newer), Some(older)) = (examined.get(newer), examined.get(older)) else {
        return false;
    };
    let (newer, older) = (&newer.hit, &older.hit);
    let is_deeper = newer.conversation == older.conversation && newer.depth > older.depth;
    newer.created_ms > older.created_ms || (newer.created_ms == older.created_ms && is_deeper)
}
