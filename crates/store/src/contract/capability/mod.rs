//! What a backend may lack: each a trait of its own, which [`Store`](crate::Store) gives where it is there.
//!
//! Not here: what every backend has.

mod call;
mod maintenance;
mod path_index;
mod process;
mod search;
mod stream;

pub use call::{
    CALL_HOUR_MS, CacheTokens, CallDetails, CallFilter, CallGroup, CallGrouping, CallNames,
    CallOrder, CallOutcome, CallPage, CallPrediction, CallRecord, CallSum, CallTokens, Calls,
    ConversationCalls, ListCalls, SumCalls, SweepCalls, SweptCalls,
};
pub use maintenance::{
    BackedUp, CollectRequest, Collected, Compacted, Maintenance, OwnerSize, Statistics,
    StorageAmount, VerifyCursor, VerifyPage, verify_conversation,
};
pub use path_index::{PathIndex, PathMark, PathMatch, PathQuery};
pub use process::{ExchangeChange, ExchangeMark, PendingExchange, ProcessBeat, Processes};
pub use search::{
    HiddenContent, Hit, IndexProgress, MatchMode, ReplacingStatement, Search, SearchCoverage,
    SearchCursor, SearchLimits, SearchPage, SearchRequest, SearchScope, Snippet,
};
pub use stream::{
    AppendChunks, ChunkPage, FinishStream, ReadChunks, StreamClaim, StreamCursor, StreamEnd,
    StreamEpoch, StreamLimits, StreamOpened, StreamRecord, Streams,
};
