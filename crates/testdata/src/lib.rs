//! Recorded traffic, sessions and schemas for the tests of every crate, and generated sessions.
//!
//! Only for tests: everything here panics when its file is not as expected, for then the test suite
//! itself is broken. Files are packed with gzip; `data/README.md` names sources and licences.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test data: a file that is not as expected is a broken test suite"
)]

mod facts;
mod files;
mod planted;
mod recordings;
mod schemas;

pub use facts::{Question, SessionText, Speaker, recall_questions};
pub use files::{chat_histories, list_files, read_bytes, read_text, swe_agent, tau_bench};
pub use planted::{
    INSERTED_TEXTS, PlantedMessage, PlantedSpeaker, SeededNumbers, planted_sentences,
    planted_session,
};
pub use recordings::{Exchange, Recording, ai_sdk, exchanges};
pub use schemas::{Validator, request_validator, schema};
