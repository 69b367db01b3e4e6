//! Provider and UI message formats, to items and back.
//!
//! [`lift`] reads a request, a response or an array of messages of a [`Format`] into a
//! [`Transcript`](contexture_ir::Transcript); [`lower`] writes one. Lowering to the format a document
//! came from gives back the same JSON value; to another format, whatever it has no word for is listed
//! as a [`Loss`]. Lowering works by [`Run`], so that compilers can cache what did not change.
//!
//! One folder a format: typed structs for what we write, slices of JSON text for what we read and do
//! not know. Not here: tokens, budgets, storage, HTTP.

mod anthropic;
mod carry;
mod document;
mod entry;
mod error;
mod format;
mod gemini;
mod items;
mod json;
mod loss;
mod lower;
mod media;
mod openai_chat;
mod openai_responses;
mod system_tag;
pub mod ui;

pub use document::{Lifted, Lowered, lift, lower, rebase};
pub use entry::{Entry, Run, Side, entries, pairs, runs, side};
pub use error::WireError;
pub use format::{Format, Kind};
pub use loss::{Loss, LossKind, Losses};
pub use lower::{Chunk, Dialect, Envelope, Facts, envelope, lower_run};
pub use media::DataUrl;
