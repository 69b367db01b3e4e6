//! Newer statements about one thing replace older ones among the best hits.
//!
//! Not here: reading statements from texts (`slots`), and scores.

use std::collections::BTreeMap;
use std::ops::Range;

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
    pub(super) depth: u64,
    pub(super) text: String,
    pub(super) places: Vec<Range<usize>>,
}

/// Marks statements that a newer one of the same person replaced, and ranks the newer at least as high.
pub(super) fn mark_replaced<K>(examined: &mut [ExaminedText<K>]) {
    let mut by_slot: BTreeMap<String, Vec<(usize, SlotStatement)>> = BTreeMap::new();
    // Neighbours without a match depend on the page, so they are left out.
    let found = examined
        .iter()
        .enumerate()
        .filter(|(_, one)| !one.places.is_empty());
    for (number, one) in found.take(COMPARED_STATEMENTS) {
        // Whose words something is, is a field of the item and never read from its text.
        if one.hit.kind == NodeKind::User {
            for (slot, statement) in find_statements(&one.text) {
                by_slot.entry(slot).or_default().push((number, statement));
            }
        }
    }
    for mut statements in by_slot.into_values() {
        // Of two at one time, the later on the path is the newer.
        let age = |number: usize| {
            examined
                .get(number)
                .map(|one| (one.hit.created_ms, one.depth))
        };
        statements.sort_by_key(|(number, _)| age(*number));
        let mut score = 0;
        for (place, (number, statement)) in statements.iter().enumerate() {
            let newer = statements.iter().skip(place + 1);
            let next = newer.clone().find(|(_, newer)| newer.replaces(statement));
            let next = next.and_then(|(next, _)| examined.get(*next));
            let next = next.map(|next| ReplacingStatement {
                conversation: next.hit.conversation.clone(),
                node: next.hit.node,
                created_ms: next.hit.created_ms,
            });
            let Some(one) = examined.get_mut(*number) else {
                continue;
            };
            if place > 0 {
                one.hit.score = one.hit.score.max(score);
            }
            // What is not replaced lends no rank to what follows.
            score = if next.is_some() {
                one.hit.score.max(score)
            } else {
                0
            };
            one.hit.replaced = next;
        }
    }
}
