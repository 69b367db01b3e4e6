//! The wire crate against recorded traffic and hand-written cases.

mod anthropic;
mod gemini;
mod items;
mod openai_chat;
mod openai_responses;
mod recorded;
mod ui;
