//! Provider and UI message formats, to items and back.
//!
//! [`lift`] reads a request, a response or an array of messages of a [`Format`] into a
//! [`Transcript`](contexture_ir::Transcript); [`lower`] writes one. Lowering to the format a document
//! came from gives back the same JSON value (our own items: in the spelling they are stored in); to
//! another format, whatever it has no word for is listed as a [`Loss`]. Lowering works by [`RoleRun`], so
//! that compilers can cache what did not change.
//!
//! [`Accumulator`] takes an answer's stream event by event and gives the body it would have had unstreamed.
//!
//! One folder a format: typed structs for what we write, slices of JSON text for what we read and do
//! not know. Not here: tokens, budgets, storage, HTTP.

#![cfg_attr(not(test), deny(clippy::disallowed_methods, clippy::disallowed_types))]

mod accumulator;
mod anthropic;
mod carry;
mod chunk;
mod compaction;
mod document;
mod draft;
mod entry;
mod error;
mod format;
mod function_name;
mod gemini;
mod half;
mod items;
mod json;
mod lifted;
mod loss;
mod lower;
mod mark;
mod media;
mod openai;
mod openai_chat;
mod openai_responses;
mod openai_shapes;
mod pairing;
mod renames;
mod repair;
mod seam;
mod stream;
mod system_tag;
mod ttl;
pub mod ui;
mod unfinished;

pub use accumulator::Accumulator;
pub use chunk::{Chunk, ChunkStructure, Dialect, Envelope};
pub use document::{lift, lower, prefix_loss_path};
pub use entry::{
    PairedItem, RoleRun, Side, ends_step, paired_items, partner_indices, role_runs, side,
};
pub use error::WireError;
pub use format::{DocumentKind, Format, UnknownFormat};
pub use half::call_id;
pub use lifted::{Lifted, Lowered};
pub use loss::{Loss, LossKind, Losses};
pub use lower::{lower_envelope, lower_run};
pub use mark::{
    HeadPart, disable_automatic_markers, head_markers, marker_field, markers, remove_head_markers,
    remove_markers, set_head_marker, set_marker,
};
pub use media::DataUrl;
pub use pairing::{OpenCalls, OutputMatch};
pub use renames::ToolNameMap;
pub use repair::{
    BEGINNING, CONTINUE, CallIds, Charset, Issue, IssueKind, NO_RESULT, RepairRules, Repaired,
    RepairedItem, Unanswered, repair,
};
pub use seam::join_messages;
pub use stream::{PieceKind, StreamError, StreamEvent, StreamFailure};
pub use ttl::CacheTtl;
