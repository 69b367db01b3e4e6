//! Export and import: a whole conversation as lines of JSON, from any store into any other.
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
//! Values that an owner or a resource has outside its conversations are exported in the same form:
//!
//! ```text
//! {"values":{"format":1,"owner":"ada"}}
//! {"entry":{"resource":"r","key":"likes","at_ms":…,"value":{"text":"…"}}}   without a resource: the owner's
//! {"end":{"lines":…,"entries":…,…,"blake3":"…"}}
//! ```
//!
//! [`Export`] returns the lines in batches, [`Import`] takes them one by one: neither holds more
//! than a page in memory, besides names and the ids of what it has seen. [`ImportAll`] takes the
//! lines of many conversations, several of them at a time. Exporting what was imported gives the
//! same bytes.
//!
//! Not exported: nodes that no name reaches, events, streams, versions and fences. The id of a blob
//! depends on its owner, so a conversation with blobs can only be imported by the same owner. If a
//! state value was redacted, the import loses the inputs of all responses.

mod export;
mod import;
mod import_all;
mod record;
mod values;

pub use export::Export;
pub use import::{Import, ImportError, ImportedConversation};
pub use import_all::{ImportAll, ImportedAll};
pub use values::{ExportValues, ImportValues, ImportedValues};
