//! The finished request: envelope and rope joined, with cache markers set or a cache object named.
//!
//! A payload is `before · elements joined by commas · after` and is flattened only when it is sent. Markers are set on the
//! finished payload, so the pieces stay the same whatever is marked, and payloads go on sharing them.
//!
//! Not here: where markers belong (`contexture-prompt-cache`).

mod assemble;
mod body;
mod cached_content;
mod place_markers;

pub(crate) use assemble::{assemble_payload, payload_head};
pub use body::Payload;
pub(crate) use place_markers::apply_caching;
