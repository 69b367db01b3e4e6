//! The decisions that every backend must take alike.
//!
//! A backend gathers facts inside its transaction, passes them to these functions, and writes the
//! result. Everything here is pure, so a backend may gather its facts in any number of queries.

mod append_target;
mod automatic_name;
mod calls;
mod check;
mod columns;
mod counters;
mod detect_replay;
mod filter;
mod list_index;
mod merge_state;
mod path_range;
mod root_record;
mod search;
mod streams;

pub use append_target::{AppendTarget, BranchFacts, append_target, check_claim_over, check_head};
pub use automatic_name::automatic_name;
pub(crate) use calls::matches_call;
pub use calls::{
    CallKey, CallTotals, MAX_CALL_FIGURE, SUM_COLUMNS, call_figure, call_money, call_name,
    call_range, call_tokens, check_calls, check_sum_calls, check_sum_conversations, decode_details,
    encode_details, hour_range, page_range, sum_columns, sum_from_halves,
};
pub use check::{
    check_append, check_blob, check_delete_branch, check_new_checkpoint, check_new_conversation,
    check_path_hashes, check_prefix, check_put_entry, check_redact, check_update, check_version,
    merge_metadata, select_by_prefix,
};
pub use columns::{
    EventColumns, scope_columns, scope_from_columns, stream_end_columns, stream_end_from_columns,
};
pub use counters::{Counters, can_follow, counters_after_each};
pub use detect_replay::{StoredItem, detect_replay};
pub(crate) use filter::is_listed_by;
pub use filter::{Attributes, check_list, filter_attributes, matches_filter, title_contains};
pub use list_index::{IndexedCondition, MAX_PROPOSED, TitleTerm, indexed_conditions, title_terms};
pub use merge_state::{Merged, merge_patch};
pub use path_range::{DepthRange, PageBytes, depth_range, first_on_path, reads_many_nodes};
pub use root_record::{RootRecord, decode_root, encode_root};
pub(crate) use search::phrases_with_all_terms;
pub use search::{
    ConditionExtent, IndexCondition, MAX_SEARCHED_BYTES, NodePlace, Purpose, Query, Ranking,
    SearchCandidate, TERM_BYTES, TERMS_VERSION, Term, TermShape, TextMatch, check_search,
    index_terms, is_function_word, match_all, searchable_text, split_pieces, stem_word,
    typed_request, visit_terms,
};
pub use streams::{
    StreamReplacement, cancel_record, check_chunk_append, check_chunks, check_claim, check_finish,
    chunk_range, complete_record, finish_record, plan_opening, stored_chunk_range,
};
