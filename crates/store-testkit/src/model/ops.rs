//! The operations that are tried: what they are, and how they are drawn.

use std::collections::BTreeMap;

use contexture_store::{Activation, OnMoved};
use proptest::prelude::*;

/// One operation of a test case. A number selects one of the things that exist when it runs, modulo their number.
#[derive(Clone, Debug)]
pub(super) enum Op {
    /// Appends to a branch.
    Append(AppendOp),
    /// Appends, possibly nothing, on a new branch at a node (0: at none).
    Open {
        /// Number of the node to start at, from 1; 0 stands for none.
        base: usize,
        /// Number of the branch whose name the new one's is derived from.
        from: usize,
        /// Number of items to append.
        count: usize,
        /// Whether the new branch becomes the active one.
        activate: Activation,
    },
    /// Repeats an append that succeeded.
    Repeat(usize),
    /// Appends other bytes under a known id.
    Conflict(usize),
    /// Makes a branch active.
    Activate(usize),
    /// Deletes a branch's name.
    Delete(usize),
    /// Gives a branch one of three names.
    Rename {
        /// Number of the branch to rename.
        branch: usize,
        /// Number of the new name, one of three.
        to: usize,
    },
    /// Redacts a node.
    Redact(usize),
    /// Moves a branch to a node (0: to none), mostly from its true head.
    Move {
        /// Number of the branch to move.
        branch: usize,
        /// Number of nodes between the tip and the expected head.
        back: usize,
        /// Number of the node to move to, from 1; 0 stands for none.
        to: usize,
    },
    /// Claims a branch.
    Claim {
        /// Number of the branch to claim.
        branch: usize,
        /// Whom it may supersede.
        over: ClaimOverOp,
        /// The process that claims it; `None` to release it.
        holder: Option<u8>,
    },
    /// Points a checkpoint at a node.
    Set {
        /// Number of the checkpoint, one of four.
        checkpoint: usize,
        /// Number of the node to point at.
        node: usize,
    },
    /// Deletes a checkpoint.
    Unset(usize),
    /// Closes the store and opens it again.
    Reopen,
}

/// Whom a claim may supersede.
#[derive(Clone, Copy, Debug)]
pub(super) enum ClaimOverOp {
    Anybody,
    Nobody,
    /// The claim of this age, 0 for the current one.
    Age(u64),
}

/// An append to a branch.
#[derive(Clone, Debug)]
pub(super) struct AppendOp {
    /// Number of the branch to append to.
    pub(super) branch: usize,
    /// Number of nodes between the tip and the expected head; `None` appends at the tip.
    pub(super) back: Option<usize>,
    /// Reaction to a head that has moved.
    pub(super) on_moved: OnMoved,
    /// Age of the writer's fence, 0 for the current one; `None` for no fence.
    pub(super) fence: Option<u64>,
    /// Number of items to append.
    pub(super) count: usize,
    /// State entries to change, numbered 0 to 4, with their values; `None` removes an entry.
    pub(super) patch: BTreeMap<u8, Option<u8>>,
    /// Index of the first item that carries the new state.
    pub(super) from: usize,
    /// Value outside the tree that is written with the items.
    pub(super) entry: Option<EntryWrite>,
}

/// Write of a value outside the tree, as a part of an append.
#[derive(Clone, Debug)]
pub(super) struct EntryWrite {
    /// Number of the key, one of three.
    pub(super) key: u8,
    /// Value to write; `None` deletes it.
    pub(super) value: Option<u8>,
    /// Whether the write expects a version that is not the stored one.
    pub(super) stale: bool,
}

fn an_append() -> impl Strategy<Value = AppendOp> {
    (
        0_usize..8,
        // Mostly at the tip or the true head; an old head often enough to open siblings.
        prop_oneof![2 => Just(None), 3 => Just(Some(0)), 1 => (1_usize..4).prop_map(Some)],
        prop_oneof![Just(OnMoved::Refuse), Just(OnMoved::Sibling)],
        prop_oneof![4 => Just(None), 1 => (0_u64..2).prop_map(Some)],
        1_usize..6,
        prop::collection::btree_map(0_u8..5, prop::option::weighted(0.8, 0_u8..4), 0..3),
        0_usize..3,
        prop::option::weighted(0.3, an_entry()),
    )
        .prop_map(
            |(branch, back, on_moved, fence, count, patch, from, entry)| AppendOp {
                branch,
                back,
                on_moved,
                fence,
                count,
                patch,
                from,
                entry,
            },
        )
}

fn a_claim() -> impl Strategy<Value = Op> {
    let over = prop_oneof![
        1 => Just(ClaimOverOp::Anybody),
        2 => Just(ClaimOverOp::Nobody),
        2 => (0_u64..2).prop_map(ClaimOverOp::Age),
    ];
    let holder = prop::option::weighted(0.7, 0_u8..2);
    (any::<usize>(), over, holder).prop_map(|(branch, over, holder)| Op::Claim {
        branch,
        over,
        holder,
    })
}

fn an_entry() -> impl Strategy<Value = EntryWrite> {
    let value = prop::option::weighted(0.8, 0_u8..4);
    // Rarely, since a refused value refuses the whole append and leaves nothing to compare.
    let stale = prop_oneof![3 => Just(false), 1 => Just(true)];
    (0_u8..3, value, stale).prop_map(|(key, value, stale)| EntryWrite { key, value, stale })
}

/// Generates any operation, appends most often.
pub(super) fn any_op() -> impl Strategy<Value = Op> {
    let activation = prop_oneof![Just(Activation::Keep), Just(Activation::Activate)];
    let open = (any::<usize>(), 0_usize..8, 0_usize..4, activation);
    prop_oneof![
        12 => an_append().prop_map(Op::Append),
        3 => open.prop_map(|(base, from, count, activate)| Op::Open { base, from, count, activate }),
        1 => any::<usize>().prop_map(Op::Repeat),
        1 => any::<usize>().prop_map(Op::Conflict),
        1 => any::<usize>().prop_map(Op::Activate),
        1 => any::<usize>().prop_map(Op::Delete),
        1 => (any::<usize>(), 0_usize..3).prop_map(|(branch, to)| Op::Rename { branch, to }),
        1 => any::<usize>().prop_map(Op::Redact),
        2 => (any::<usize>(), prop_oneof![4 => Just(0_usize), 1 => 1_usize..4], any::<usize>())
            .prop_map(|(branch, back, to)| Op::Move { branch, back, to }),
        1 => a_claim(),
        1 => (0_usize..4, any::<usize>()).prop_map(|(checkpoint, node)| Op::Set { checkpoint, node }),
        1 => (0_usize..4).prop_map(Op::Unset),
        1 => Just(Op::Reopen),
    ]
}
