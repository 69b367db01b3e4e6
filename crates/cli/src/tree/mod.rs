//! A conversation's tree as people look at it: messages instead of nodes, drawn with branches.
//!
//! `load` reads the nodes, `entry` gathers them to messages, `layout` orders them into rows. None of
//! them recurses and none is worse than linear in the nodes, so that deep and bushy trees are drawn
//! like small ones.

mod cover;
mod entry;
mod layout;
mod load;

pub(crate) use cover::Covered;
pub(crate) use entry::{Entries, Entry};
pub(crate) use layout::{Row, first, rows, shorten};
pub(crate) use load::{Tree, item, load};
