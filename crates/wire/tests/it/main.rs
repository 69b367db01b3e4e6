//! The wire crate against recorded traffic and hand-written cases.

#![expect(
    clippy::unwrap_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::indexing_slicing,
    reason = "a failed unwrap is the failed test; counts are shown with --nocapture"
)]

mod anthropic;
mod anthropic_cases;
mod bedrock;
mod bedrock_cases;
mod continued;
mod convert;
mod gemini;
mod gemini_cases;
mod hostile;
mod items;
mod marks;
mod openai_chat;
mod openai_hostile;
mod openai_responses;
mod recorded;
mod regressions;
mod repair;
mod stream_cases;
mod streams;
mod ui;
