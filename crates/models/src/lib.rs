//! Models: the trait of whatever answers a payload, and two implementations for tests.
//!
//! [`Model`] is the trait. Two implementations are here, both without a network: [`ScriptedModel`] answers what
//! a test wrote down, [`ReplayModel`] what a provider once answered. A request and its response are
//! bodies in a provider's format; reading them is `contexture-wire`'s work. An answer may also come as a
//! [`ModelStream`], whose end is the same body.
//!
//! Not here: HTTP, keys, retrying (an error says whether a retry may help).

mod call;
mod canned_reply;
mod error;
mod events_of_response;
mod model;
mod replay;
mod scripted;
mod stream;

pub use call::{ModelRequest, ModelResponse};
pub use canned_reply::CannedReply;
pub use error::ModelError;
pub use model::Model;
pub use replay::{RecordedExchange, ReplayMatching, ReplayModel};
pub use scripted::{ScriptedModel, text_response};
pub use stream::ModelStream;
