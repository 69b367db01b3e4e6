//! Items on their way to JSON: entries of the view, blocks of them, their weight and their text in the target's format.
//!
//! Terms:
//! * An *entry* is an item as it is shown (`view_entry`): as it came, as a placeholder, as a preview.
//! * A *block* is a user side, a model step or the outputs of its calls; a *round* is one model step with its outputs and
//!   the user side it answers (`block`).
//! * The *rope* holds written blocks, and payloads share its older part (`rope`).
//!
//! An entry is selected, repaired (`repair`), lowered and weighed (`lower`, `weigh`) and in the end verified (`verify`). What a
//! block becomes depends on nothing outside it, so counts and JSON are remembered by content (`memo`).
//!
//! Not here: which items are shown and how (`history`), and how many tokens they get (`budget`).

mod block;
mod lower;
mod memo;
mod repair;
mod rope;
mod verify;
mod view_entry;
mod weigh;

pub(crate) use block::{BlockKind, group_into_rounds, split_into_blocks};
pub(crate) use lower::{LoweredBlock, Lowerer, LoweringKey};
pub(crate) use memo::Memo;
pub(crate) use repair::{repair_entries, repair_row};
pub(crate) use rope::{Element, ElementTotals, NO_ELEMENTS, Rope, SharedElements};
pub(crate) use verify::{VerifyInput, is_sound, verify_payload};
pub(crate) use view_entry::{ShownAs, ViewEntry, calls_by_output, select_for_model};
pub(crate) use weigh::ItemWeigher;
