//! The methods of the contract, by name. A test of this crate checks that the list is complete, so
//! a test over this list covers every method.

/// A method of [`Store`](contexture_store::Store), its parts and capabilities that reaches the data.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Method {
    /// `Store::check_connection`, of every store.
    CheckConnection,
    /// `Store::create_conversation`, of every store.
    CreateConversation,
    /// `Store::load_conversation`, of every store.
    LoadConversation,
    /// `Store::list_conversations`, of every store.
    ListConversations,
    /// `Store::update_conversation`, of every store.
    UpdateConversation,
    /// `Store::delete_conversation`, of every store.
    DeleteConversation,
    /// `Store::append_items`, of every store.
    AppendItems,
    /// `Store::read_path`, of every store.
    ReadPath,
    /// `Store::find_nodes`, of every store.
    FindNodes,
    /// `Store::read_state`, of every store.
    ReadState,
    /// `Store::list_refs`, of every store.
    ListRefs,
    /// `Store::change_ref`, of every store.
    ChangeRef,
    /// `Store::put_blob`, of every store.
    PutBlob,
    /// `Store::read_blob`, of every store.
    ReadBlob,
    /// `Store::load_response`, of every store.
    LoadResponse,
    /// `Store::redact_content`, of every store.
    RedactContent,
    /// `Store::erase_step`, of every store.
    EraseStep,
    /// `Store::list_events`, of every store.
    ListEvents,
    /// `KeyValues::get_entry`, of every store.
    GetEntry,
    /// `KeyValues::list_entries`, of every store.
    ListEntries,
    /// `KeyValues::put_entry`, of every store.
    PutEntry,
    /// `Search::search_nodes`, of a store that has it.
    SearchNodes,
    /// `PathIndex::find_path_hashes`, of a store that has it.
    FindPathHashes,
    /// `PathIndex::put_paths`, of a store that has it.
    PutPaths,
    /// `Processes::beat`, of a store that has it.
    Beat,
    /// `Processes::beats`, of a store that has it.
    Beats,
    /// `Processes::list_processes`, of a store that has it.
    ListProcesses,
    /// `Processes::remove_processes`, of a store that has it.
    RemoveProcesses,
    /// `Processes::change_exchange`, of a store that has it.
    ChangeExchange,
    /// `Processes::find_exchanges`, of a store that has it.
    FindExchanges,
    /// `Calls::record_calls`, of a store that has it.
    RecordCalls,
    /// `Calls::load_call`, of a store that has it.
    LoadCall,
    /// `Calls::load_call_body`, of a store that has it.
    LoadCallBody,
    /// `Calls::list_calls`, of a store that has it.
    ListCalls,
    /// `Calls::sum_calls`, of a store that has it.
    SumCalls,
    /// `Calls::sum_conversations`, of a store that has it.
    SumConversations,
    /// `Calls::list_call_owners`, of a store that has it.
    ListCallOwners,
    /// `Calls::sweep_calls`, of a store that has it.
    SweepCalls,
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
    /// `Maintenance::read_statistics`, of a store that has it.
    ReadStatistics,
    /// `Maintenance::list_owners`, of a store that has it.
    ListOwners,
    /// `Maintenance::collect_blobs`, of a store that has it.
    CollectBlobs,
    /// `Maintenance::compact_storage`, of a store that has it.
    CompactStorage,
    /// `Maintenance::back_up`, of a store that has it.
    BackUp,
}

impl Method {
    /// All methods, in the order of their variants.
    pub const ALL: [Self; 52] = [
        Self::CheckConnection,
        Self::CreateConversation,
        Self::LoadConversation,
        Self::ListConversations,
        Self::UpdateConversation,
        Self::DeleteConversation,
        Self::AppendItems,
        Self::ReadPath,
        Self::FindNodes,
        Self::ReadState,
        Self::ListRefs,
        Self::ChangeRef,
        Self::PutBlob,
        Self::ReadBlob,
        Self::LoadResponse,
        Self::RedactContent,
        Self::EraseStep,
        Self::ListEvents,
        Self::GetEntry,
        Self::ListEntries,
        Self::PutEntry,
        Self::SearchNodes,
        Self::FindPathHashes,
        Self::PutPaths,
        Self::Beat,
        Self::Beats,
        Self::ListProcesses,
        Self::RemoveProcesses,
        Self::ChangeExchange,
        Self::FindExchanges,
        Self::RecordCalls,
        Self::LoadCall,
        Self::LoadCallBody,
        Self::ListCalls,
        Self::SumCalls,
        Self::SumConversations,
        Self::ListCallOwners,
        Self::SweepCalls,
        Self::OpenStream,
        Self::AppendChunks,
        Self::FinishStream,
        Self::CancelStream,
        Self::ReadChunks,
        Self::ListStreams,
        Self::DeleteStream,
        Self::VerifyPage,
        Self::VerifyMedium,
        Self::ReadStatistics,
        Self::ListOwners,
        Self::CollectBlobs,
        Self::CompactStorage,
        Self::BackUp,
    ];

