//! Rows: how the records of the contract are stored in tables.
//!
//! Terms:
//!
//! * A *segment* is a run of nodes that one branch appended; a node's [`NodePosition`](path::NodePosition)
//!   is its segment and its depth. A segment names the node before its first one.
//! * A *stretch* is the part of a segment that lies on a path. A path is a few stretches, each one
//!   range of keys, so reading it needs no recursion over nodes.
//! * A *packed key* is the conversation's number in the upper 32 bits and a running number in the
//!   lower ones. It is the `INTEGER PRIMARY KEY`, so all rows of a conversation lie together in the
//!   table's own B-tree, and deleting or scanning a conversation is one range.
//!
//! Each file is one table or one part of a row: the conversation's row (numbers and counters that an
//! append changes), nodes and their columns, state roots and values, blobs, responses, events. `codec`
//! compresses what is large.
//!
//! What always holds: a row whose bytes contradict its checksum is reported as damage of this
//! conversation, with the row's number, and never as a node.
//!
//! What is not here: names for nodes ([`refs`](crate::refs)), which rows make up one append
//! ([`append`](crate::append)), transactions ([`worker`](crate::worker)).

pub(crate) mod blob;
pub(crate) mod codec;
pub(crate) mod conversation_row;
pub(crate) mod event;
pub(crate) mod node_columns;
pub(crate) mod node_row;
pub(crate) mod path;
pub(crate) mod prepared_append;
pub(crate) mod response;
pub(crate) mod state;
