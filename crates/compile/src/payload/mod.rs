//! The finished request: envelope and rope joined, with cache markers set or a cache object named.
//!
//! A payload is `before · elements joined by commas · after`. It is flattened only when it is sent, and its older elements are
//! shared with the payloads of earlier calls.
//!
//! * `assemble` joins contributions, kept messages and history.
//! * `body` is the payload: its JSON and its hashes; `outline` is what a cache sees of it.
//! * `place_markers` applies the plan of markers, predicts what the cache will read and write, and advises cache objects.
//! * `cached_content` names a cache object and leaves out what it holds, or writes the body that makes one.
//!
//! Markers are set on the finished payload, so the elements stay the same whatever is marked.
//!
//! Not here: where markers belong and what they cost (`contexture-prompt-cache`).

mod assemble;
mod body;
mod cached_content;
mod outline;
mod place_markers;

pub(crate) use assemble::{assemble_payload, payload_head};
pub use body::Payload;
pub(crate) use place_markers::apply_caching;
