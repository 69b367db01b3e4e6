//! Models: the trait of whatever answers a payload, and two implementations for tests.
//!
//! [`Model`] is the trait. Two implementations are here, both without a network: [`ScriptedModel`] answers what
//! a test wrote down, [`ReplayModel`] what a provider once answered. A request and its response are
//! bodies in a provider's format; reading them is `contexture-wire`'s work. An answer may also come as a
//! [`ModelStream`], whose end is the same body.
//!
//! An error says whether a retry may help; [`Retry`] and [`delay_before_retry`] say how long to wait before it.
//!
//! Not here: HTTP, keys, doing the retry.

mod call;
mod canned_reply;
mod error;
mod events_of_response;
mod model;
mod replay;
mod retry;
mod scripted;
mod stream;

pub use call::{ModelRequest, ModelResponse};
pub use canned_reply::CannedReply;
pub use error::ModelError;
pub use model::Model;
pub use replay::{RecordedExchange, ReplayMatching, ReplayModel};
pub use retry::{Backoff, Retry, Retryable, delay_before_retry};
pub use scripted::{ScriptedModel, text_response};
pub use stream::ModelStream;
