//! Typed entries of a conversation's state: how each is stored and read back.
//!
//! *State* is a set of keyed values that hangs off a node. A rewind or a fork takes the values of the node it goes to, so
//! an entry never needs to be undone by hand. Each type here owns its key, its JSON and its version:
//!
//! * `list`: a list under one key, replaced by compare-and-set;
//! * `covers` (`@cover`): compactions in effect, and how each was made;
//! * `pins` (`@pins`): pinned nodes;
//! * `dropped_rules` (`@rules`): standing rules that the host has dropped;
//! * `instructions` (`path/instructions/…`): what stands before the history;
//! * `request_settings` (`path/instructions/request`): tools and options of an imported or ingested request;
//! * `import_origin`: where an imported conversation came from, which is metadata and not state of a node.
//!
//! Keys that begin with `@` decide about calls (plans, covers, pins, dropped rules) and are read together for a replay; keys below
//! `path/` and `run/` belong to layers, of which `instructions` is the built-in one.
//!
//! Two writers of one entry do not merge. The second append is refused with a conflict, and its caller reads the entry
//! again and repeats the change.
//! A list of another version is an error and is never overwritten: it is left as it is for the program that wrote it. A
//! plan is the exception, as it only saves work: one that cannot be read counts as none.
//!
//! A redacted value reads as empty: what it named is gone
//! with it.
//!
//! Nothing here reads or writes a store: changes are values that an append carries.
//!
//! Not here: reading state (`handle`), storing it (`append`), states of layers (`hooks`).

mod covers;
mod dropped_rules;
mod import_origin;
mod instructions;
mod list;
mod pins;
mod request_settings;

pub use covers::CoverEntry;
pub(crate) use covers::{Covers, encode_provenance, parse_provenance};
pub(crate) use dropped_rules::DroppedRules;
pub(crate) use import_origin::{IMPORT_KEY, ImportOrigin, node_key_base};
pub use instructions::Instructions;
pub(crate) use instructions::{
    INSTRUCTIONS_PREFIX, fragments_change, fragments_replacement, messages_change,
    require_data_fragments,
};
pub(crate) use list::{StateList, StateListEntry};
pub(crate) use pins::Pins;
pub(crate) use request_settings::{settings_change, settings_prefix, stored_settings};
