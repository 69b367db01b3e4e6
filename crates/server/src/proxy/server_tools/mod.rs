//! Tools that the proxy offers to models and answers itself: a client sees all that a model says but calls of these and
//! what they gave.
//!
//! Which tools there are and what they do (`tools`), when one is offered (`offering`), an answer in several rounds
//! (`rounds`, `showing`), and what of a round is the client's: of a stream (`events`, `sieve`), of documents (`merge`).
//!
//! Not here: what goes out (`rewrite`), how an answer with such calls is stored (`contexture-engine`).

mod client_response;
mod merge;
mod offer;
mod sse;
mod stream_editor;
mod tool_loop;
mod tools;

pub(crate) use client_response::{ClientReply, client_channel};
pub(crate) use offer::{OfferPermission, forbid_tool_calls};
pub(crate) use tool_loop::{ToolLoop, ToolLoopStart};
pub(crate) use tools::{ServerTool, ServerTools};