    /// Returns the name that the method has in its trait.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::CheckConnection => "check_connection",
            Self::CreateConversation => "create_conversation",
            Self::LoadConversation => "load_conversation",
            Self::ListConversations => "list_conversations",
            Self::UpdateConversation => "update_conversation",
            Self::DeleteConversation => "delete_conversation",
            Self::AppendItems => "append_items",
            Self::ReadPath => "read_path",
            Self::FindNodes => "find_nodes",
            Self::ReadState => "read_state",
            Self::ListRefs => "list_refs",
            Self::ChangeRef => "change_ref",
            Self::PutBlob => "put_blob",
            Self::ReadBlob => "read_blob",
            Self::LoadResponse => "load_response",
            Self::RedactContent => "redact_content",
            Self::EraseStep => "erase_step",
            Self::ListEvents => "list_events",
            Self::GetEntry => "get_entry",
            Self::ListEntries => "list_entries",
            Self::PutEntry => "put_entry",
            Self::SearchNodes => "search_nodes",
            Self::FindPathHashes => "find_path_hashes",
            Self::PutPaths => "put_paths",
            Self::Beat => "beat",
            Self::Beats => "beats",
            Self::ListProcesses => "list_processes",
            Self::RemoveProcesses => "remove_processes",
            Self::ChangeExchange => "change_exchange",
            Self::FindExchanges => "find_exchanges",
            Self::RecordCalls => "record_calls",
            Self::LoadCall => "load_call",
            Self::LoadCallBody => "load_call_body",
            Self::ListCalls => "list_calls",
            Self::SumCalls => "sum_calls",
            Self::SumConversations => "sum_conversations",
            Self::ListCallOwners => "list_call_owners",
            Self::SweepCalls => "sweep_calls",
            Self::OpenStream => "open_stream",
            Self::AppendChunks => "append_chunks",
            Self::FinishStream => "finish_stream",
            Self::CancelStream => "cancel_stream",
            Self::ReadChunks => "read_chunks",
            Self::ListStreams => "list_streams",
            Self::DeleteStream => "delete_stream",
            Self::VerifyPage => "verify_page",
            Self::VerifyMedium => "verify_medium",
            Self::ReadStatistics => "read_statistics",
            Self::ListOwners => "list_owners",
            Self::CollectBlobs => "collect_blobs",
            Self::CompactStorage => "compact_storage",
            Self::BackUp => "back_up",
        }
    }

    /// Returns whether the method changes what is stored.
    #[must_use]
    pub(crate) const fn is_write(self) -> bool {
        matches!(
            self,
            Self::CreateConversation
                | Self::UpdateConversation
                | Self::DeleteConversation
                | Self::AppendItems
                | Self::ChangeRef
                | Self::PutBlob
                | Self::RedactContent
                | Self::EraseStep
                | Self::PutEntry
                | Self::PutPaths
                | Self::Beat
                | Self::RemoveProcesses
                | Self::ChangeExchange
                | Self::RecordCalls
                | Self::SweepCalls
                | Self::OpenStream
                | Self::AppendChunks
                | Self::FinishStream
                | Self::CancelStream
                | Self::DeleteStream
                | Self::CollectBlobs
        )
    }

    /// Returns whether it belongs to [`PathIndex`](contexture_store::PathIndex), which is optional.
    #[must_use]
    pub(crate) const fn is_of_paths(self) -> bool {
        matches!(self, Self::FindPathHashes | Self::PutPaths)
    }

    /// Returns whether it belongs to [`Processes`](contexture_store::Processes), which is optional.
    #[must_use]
    pub(crate) const fn is_of_processes(self) -> bool {
        matches!(
            self,
            Self::Beat
                | Self::Beats
                | Self::ListProcesses
                | Self::RemoveProcesses
                | Self::ChangeExchange
                | Self::FindExchanges
        )
    }

    /// Returns whether it belongs to [`Calls`](contexture_store::Calls), which is optional.
    #[must_use]
    pub(crate) const fn is_of_calls(self) -> bool {
        matches!(
            self,
            Self::RecordCalls
                | Self::LoadCall
                | Self::LoadCallBody
                | Self::ListCalls
                | Self::SumCalls
                | Self::SumConversations
                | Self::ListCallOwners
                | Self::SweepCalls
        )
    }

    /// Returns whether it belongs to [`Streams`](contexture_store::Streams), which is optional.
    #[must_use]
    pub(crate) const fn is_of_streams(self) -> bool {
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

    /// Returns whether it belongs to [`Maintenance`](contexture_store::Maintenance), which is
    /// optional.
    #[must_use]
    pub(crate) const fn is_of_maintenance(self) -> bool {
        matches!(
            self,
            Self::VerifyPage
                | Self::VerifyMedium
                | Self::ReadStatistics
                | Self::CollectBlobs
                | Self::CompactStorage
                | Self::BackUp
        )
    }
}
