//! A whole conversation as lines of JSON, out of any store and into any other.
//!
//! ```text
//! {"conversation":{"format":1,"owner":"ada","id":"chat","active":"main",…}}
//! {"branch":{"name":"main","head":"5f…","created_ms":…}}            each branch, in order of creation
//! {"checkpoint":{"name":"before","node":"5f…","at_ms":…}}           each checkpoint
//! {"blob":{"id":"a7…","bytes":{"base64":"…"}}}                      before the first node that names it
//! {"response":{"id":"c2…","base":"41…","status":"completed",…}}     before the first node of it
//! {"node":{"id":"5f…","parent":"41…","item":{…},…,"state":[…]}}     after its parent and its source
//! {"entry":{"key":"draft","at_ms":…,"value":{"text":"…"}}}          each value outside the tree
//! {"end":{"lines":…,"nodes":…,…,"blake3":"…"}}                      counts, and a hash of all before it
//! ```
//!
//! What an owner or a resource keeps outside its conversations is a text of the same kind:
//!
//! ```text
//! {"values":{"format":1,"owner":"ada"}}
//! {"entry":{"resource":"r","key":"likes","at_ms":…,"value":{"text":"…"}}}   without a resource: the owner's
//! {"end":{"lines":…,"entries":…,…,"blake3":"…"}}
//! ```
//!
//! [`Export`] gives the lines piece by piece, [`Import`] takes them one by one: neither ever holds more
//! than a page, besides the names and the ids of what it has seen. Exporting what was imported gives the
//! same bytes.
//!
//! What is not in it: nodes that no name reaches, events, running answers, and what only says how
//! often something was written: versions, fences. An id of a blob is its owner's, so a conversation
//! with blobs is imported by the same owner only. What answers were computed from is carried unless a
//! state value was redacted: importing that takes all of it.

mod export;
mod import;
mod record;
mod values;

pub use export::Export;
pub use import::{Import, ImportError, ImportedConversation};
pub use values::{ExportValues, ImportValues, ImportedValues};
