//! Rows: how the records of the contract are stored in tables.
//!
//! Terms:
//!
//! * A conversation's *key* is 16 bytes derived from its owner and its id. It leads every primary
//!   key of the tree's tables, so that a server may spread conversations over machines by it.
//! * A *segment* is a run of nodes that one branch appended; a node's
//!   [`NodePosition`](path::NodePosition) is its segment and its depth. A segment names the segments
//!   before it with the depth at which each was left.
//! * A *stretch* is the part of a segment that lies on a path. A path is a few stretches, so reading
//!   it is one statement without recursion.
//!
//! Each file is one table or one part of a row: the conversation's row (numbers and counters that an
//! append changes), nodes, state roots and values, blobs, responses, events.
//!
//! What always holds: a write begins by locking the conversation's row, so the numbers that are
//! given out here (segments, events, branches) have no gaps and no duplicates. A row whose bytes
//! contradict its checksum is reported as damage of this conversation, and never as a node.
//!
//! What is not here: names for nodes ([`refs`](crate::refs)), which rows make up one append
//! ([`append`](crate::append)), transactions ([`connection`](crate::connection)).

pub(crate) mod blob;
pub(crate) mod conversation_row;
pub(crate) mod event;
pub(crate) mod node_row;
pub(crate) mod path;
pub(crate) mod response;
pub(crate) mod state;
