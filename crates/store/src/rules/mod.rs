//! The decisions that every backend must take alike.
//!
//! A backend gathers facts inside its transaction and asks here; then it writes what follows. All
//! of this is pure, so a backend over a network gathers its facts in one query and is still the
//! same store.

mod automatic_name;
mod check;
mod count;
mod filter;
mod judge;
mod land;
mod merge;
mod page;
mod query;
mod rank;
mod rarity;
mod replay;
mod response;
mod root_record;
mod said;
mod snippet;
mod stream;
mod terms;

pub use automatic_name::automatic_name;
pub use check::{
    check_append, check_blob, check_delete_branch, check_new_conversation, check_path_hashes,
    check_prefix, check_put_entry, check_redact, check_update, check_version, merge_metadata,
};
pub use count::{Counters, can_follow, counters_after_each};
pub use filter::{
    Attributes, check_list, filter_attributes, is_listed_by, matches_filter, title_contains,
};
pub use judge::{TextMatch, match_all, phrases_with_all_terms};
pub use land::{AppendTarget, BranchFacts, append_target};
pub use merge::{Merged, merge_patch};
pub use page::{DepthRange, depth_range};
pub use query::{IndexCondition, Query};
pub use rank::{Ranking, SearchCandidate, check_search};
pub use replay::{StoredItem, detect_replay};
pub use response::first_on_path;
pub use root_record::{RootRecord, decode_root, encode_root};
pub use said::{SAID_BYTES, searchable_text};
pub use snippet::build_snippet;
pub use stream::{
    check_chunk_append, check_chunks, check_claim, check_finish, check_running, check_stream_end,
    chunk_range, stored_chunk_range,
};
pub use terms::{Purpose, TERM_BYTES, TERMS_VERSION, Term, TermShape, index_terms, visit_terms};
