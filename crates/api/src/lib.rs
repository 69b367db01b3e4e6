//! The JSON documents of Contexture's HTTP API, which the command line prints under `--json`: one definition of each.
//!
//! A *document* is a serializable view of a library type, with its own field names and its OpenAPI schema. Documents are a
//! stable contract: fields are added, never renamed or removed, and a [`problem::Code`] keeps its word.
//!
//! Not here: HTTP status types, headers and responses (`contexture-server`), the library types themselves (`contexture`).

mod documents;
mod item_kind;
pub mod operations;
pub mod policy;
pub mod problem;
pub mod schema;
mod time;

pub use documents::{
    AnswerDocument, AnsweredBy, AnsweredCallDocument, AppendDocument, BandPartDocument,
    BranchDocument, BranchesDocument, CacheUseDocument, CallAnswerDocument, CallBandDocument,
    CallDocument, CallItemsDocument, CallPredictionDocument, CallReportDocument,
    CallRequestDocument, CallTokensDocument, CallsDocument, CheckDocument, CheckedDocument,
    CheckpointDocument, CheckpointsDocument, CompactionDocument, CompileDocument, CompiledDocument,
    ConversationDocument, ConversationOverviewDocument, ConversationsDocument, ConvertedDocument,
    CountDocument, CountsDocument, CoverDocument, CoversDocument, DecidedDocument, DeltaDocument,
    DiffDocument, DiffSideDocument, DifferenceDocument, DivergenceDocument, EarlierValueDocument,
    EventDocument, EventsDocument, ExcerptDocument, ExpiryDocument, ExplainedDocument,
    ExplainedItemDocument, ExplainedTextDocument, FirstDifferenceDocument, FoundDocument,
    HandleDocument, HandledDocument, HitDocument, IndexProgressDocument, IngestDocument,
    IngestedDocument, LedgerDayDocument, LedgerDocument, LedgerEntryDocument, LedgerSumDocument,
    LineDocument, LogDocument, LogEntryDocument, LossDocument, MessagesDocument, ModelDocument,
    ModelsDocument, NearbyDocument, NearbyItemDocument, NodeDocument, NodesDocument, NoteDocument,
    NoteDoneDocument, NoteEditDocument, NoteLifetime, NotesDocument, OwnerDocument, OwnersDocument,
    PinDocument, PinsDocument, PoliciesDocument, PolicyChoice, PolicyDocument, PolicyRouteDocument,
    PrefixBreakDocument, QueueRunDocument, RecordDocument, RecordedDocument, RenderedDocument,
    RepairDocument, ReplacedDocument, RequestDocument, RequestView, RuleDocument, RulesDocument,
    RunDocument, RunInput, RunSpanDocument, RunTimelineDocument, RunsDocument, SavedDocument,
    SearchDocument, SegmentItemsDocument, SessionDocument, SessionsDocument, SkillDocument,
    SkillFileDocument, SkillsDocument, SnippetDocument, ToolCallDocument, UsageDocument,
    UsageGroupDocument, UsageSumDocument, WaitingCallDocument, WhatIfDocument, WordHitsDocument,
};
pub use item_kind::ItemKind;
pub use problem::ProblemDocument;
pub use time::{format_timestamp, parse_length_of_time, parse_time};
