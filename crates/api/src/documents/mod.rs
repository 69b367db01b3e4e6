//! One file per resource of the API: the documents that show it, and how each is made from the library's type.

mod branch;
mod calls;
mod compaction;
mod compile;
mod conversation;
mod delta;
mod event;
mod excerpt;
mod log;
mod node;
mod note;
mod request;
mod rule;
mod run;
mod search;
mod session;
mod settings;
mod skill;
mod text;

pub use branch::{BranchDocument, BranchesDocument, CheckpointDocument, CheckpointsDocument};
pub(crate) use calls::dollars;
pub use calls::{
    BandPartDocument, CacheUseDocument, CallAnswerDocument, CallBandDocument, CallDocument,
    CallItemsDocument, CallPredictionDocument, CallReportDocument, CallRequestDocument,
    CallTokensDocument, CallsDocument, DiffDocument, DiffSideDocument, DifferenceDocument,
    FirstDifferenceDocument, LedgerDayDocument, LedgerDocument, LedgerEntryDocument,
    LedgerSumDocument, PrefixBreakDocument, RequestView, UsageDocument, UsageGroupDocument,
    UsageSumDocument,
};
pub use compaction::{CompactionDocument, CoverDocument, CoversDocument};
pub use compile::{
    AnsweredBy, AnsweredCallDocument, CheckDocument, CheckedDocument, CompileDocument,
    CompiledDocument, ExplainedDocument, ExplainedItemDocument, ExplainedTextDocument,
    HandleDocument, HandledDocument, IngestDocument, IngestedDocument, PolicyChoice,
    RecordDocument, RecordedDocument, SegmentItemsDocument, ToolCallDocument, WhatIfDocument,
};
pub use conversation::{ConversationDocument, ConversationOverviewDocument, ConversationsDocument};
pub use delta::DeltaDocument;
pub use event::{EventDocument, EventsDocument};
pub use excerpt::{ExcerptDocument, FoundDocument, LineDocument};
pub use log::{LogDocument, LogEntryDocument};
pub use node::{
    AppendDocument, MessagesDocument, NodeDocument, NodesDocument, PinDocument, PinsDocument,
    SavedDocument,
};
pub use note::{
    EarlierValueDocument, ExpiryDocument, NoteDocument, NoteDoneDocument, NoteEditDocument,
    NoteLifetime, NotesDocument,
};
pub use request::{AnswerDocument, RequestDocument};
pub use rule::{RuleDocument, RulesDocument};
pub use run::{
    DecidedDocument, QueueRunDocument, RunDocument, RunInput, RunSpanDocument, RunTimelineDocument,
    RunsDocument, WaitingCallDocument,
};
pub use search::{
    HitDocument, IndexProgressDocument, NearbyDocument, NearbyItemDocument, ReplacedDocument,
    SearchDocument, SnippetDocument, WordHitsDocument,
};
pub use session::{DivergenceDocument, SessionDocument, SessionsDocument};
pub use settings::{
    ModelDocument, ModelsDocument, OwnerDocument, OwnersDocument, PoliciesDocument, PolicyDocument,
    PolicyRouteDocument,
};
pub use skill::{SkillDocument, SkillFileDocument, SkillsDocument};
pub use text::{
    ConvertedDocument, CountDocument, CountsDocument, LossDocument, RenderedDocument,
    RepairDocument,
};
