//! Tests of the public interface.

#![expect(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    reason = "the lint spares test functions, not what they share; a panic here is a failed test"
)]

mod estimate;
mod exact;
mod media;
mod strings;
