//! Tools that the proxy offers to models and answers itself: a client sees all that a model says but calls of these and
//! what they gave.
//!
//! Which tools there are and what they do (`tools`), when one is offered (`offering`), an answer in several rounds
//! (`rounds`, `showing`), and what of a round is the client's: of a stream (`events`, `sieve`), of documents (`merge`).
//!
//! Not here: what goes out (`rewrite`), how an answer with such calls is stored (`contexture-engine`).

mod events;
mod json;
mod merge;
mod offering;
mod rounds;
mod showing;
mod sieve;
mod tools;

pub(crate) use offering::{OfferPermission, forbid_tool_calls};
pub(crate) use rounds::{ToolLoop, ToolLoopStart};
pub(crate) use showing::{ClientReply, client_channel};
pub(crate) use tools::{ServerTool, ServerTools};
