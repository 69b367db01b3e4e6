//! Server tools: tools that the proxy offers to models and answers itself. The client sees all of an answer but their calls
//! and outputs.
//!
//! A *round* is one request to the model for the same answer. `tools` defines the tools and calls them, `offer` decides when
//! one is offered, `tool_loop` asks in rounds, `client_response` answers the client; what of a round is the client's is
//! decided by `stream_editor` for streams and by `merge` for documents, over the format's `ProxyEdits`.
//!
//! Not here: what goes out (`rewrite`), how an answer with such calls is stored (`contexture-engine`).

mod client_response;
mod merge;
mod offer;
mod stream_editor;
mod tool_loop;
mod tools;

pub(crate) use client_response::{ClientReply, client_channel};
pub(crate) use offer::OfferPermission;
pub(crate) use tool_loop::{ToolLoop, ToolLoopStart};
pub(crate) use tools::{ServerTool, ServerTools};
