//! Items on their way to JSON: entries of the view, blocks of them, their weight and their text in the target's format.
//!
//! Terms: an *entry* is an item as it is shown; a *block* is a user side, a model step or the outputs of its calls; a *round*
//! is one model step with its outputs and the user side it answers; the *rope* holds written blocks that payloads share.
//!
//! What a block becomes depends on nothing outside it, so counts and JSON are remembered by content (`memo`).
//!
//! Not here: which items are shown and how (`history`), and how many tokens they get (`budget`).

pub(crate) mod block;
pub(crate) mod lower;
pub(crate) mod memo;
pub(crate) mod repair;
pub(crate) mod rope;
pub(crate) mod verify;
pub(crate) mod view_entry;
pub(crate) mod weigh;
