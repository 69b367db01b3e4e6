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
mod bedrock;
mod continue_request;
mod custom_calls;
mod document;
mod formats;
mod framing;
mod gemini;
mod http_profile;
mod items;
mod markers;
mod model;
mod native_compaction;
mod openai;
mod outline;
pub mod proxy;
mod repair;
mod replace_history;
mod silence;
mod spec;
mod stream;
mod surrogates;
mod too_long;
mod tool_names;
mod truncation;
mod turns;
pub mod ui;

pub use accumulator::Accumulator;
pub use continue_request::{ContinueObstacle, continue_request};
pub use document::{
    detect_messages, detect_object, lift, lift_unless_cancelled, lower, lower_envelope, lower_run,
};
pub use formats::long_cache_write;
pub use framing::{Frame, FrameError, FrameReader, StreamFraming};
pub use http_profile::{
    CallPath, HttpProfile, PathCall, ResponseMode, RootEvidence, RootMatch, RootRule,
    is_path_version,
};
pub use markers::{
    automatic_marker_member, disable_automatic_markers, head_markers, limit_markers, marker_field,
    markers, remove_head_markers, remove_markers, set_head_marker, set_marker,
};
pub use model::call_ids::{HostedHalf, call_id};
pub use model::chunk::{CacheTtl, Chunk, ChunkStructure, Dialect, Envelope};
pub use model::conversion::{DocumentKind, Lifted, Lowered};
pub use model::error::WireError;
pub use model::evidence::Evidence;
pub use model::format::{Format, UnknownFormat};
pub use model::loss::{Loss, LossKind, Losses};
pub use model::media::DataUrl;
pub use model::name_rule::NameRule;
pub use model::overhead::{Overhead, TokenPair};
pub use model::paired_item::{PairedItem, RoleRun, Side, paired_items, partner_indices};
pub use model::pairing::{OpenCalls, OutputMatch};
pub use model::prompt_cache::{
    BlockContext, BlockOverhead, CacheKeyRules, CachedContentRules, ChangeReasons, FreeMembers,
    OutlineBlock, OutlineShape, OutlineVisitor, PrefixSetting, RequestPart, RoutingKey,
    StoredAnswers,
};
pub use model::repair_rules::{
    BEGINNING, CONTINUE, CallIds, Charset, ItemRepair, NO_RESULT, RepairRules, RequestTraits,
    Thinking, ToolRefusal, ToolRules, Unanswered,
};
pub use model::structure::Structure;
pub use model::text_fallback::thinking_as_text;
pub use native_compaction::NativeCompaction;
pub use outline::find_member;
pub use repair::{
    Issue, IssueKind, Repaired, RepairedItem, RepairedTools, forget_tool_shapes,
    remove_empty_tools, remove_thinking, repair, repair_tools,
};
pub use replace_history::replace_history;
pub use spec::{
    CacheMarkers, FormatHosts, FormatSpec, HeadPart, Identity, OptionMembers, ProxyError,
    RequestMembers,
};
pub use stream::{ParsedEvent, PieceKind, StreamError, StreamEvent, StreamFailure, StreamParser};
pub use too_long::TooLong;
pub use tool_names::ToolNameMap;
pub use turns::{
    MESSAGE_END, continued_message, ends_step, join_messages, put_host_last, role_runs, side,
    spoken_side,
};
