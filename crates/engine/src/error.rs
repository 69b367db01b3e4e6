//! Errors of the engine, with a stable word for each and whether a retry can help.

use contexture_ir::{CodecError, FragmentError};
use contexture_wire::{Format, WireError};

/// Why an engine's operation failed. Nothing was stored unless the variant says otherwise.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum EngineError {
    /// The store refused or failed.
    #[error(transparent)]
    Store(#[from] contexture_store::Error),
    /// A name or id breaks its rule.
    #[error(transparent)]
    Name(#[from] contexture_ir::Error),
    /// A layer that must not fail did, or there is no such layer.
    #[error(transparent)]
    Layers(#[from] contexture_layers::LayersError),
    /// A layer's state cannot be had or kept.
    #[error(transparent)]
    LayerState(#[from] contexture_layers::LayerError),
    /// A layer's function gave no result.
    #[error(transparent)]
    Function(#[from] contexture_layers::FunctionError),
    /// There is no such item on the path, or its reader may not see it.
    #[error("{link} is not on this path")]
    NoLink {
        /// Link that was asked for.
        link: contexture_compile::Link,
    },
    /// What the link named was removed for good; only its place is left.
    #[error("what {link} named was removed")]
    Evicted {
        /// Link that was asked for.
        link: contexture_compile::Link,
    },
    /// The path has no standing rule of this name.
    #[error("this branch has no standing rule `{id}`: list its rules for their names")]
    UnknownRule {
        /// The name that was asked for.
        id: String,
    },
    /// So many rules are dropped that no more can be.
    #[error(
        "{most} standing rules are dropped on this branch already, the most there may be: restore some first"
    )]
    TooManyDroppedRules {
        /// Most that can be dropped.
        most: usize,
    },
    /// Somebody else works on the branch.
    #[error(
        "branch {branch} is being worked on by process {by} since {since_ms} ms: wait for it, or work on another branch"
    )]
    BranchBusy {
        /// Name of the branch.
        branch: contexture_ir::BranchName,
        /// Process that holds it.
        by: contexture_ir::ProcessId,
        /// Time of its claim, in milliseconds since the Unix epoch.
        since_ms: i64,
        /// Time after which the process counts as dead if it gives no sign of life until then, at most 10 s; `None` for
        /// this process itself.
        dead_in: Option<std::time::Duration>,
    },
    /// The store has no search.
    #[error("cannot search: this store has no search")]
    CannotSearch,
    /// A fragment that carries data was given where a message belongs.
    #[error("fragment `{name}` carries data, not a message: use `set` for it")]
    NotAMessage {
        /// The fragment's name.
        name: String,
    },
    /// A fragment that carries a message was given where data belongs.
    #[error("fragment `{name}` carries a message: push it to a draft")]
    NotData {
        /// The fragment's name.
        name: String,
    },
    /// A fragment or its data cannot be stored or read back.
    #[error(transparent)]
    Fragment(#[from] FragmentError),
    /// An application's message could not be encoded.
    #[error("message fragment `{name}`")]
    Codec {
        /// The fragment's name.
        name: String,
        /// What its codec said.
        #[source]
        source: CodecError,
    },
    /// Two staged messages of different roles have one id.
    #[error("message {message:?} is staged as {} and as {}: give one of them another id", .role.as_str(), .other.as_str())]
    OtherRole {
        /// Id of both messages.
        message: String,
        /// Role of the first.
        role: contexture_ir::UiRole,
        /// Role of the one that was staged later.
        other: contexture_ir::UiRole,
    },
    /// An item's id is known with other content, and an item never changes.
    #[error("item {item:?} is known with other content: give it an id of its own")]
    ItemConflict {
        /// Id of both items.
        item: String,
    },
    /// The metadata entry `usage` is the application's own: sums of usage would overwrite it.
    #[error("metadata `usage` is {found}, not sums of usage: keep it under another name")]
    NotUsage {
        /// Beginning of what is there.
        found: String,
    },
    /// A draft has more items than one transaction takes. Found before layers are asked and before anything is stored.
    #[error("a draft of {items} items: one commit stores at most {limit}, so commit it in parts")]
    DraftTooLong {
        /// Number of items to store.
        items: usize,
        /// The store's limit.
        limit: usize,
    },
    /// Messages that are not valid, or an answer that is not of its format.
    #[error(transparent)]
    Wire(#[from] WireError),
    /// A stored item cannot be read; it was stored by something else or a newer version.
    #[error("stored item {node}")]
    StoredItem {
        /// Node that holds the item.
        node: contexture_ir::NodeId,
        /// What is wrong with it.
        #[source]
        source: contexture_ir::Error,
    },
    /// A stored state entry cannot be read.
    #[error("stored state {key}: {reason}")]
    StoredState {
        /// Key of the state entry.
        key: String,
        /// What is wrong with it.
        reason: String,
    },
    /// There is nothing to do it to.
    #[error("cannot {operation}: branch {branch} is empty")]
    EmptyBranch {
        /// Operation that needs a head.
        operation: &'static str,
        /// Branch that has no nodes.
        branch: contexture_ir::BranchName,
    },
    /// A session cannot be read or written.
    #[error(transparent)]
    Session(#[from] contexture_sessions::SessionError),
    /// A session whose tree refers to a node that it does not have.
    #[error("session {source_id:?}: there is no node {index}")]
    BrokenSession {
        /// Id of the session in its source.
        source_id: String,
        /// The node's index.
        index: usize,
    },
    /// A conversation that was not imported has no session of another format.
    #[error("conversation {conversation} was not imported: export it in a wire format")]
    NotImported {
        /// Conversation that was not imported.
        conversation: contexture_ir::ConversationId,
    },
    /// An imported conversation exists and differs.
    #[error("conversation {conversation} already exists")]
    ConversationExists {
        /// Conversation that has this id already.
        conversation: contexture_ir::ConversationId,
    },
    /// A conversation exists and is not about the resource that was named: a resource never changes.
    #[error("conversation {conversation} is about {}, which never changes", describe_resource(.resource.as_deref()))]
    OtherResource {
        /// Conversation about the other resource.
        conversation: contexture_ir::ConversationId,
        /// What it is about, if anything.
        resource: Option<String>,
    },
    /// Fragments that cannot be rendered.
    #[error(transparent)]
    Render(#[from] contexture_render::RenderError),
    /// The place of copies of outputs failed.
    #[error(transparent)]
    Offload(#[from] contexture_offload::OffloadError),
    /// The model is not in the catalogue.
    #[error(transparent)]
    Catalogue(#[from] contexture_catalogue::CatalogueError),
    /// A call names no target that is registered, or none and there is no default.
    #[error("no target{}: {}", quote_name(.name.as_deref()), list_target_names(.available))]
    NoTarget {
        /// The name; `None`: the default's.
        name: Option<String>,
        /// The names that are registered.
        available: Vec<String>,
    },
    /// The guardrails set aside cannot be said.
    #[error(transparent)]
    Guardrails(#[from] contexture_compile::GuardrailError),
    /// The compiler refused.
    #[error(transparent)]
    Refused(#[from] contexture_compile::Refusal),
    /// No part of the history can be stood for by something shorter.
    #[error("nothing to compact: {reason}")]
    NothingToCompact {
        /// Reason in plain words.
        reason: &'static str,
    },
    /// The span cuts through what a compaction in effect stands for.
    #[error(
        "{first} to {last} overlaps what compaction {compaction} stands for: take all of it or none"
    )]
    CoverOverlap {
        /// The first node of the span.
        first: contexture_ir::NodeId,
        /// Last node of the requested span.
        last: contexture_ir::NodeId,
        /// The compaction in the way.
        compaction: contexture_ir::NodeId,
    },
    /// The node stands for nothing on this branch.
    #[error("{compaction} is no compaction in effect on this branch")]
    NotInEffect {
        /// Node of the compaction.
        compaction: contexture_ir::NodeId,
    },
    /// A past call cannot be compiled again.
    #[error("cannot replay {response}")]
    Unreplayable {
        /// Answer of the call that was to be replayed.
        response: contexture_ir::ResponseId,
        /// Reason why its inputs are missing.
        #[source]
        reason: Unreplayable,
    },
    /// The answer has no place in this format.
    #[error("cannot record an answer in {format}: expected a provider's response body")]
    NotAResponse {
        /// Format of the call.
        format: Format,
    },
}

impl EngineError {
    /// A short stable word for programs.
    #[must_use]
    pub fn kind(&self) -> &'static str {
        match self {
            Self::Store(error) => error.kind(),
            Self::Name(_) => "bad_name",
            Self::Layers(_) | Self::LayerState(_) => "layer",
            Self::Function(_) => "function",
            Self::NoLink { .. } | Self::UnknownRule { .. } => "not_found",
            Self::Evicted { .. } => "evicted",
            Self::BranchBusy { .. } => "branch_busy",
            Self::CannotSearch => "cannot_search",
            Self::NotAMessage { .. } => "not_a_message",
            Self::NotData { .. } => "not_data",
            Self::Fragment(_) => "bad_fragment",
            Self::Codec { .. } => "codec",
            Self::OtherRole { .. } => "other_role",
            Self::ItemConflict { .. } => "item_conflict",
            Self::NotUsage { .. } => "not_usage",
            Self::DraftTooLong { .. } | Self::TooManyDroppedRules { .. } => "limit",
            Self::Wire(_) => "bad_document",
            Self::StoredItem { .. } | Self::StoredState { .. } => "damaged",
            Self::EmptyBranch { .. } => "empty_branch",
            Self::Session(_) | Self::BrokenSession { .. } => "bad_session",
            Self::NotImported { .. } => "not_imported",
            Self::ConversationExists { .. } => "already_exists",
            Self::OtherResource { .. } => "other_resource",
            Self::Render(_) => "cannot_render",
            Self::Offload(error) => error.kind(),
            Self::Catalogue(_) => "unknown_model",
            Self::Guardrails(_) => "bad_guardrails",
            Self::Refused(refusal) => refusal.kind(),
            Self::NothingToCompact { .. } => "nothing_to_compact",
            Self::CoverOverlap { .. } => "cover_overlap",
            Self::NotInEffect { .. } => "not_in_effect",
            Self::NoTarget { .. } => "no_target",
            Self::Unreplayable { .. } => "unreplayable",
            Self::NotAResponse { .. } => "not_a_response",
        }
    }

    /// Whether another changed a layer's state since it was read. Nothing is stored then; read it again and repeat what
    /// changed it.
    #[must_use]
    pub const fn is_stale_state(&self) -> bool {
        use contexture_store::{EntityKind, Error};
        match self {
            Self::Store(Error::StateConflict { .. }) => true,
            Self::Store(Error::VersionConflict { what, .. }) => matches!(what, EntityKind::Entry),
            _ => false,
        }
    }

    /// Whether this process failed, whatever it was asked: a damaged file, a full disk, a layer.
    #[must_use]
    pub const fn is_fault(&self) -> bool {
        use contexture_store::Error;
        matches!(
            self,
            Self::Store(
                Error::Storage { .. }
                    | Error::Unavailable { .. }
                    | Error::Damaged { .. }
                    | Error::Newer { .. }
                    | Error::Older { .. }
            ) | Self::StoredItem { .. }
                | Self::StoredState { .. }
                | Self::Layers(_)
                | Self::LayerState(_)
                | Self::Offload(_)
        )
    }

    /// Whether the same call, unchanged, may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Store(error) => error.is_retryable(),
            Self::Offload(error) => error.is_retryable(),
            Self::BranchBusy { .. } => true,
            Self::Name(_)
            | Self::Layers(_)
            | Self::LayerState(_)
            | Self::Function(_)
            | Self::NoLink { .. }
            | Self::Evicted { .. }
            | Self::CannotSearch
            | Self::UnknownRule { .. }
            | Self::TooManyDroppedRules { .. }
            | Self::NotAMessage { .. }
            | Self::NotData { .. }
            | Self::Fragment(_)
            | Self::Codec { .. }
            | Self::OtherRole { .. }
            | Self::ItemConflict { .. }
            | Self::NotUsage { .. }
            | Self::DraftTooLong { .. }
            | Self::Wire(_)
            | Self::StoredItem { .. }
            | Self::StoredState { .. }
            | Self::EmptyBranch { .. }
            | Self::Session(_)
            | Self::BrokenSession { .. }
            | Self::NotImported { .. }
            | Self::ConversationExists { .. }
            | Self::OtherResource { .. }
            | Self::Render(_)
            | Self::Catalogue(_)
            | Self::Guardrails(_)
            | Self::Refused(_)
            | Self::NothingToCompact { .. }
            | Self::CoverOverlap { .. }
            | Self::NotInEffect { .. }
            | Self::NoTarget { .. }
            | Self::Unreplayable { .. }
            | Self::NotAResponse { .. } => false,
        }
    }
}

fn quote_name(name: Option<&str>) -> String {
    name.map(|name| format!(" {name:?}")).unwrap_or_default()
}

fn describe_resource(resource: Option<&str>) -> String {
    resource.map_or_else(|| "no resource".to_owned(), |name| format!("{name:?}"))
}

fn list_target_names(names: &[String]) -> String {
    match names {
        [] => "none is registered".to_owned(),
        names => format!("registered are {}", names.join(", ")),
    }
}

/// Why a past call cannot be compiled again.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Unreplayable {
    /// What it was compiled from was not kept, or only its hashes.
    #[error("what it was compiled from was not kept: record with level `inputs`")]
    NotRecorded,
    /// The client's request was passed on as it came.
    #[error("it was passed on as it came: nothing was compiled")]
    PassedThrough,
    /// Something that went into it was redacted.
    #[error("something that went into it was redacted")]
    Redacted,
    /// It was kept by a newer version.
    #[error("it was kept in version {version}, which this program does not know")]
    Newer {
        /// Version of the record.
        version: u32,
    },
    /// What was kept cannot be read.
    #[error("what was kept of it cannot be read: {reason}")]
    Unreadable {
        /// What is wrong with it.
        reason: String,
    },
}
