//! Models over HTTP: OpenAI Chat Completions and Responses, Anthropic Messages, Gemini, and every host
//! compatible with one of them.
//!
//! [`HttpModel`] is a [`Model`](contexture_models::Model): a payload goes to a [`Provider`], its answer comes
//! back whole or as a stream. A call is tried again, with growing waits, only while nothing of an answer has
//! come. Dropping a call or its stream closes the connection.
//!
//! An [`Upstream`] is a provider's host to which requests of others are passed on as they are.
//!
//! Keys are [`ApiKey`]s, which cannot be printed; what a provider says is searched for them before it becomes
//! an error or a log line. Redirects are not followed.
//!
//! Not here: what payloads and answers say (`contexture-wire`), which model to ask, what an answer costs.

mod decompress;
mod error;
mod frames;
mod key;
mod model;
mod options;
mod passthrough;
mod provider;
mod response_body;
mod retry;
mod root_certificates;

pub use decompress::{
    BodyStream, EventData, decompress_stream, decompress_to_end, decompress_while, event_data,
};
pub use error::ClientError;
pub use key::ApiKey;
pub use model::HttpModel;
pub use options::{ClientOptions, RetryLimits, TimeLimits};
pub use passthrough::{
    PassthroughBody, PassthroughRequest, PassthroughResponse, Upstream, UpstreamError,
    decode_request_path,
};
pub use provider::Provider;
pub use root_certificates::RootCertificate;
