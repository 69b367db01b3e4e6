//! A conversation's tree as people look at it: messages instead of nodes, in the order of a drawing with branches.
//!
//! `load` reads the nodes, `entry` gathers them to messages, `layout` orders them into rows, `cover` says what compactions
//! stand for, `summary` what a message says in one line. None of them recurses and none is worse than linear in the
//! nodes, so that deep and bushy trees are shown like small ones.
//!
//! Not here: drawing.

mod cover;
mod entry;
mod layout;
mod load;
mod summary;

pub use cover::Covered;
pub use entry::{Entries, Entry};
pub use layout::{Row, first, page, rows, shorten};
pub use load::{Tree, item, load};
pub use summary::Summary;
