//! What [`Engine`] and [`Conversation`] hold, and what every other module needs of them.
//!
//! A *handle* is a cheap clone: it knows its engine, owner, id and branch, and the few things a program set on it. All
//! else is read from the store when needed, so two handles never disagree. Caches decide nothing: they are checked
//! against the store or give the same bytes with any content.
//!
//! * `engine`, `conversation`: fields and getters;
//! * `info`, `read_path`: the conversation's record, path and state; `overview`: what lists show of it;
//! * `fragments`: what a program sets, adds and removes of what stands before the history;
//! * `environment`: the clock and the source of ids; `secrets`: redaction;
//! * `events`: watchers of a running engine; `spans`: tracing;
//! * `call_rows`: rows of the record of calls, and costs;
//! * `targets`: targets by name; `side_calls`: model calls for layers and summaries; `circuit_breaker`: when they rest;
//!   `background_work`: for which conversations something is done that nobody waits for;
//! * `handle_cache`: what handles share to save work; `last_bodies`: what the next body is compared with.
//!
//! Not here: the public methods (`engine`, `conversation`).

mod background_work;
mod call_rows;
mod circuit_breaker;
mod conversation;
mod engine;
mod environment;
mod events;
mod fragments;
mod handle_cache;
mod info;
mod last_bodies;
mod output_copies;
mod overview;
mod read_path;
mod secrets;
mod side_calls;
mod spans;
mod targets;

pub(crate) use background_work::BackgroundWork;
pub use call_rows::CallTiming;
pub(crate) use call_rows::{
    answer_cost, answered_call_id, begin_row, failed_outcome, new_call_id, set_row_answer,
    set_row_band, store_row,
};
pub use circuit_breaker::CircuitBreakerPolicy;
pub use conversation::Conversation;
pub use engine::{Engine, RecordLevel};
pub use environment::{Clock, IdSource, RandomIds, SystemClock, TestClock, TestIds};
pub use events::{EngineEvent, EngineEventKind, Events};
pub(crate) use fragments::{
    FragmentChange, add_fragments, fragment_change, instructions_at_position,
    instructions_from_state, list_fragments, list_stored_fragments, remove_fragments,
    set_fragments,
};
pub(crate) use handle_cache::{CachedCalibration, HandleCaches};
pub(crate) use info::{
    delete_conversation, list_conversations, load_conversation_info, load_info, load_resource,
    set_metadata, set_title,
};
pub(crate) use last_bodies::{LastBody, LastBodyKey};
pub use output_copies::CopyReport;
pub(crate) use output_copies::OutputCopies;
pub use overview::ConversationOverview;
pub(crate) use overview::load_overviews;
pub(crate) use read_path::{load_path, load_state, load_state_list, read_full_path};
pub use secrets::{SecretPattern, Secrets};
pub use side_calls::{COMPACTION, SideUsageTracker};
pub(crate) use side_calls::{LayerModel, SideCaller, call_model};
pub(crate) use spans::{compile_span, record_response_fields, record_span};
pub use targets::TargetChoice;
pub(crate) use targets::{find_adapter, register_targets, resolve_target, unregister_targets};
