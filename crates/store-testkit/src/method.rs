//! The methods of the contract, by name: a list of which a test of this crate knows that it is
//! whole, so that what goes through it misses no method.

/// A method of [`Store`](contexture_store::Store), its parts and capabilities that reaches the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// `create_conversation`
    CreateConversation,
    /// `conversation`
    Conversation,
    /// `conversations`
    Conversations,
    /// `update_conversation`
    UpdateConversation,
    /// `delete_conversation`
    DeleteConversation,
    /// `append`
    Append,
    /// `read`
    Read,
    /// `nodes`
    Nodes,
    /// `state`
    State,
    /// `refs`
    Refs,
    /// `change_ref`
    ChangeRef,
    /// `put_blob`
    PutBlob,
    /// `blob`
    Blob,
    /// `response`
    Response,
    /// `redact`
    Redact,
    /// `erase`
    Erase,
    /// `events`
    Events,
    /// `entry`
    Entry,
    /// `entries`
    Entries,
    /// `put_entry`
    PutEntry,
    /// `Search::find`, of a store that has it.
    Find,
    /// `PathIndex::find_paths`, of a store that has it.
    FindPaths,
    /// `PathIndex::put_paths`, of a store that has it.
    PutPaths,
    /// `Streams::open_stream`, of a store that has it.
    OpenStream,
    /// `Streams::append_chunks`, of a store that has it.
    AppendChunks,
    /// `Streams::finish_stream`, of a store that has it.
    FinishStream,
    /// `Streams::cancel_stream`, of a store that has it.
    CancelStream,
    /// `Streams::read_chunks`, of a store that has it.
    ReadChunks,
    /// `Streams::list_streams`, of a store that has it.
    ListStreams,
    /// `Streams::delete_stream`, of a store that has it.
    DeleteStream,
    /// `Maintenance::verify_page`, of a store that has it.
    VerifyPage,
    /// `Maintenance::verify_medium`, of a store that has it.
    VerifyMedium,
    /// `Maintenance::statistics`, of a store that has it.
    Statistics,
    /// `Maintenance::collect`, of a store that has it.
    Collect,
    /// `Maintenance::compact`, of a store that has it.
    Compact,
    /// `Maintenance::back_up`, of a store that has it.
    BackUp,
}

impl Method {
    /// All of them.
    pub const ALL: [Self; 36] = [
        Self::CreateConversation,
        Self::Conversation,
        Self::Conversations,
        Self::UpdateConversation,
        Self::DeleteConversation,
        Self::Append,
        Self::Read,
        Self::Nodes,
        Self::State,
        Self::Refs,
        Self::ChangeRef,
        Self::PutBlob,
        Self::Blob,
        Self::Response,
        Self::Redact,
        Self::Erase,
        Self::Events,
        Self::Entry,
        Self::Entries,
        Self::PutEntry,
        Self::Find,
        Self::FindPaths,
        Self::PutPaths,
        Self::OpenStream,
        Self::AppendChunks,
        Self::FinishStream,
        Self::CancelStream,
        Self::ReadChunks,
        Self::ListStreams,
        Self::DeleteStream,
        Self::VerifyPage,
        Self::VerifyMedium,
        Self::Statistics,
        Self::Collect,
        Self::Compact,
        Self::BackUp,
    ];

    /// Its name in the trait.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CreateConversation => "create_conversation",
            Self::Conversation => "conversation",
            Self::Conversations => "conversations",
            Self::UpdateConversation => "update_conversation",
            Self::DeleteConversation => "delete_conversation",
            Self::Append => "append",
            Self::Read => "read",
            Self::Nodes => "nodes",
            Self::State => "state",
            Self::Refs => "refs",
            Self::ChangeRef => "change_ref",
            Self::PutBlob => "put_blob",
            Self::Blob => "blob",
            Self::Response => "response",
            Self::Redact => "redact",
            Self::Erase => "erase",
            Self::Events => "events",
            Self::Entry => "entry",
            Self::Entries => "entries",
            Self::PutEntry => "put_entry",
            Self::Find => "find",
            Self::FindPaths => "find_paths",
            Self::PutPaths => "put_paths",
            Self::OpenStream => "open_stream",
            Self::AppendChunks => "append_chunks",
            Self::FinishStream => "finish_stream",
            Self::CancelStream => "cancel_stream",
            Self::ReadChunks => "read_chunks",
            Self::ListStreams => "list_streams",
            Self::DeleteStream => "delete_stream",
            Self::VerifyPage => "verify_page",
            Self::VerifyMedium => "verify_medium",
            Self::Statistics => "statistics",
            Self::Collect => "collect",
            Self::Compact => "compact",
            Self::BackUp => "back_up",
        }
    }

    /// Whether it changes anything.
    #[must_use]
    pub const fn writes(self) -> bool {
        matches!(
            self,
            Self::CreateConversation
                | Self::UpdateConversation
                | Self::DeleteConversation
                | Self::Append
                | Self::ChangeRef
                | Self::PutBlob
                | Self::Redact
                | Self::Erase
                | Self::PutEntry
                | Self::PutPaths
                | Self::OpenStream
                | Self::AppendChunks
                | Self::FinishStream
                | Self::CancelStream
                | Self::DeleteStream
                | Self::Collect
        )
    }

    /// Whether it belongs to [`PathIndex`](contexture_store::PathIndex), which a store may not have.
    #[must_use]
    pub const fn is_of_paths(self) -> bool {
        matches!(self, Self::FindPaths | Self::PutPaths)
    }

    /// Whether it belongs to [`Streams`](contexture_store::Streams), which a store may not have.
    #[must_use]
    pub const fn is_of_streams(self) -> bool {
        matches!(
            self,
            Self::OpenStream
                | Self::AppendChunks
                | Self::FinishStream
                | Self::CancelStream
                | Self::ReadChunks
                | Self::ListStreams
                | Self::DeleteStream
        )
    }

    /// Whether it belongs to [`Maintenance`](contexture_store::Maintenance), which a store may not
    /// have.
    #[must_use]
    pub const fn is_of_maintenance(self) -> bool {
        matches!(
            self,
            Self::VerifyPage
                | Self::VerifyMedium
                | Self::Statistics
                | Self::Collect
                | Self::Compact
                | Self::BackUp
        )
    }
}
