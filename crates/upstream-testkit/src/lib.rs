//! A provider of models on the loopback, for tests of whatever calls one.
//!
//! An [`Upstream`] listens on a free port, asks a [`Provider`] what to answer, sends that byte for byte as told, and
//! keeps every request as it came. There are two providers, and any function from a request to an [`UpstreamResponse`] is a third:
//!
//! * [`ScriptedProvider`] speaks the formats of OpenAI (chat completions, responses), Anthropic and Gemini. What it says
//!   follows from the request alone, so two runs of a client see the same; a line of the conversation that begins with
//!   `upstream:` asks it for tool calls, for errors, for broken connections.
//! * [`ReplayingProvider`] answers what was recorded for that very request.
//!
//! ```
//! use contexture_upstream_testkit::{UpstreamResponse, Received, Upstream};
//!
//! # tokio::runtime::Runtime::new().unwrap().block_on(async {
//! let upstream = Upstream::start(|_: &Received| UpstreamResponse::text(503, "later").with_header("retry-after", "1")).await;
//! assert!(upstream.base_url().starts_with("http://127.0.0.1:"));
//! assert!(upstream.received_requests().is_empty());
//! # });
//! ```
//!
//! A [`Tap`] stands between a client and whatever it calls, and keeps what the client sent.
//!
//! Only for tests: what goes wrong here panics. Not here: TLS, HTTP/2, and clients.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "for tests: what is not as expected is a broken test suite"
)]

mod answer;
mod connection;
mod provider;
mod reader;
mod replaying;
mod scripted;
mod tap;
mod upstream;

pub use answer::{Gate, UpstreamResponse};
pub use provider::{Provider, Received};
pub use replaying::ReplayingProvider;
pub use scripted::ScriptedProvider;
pub use tap::Tap;
pub use upstream::{Upstream, UpstreamLog};
