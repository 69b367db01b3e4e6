//! TODO.

mod export;
mod links;
mod messages;
mod resolve;

pub(crate) use export::{export_session, export_text, load_transcript};
pub use links::{LinkTarget, PathMatches};
pub(crate) use links::{read_context, resolve_link, search_path};
pub use messages::MessageView;
pub(crate) use messages::fold_messages;
pub use resolve::Resolved;
pub(crate) use resolve::{load_messages, resolve_conversation, system_prompt};
