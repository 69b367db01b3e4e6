//! A conversation's tree as people look at it: messages instead of nodes, in the order of a drawing with branches.
//!
//! `load` reads the nodes, `entry` gathers them to messages, `layout` orders them into rows, `cover` says what compactions
//! stand for, `summary` what a message says in one line, `draw` writes the rows as text. None of them recurses and none is worse than linear in the
//! nodes, so that deep and bushy trees are shown like small ones.
//!
//! Not here: colours and columns for a terminal, which the command line adds; the bare nodes with their parents,
//! which [`Conversation::tree`](crate::Conversation::tree) gives.
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap().block_on(async {
//! use contexture_engine::Engine;
//! use contexture_engine::tree::{TreeEntries, TreeRow, load_tree, layout_rows};
//! use contexture_ir::user;
//!
//! let chat = Engine::in_memory().conversation("c").open().await?;
//! let said = chat.save([user("one"), user("two")]).await?;
//! chat.rewind(&said.messages[0]).await?;
//! chat.save([user("other")]).await?;
//!
//! let tree = load_tree(&chat).await?;
//! let entries = TreeEntries::from_tree(&tree);
//! let drawn = layout_rows(&entries);
//! assert!(matches!(drawn[0], TreeRow::Entry { lane: 0, .. })); // where the active branch ends
//! assert!(matches!(drawn[1], TreeRow::Entry { lane: 1, .. })); // the other branch, beside it
//! assert!(matches!(drawn[2], TreeRow::Join { lane: 0 }));
//! # Ok::<(), contexture_engine::EngineError>(()) }).unwrap();
//! ```

mod cover;
mod draw;
mod entry;
mod layout;
mod load;
mod summary;

pub use cover::CoveredEntries;
pub use draw::draw_tree;
pub use entry::{TreeEntries, TreeEntry};
pub use layout::{TreeRow, elide_long_stretches, first_entries, layout_rows, page_of_entries};
pub use load::{ConversationTree, load_newest_message, load_tree};
pub use summary::EntrySummary;
