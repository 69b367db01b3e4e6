//! Models: what answers a payload.
//!
//! [`Model`] is the trait. Two implementations are here, both without a network: [`ScriptedModel`] says
//! what a test wrote down, [`ReplayModel`] what a provider once answered. A request and its answer are
//! bodies in a provider's format; reading them is `contexture-wire`'s work.
//!
//! Not here: HTTP, keys, retrying (an error says whether a retry may help), streaming.

mod error;
mod model;
mod replay;
mod scripted;

pub use error::ModelError;
pub use model::{Model, ModelRequest, ModelResponse};
pub use replay::{Exchange, Matching, ReplayModel};
pub use scripted::{ScriptedModel, text_response};
