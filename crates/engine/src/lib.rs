//! Conversations that are kept, resolved and compiled.
//!
//! An [`Engine`] joins a store, a clock, a source of ids and a catalogue of models. It opens
//! [`Conversation`] handles: set fragments on one, put messages into a [`Draft`] and commit it,
//! resolve or compile what the model shall see, record its answer, move about in the tree.
//!
//! Not here: HTTP, SQL, providers' formats, the decisions of the compiler.

mod appending;
mod asked;
mod basis;
mod branches;
mod builder;
mod calibrating;
mod calibrations;
mod call;
mod compaction;
mod conversation;
mod copies;
mod copying;
mod draft;
mod engine;
mod environment;
mod error;
mod events;
mod export;
mod follow;
mod given;
mod import;
mod inputs;
mod instructions;
mod known;

mod layer_again;
mod layer_handle;
mod layer_host;
mod layer_model;
mod layer_session;
mod layer_shared;
mod layer_store;
mod layer_told;
mod ledger;
mod matching;
mod messages;
mod offload;
mod open;
mod options;
mod origin;
mod path;
mod pins;
mod recalling;
mod record;
mod record_level;
mod recording;
mod register;
mod replay;
mod resolve;
mod save;
mod search;
mod secrets;
mod seen;
mod spans;
mod state_list;
mod state_node;
mod targets;
pub mod tree;
mod unreplayable;
mod usage;
mod warm;
mod whole_path;

pub use appending::StepAppend;
pub use builder::ConversationBuilder;
pub use call::CompiledCall;
pub use compaction::{
    CircuitBreakerPolicy, CompactOptions, CompactRequest, CompactSpan, Compacted, CompactionDraft,
    Compactor, CompactorError, CoverEntry, GivenSummary, ManifestOnly, ModelCompactor,
    PrepareOptions, Prepared, ReportedUsage, Trigger, UsagePreference,
};
pub use conversation::Conversation;
pub use copies::CopyReport;
pub use draft::Draft;
pub use engine::Engine;
pub use environment::{Clock, IdSource, RandomIds, SystemClock, TestClock, TestIds};
pub use error::EngineError;
pub use events::{EngineEvent, EngineEventKind, Events};
pub use import::{DivergedSession, ImportOptions, Imported};
pub use instructions::Instructions;
pub use layer_handle::LayerHandle;
pub use layer_session::{LayerSession, run_prefix};
pub use layer_store::RunScope;
pub use ledger::{COMPACTION, SideUsageTracker};
pub use matching::{AnswerOptions, IngestRequest, Ingested, InterceptedCall, MatchKind};
pub use messages::MessageView;
pub use offload::{LinkTarget, PathMatches};
pub use open::Database;
pub use options::{CompileOptions, RegistryTools};
pub use path::parse_node_item;
pub use record::{RecordOptions, Recorded, RunStep};
pub use record_level::RecordLevel;
pub use replay::Replayed;
pub use resolve::Resolved;
pub use save::Committed;
pub use secrets::{SecretPattern, Secrets};
pub use state_node::state_node;
pub use targets::TargetChoice;
pub use unreplayable::Unreplayable;
