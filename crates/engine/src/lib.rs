//! Conversations that are stored as trees, resolved to messages and compiled for models.
//!
//! An [`Engine`] joins a store, a clock, a source of ids and a catalogue of models. It opens [`Conversation`] handles: set
//! fragments on one, put messages into a [`Draft`] and commit it, resolve or compile what the model shall see, record its
//! answer, move to another branch.
//!
//! The modules, from the bottom up: `error`, `presence` (which processes share the store), `claim_fence` (the fence of a claimed branch), `exchange` (requests under way), `path` (nodes read from a store), `state`
//! (typed entries of state), `handle` (what engine and conversation hold), `refs`, `claim` (who writes to a branch), `search` and `owner_events`, `append` (the one way into
//! the store), `hooks` (layers around an append), `view`, `draft`, `call`, `call_bodies` (requests as they came), `past_call`, `compaction`, `record`, `import`, `ingest`,
//! `tree`, `inspect`; on top `conversation`, `engine` and `builder`, which only delegate. A module uses those below it and none above.
//!
//! Not here: HTTP, SQL, providers' formats, the decisions of the compiler.

mod append;
mod builder;
mod call;
mod call_bodies;
mod claim;
mod claim_fence;
mod compaction;
mod conversation;
mod draft;
mod engine;
mod error;
mod exchange;
mod handle;
mod hooks;
mod import;
mod ingest;
mod inspect;
mod owner_events;
mod past_call;
mod path;
mod presence;
mod record;
mod refs;
mod search;
mod state;
pub mod tree;
mod view;

pub use append::{RunStep, state_node};
pub use builder::ConversationBuilder;
pub use call::{
    CompileAttempt, CompileOptions, CompiledCall, KeptCall, LastTarget, RegistryTools, Replayed,
    SettingsSource, ToolFilter, call_cache_tokens,
};
pub use call_bodies::{BODY_CHAIN_MS, EncodedBody};
pub use claim::BranchClaim;
pub use compaction::{
    AnsweredRequest, BackgroundSummary, CompactOptions, CompactRequest, CompactSpan, Compacted,
    CompactionDraft, Compactor, CompactorError, GivenSummary, ManifestOnly, ModelCompactor,
    NoticePolicy, PrepareOptions, Prepared, ReportedUsage, Strategy, SummaryModel, SummaryPayer,
    Trigger, UsagePreference,
};
pub use draft::{Committed, Draft};
pub use error::{EngineError, Unreplayable};
pub use exchange::{AnswerDelivery, Exchange};
pub use handle::{
    COMPACTION, CallTiming, CircuitBreakerPolicy, Clock, Conversation, ConversationOverview,
    CopyReport, Engine, EngineEvent, EngineEventKind, Events, IdSource, RandomIds, RecordLevel,
    SecretPattern, Secrets, SideUsageTracker, SystemClock, TargetChoice, TestClock, TestIds,
};
pub use hooks::{LayerHandle, LayerSession, RunScope, StepAppend, run_prefix};
pub use import::{DivergedSession, ImportOptions, Imported};
pub use ingest::{AnswerOptions, IngestRequest, Ingested, InterceptedCall, MatchKind, Withdrawal};
pub use inspect::{FragmentEstimate, Inspection};
pub use owner_events::{FollowFrom, FollowOwner, OwnerEvent, OwnerTail};
pub use past_call::{MissingPart, PastAnswer, PastCall, PastRequest, RequestSource};
pub use path::parse_node_item;
pub use presence::ProcessState;
pub use record::{RecordOptions, Recorded};
pub use refs::MovedCheckpoint;
pub use state::{CoverEntry, Instructions};
pub use view::{LinkTarget, MessagePage, MessageView, OlderMessages, Resolved};
