//! Counting tokens of text and media, exactly where a vocabulary is public.
//!
//! ```
//! use contexture_tokens::{Encoding, counter_for};
//!
//! let exact = counter_for(Encoding::O200kBase).count("Hello, world!");
//! assert_eq!((exact.count, exact.is_exact()), (4, true));
//!
//! // Claude's vocabulary is not public: an estimate with bounds. Budgets use `high`.
//! let estimate = counter_for(Encoding::ClaudeV2).count("Hello, world!");
//! assert!(estimate.low <= estimate.count && estimate.count <= estimate.high);
//! ```
//!
//! * `o200k_base` and `cl100k_base` are exact: the same tokens as OpenAI's own implementation, in time linear in the
//!   text whatever the text. Their tables (0.8 and 0.4 MB packed) are unpacked when first used, in tens of milliseconds.
//! * The rest is estimated from `o200k_base` per class of content ([`EstimatingCounter`]).
//! * Images, files and sound follow the target's published rule ([`media`]), from dimensions and durations, never from
//!   the length of the encoded bytes where the header can be read.
//!
//! Text that spells a special token (`<|endoftext|>`) counts as the text it is. Anybody can bring a counter of their
//! own: [`TokenCounter`] is a small, object-safe trait.
//!
//! Invariants: counting never panics, allocates at most in proportion to the text, and depends on nothing but its
//! arguments. Not here: what providers put around messages and tools (framing belongs to the compiler), prices and
//! limits (the catalogue).

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod bounds;
mod bpe;
mod count;
mod counter;
mod estimate;
mod exact;
pub mod media;
mod registry;
mod split;
mod text_class;

pub use bounds::TokenBounds;
pub use contexture_catalogue::{Encoding, UnknownEncoding};
pub use count::{CountKind, TokenCount};
pub use counter::TokenCounter;
pub use estimate::EstimatingCounter;
pub use exact::ExactCounter;
pub use registry::counter_for;
