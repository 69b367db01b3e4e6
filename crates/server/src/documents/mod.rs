//! The JSON documents that the API gives, and the command line under `--json`: one definition of each.
//!
//! Fields are added, never renamed or removed. Documents know the libraries' types, nothing of HTTP.

mod conversation;
mod instant;
mod problem;

pub use conversation::{ConversationDocument, ConversationsDocument};
pub use instant::instant;
pub use problem::ProblemDocument;
