//! Standing rules: found in what people write, and in nothing else.

#![expect(clippy::indexing_slicing, reason = "tests")]

mod fresh_sentences;
mod planted_sessions;
mod recorded_messages;
mod taken_back;
