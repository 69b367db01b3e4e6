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
pub use count::{Counters, count, follows};
pub use filter::{Attributes, attributes, check_list, lists, matches, title_contains};
pub use judge::{Found, judge, proposed};
pub use land::{BranchFacts, Landing, land};
pub use merge::{Merged, merge};
pub use page::{Extent, extent};
pub use query::{Condition, Query};
pub use rank::{Candidate, Ranking, check_search};
pub use replay::{Stored, replay};
pub use response::first_passed;
pub use root_record::{RootRecord, decode_root, encode_root};
pub use said::{SAID_BYTES, said};
pub use snippet::snippet;
pub use stream::{
    check_chunks, check_claim, check_finish, check_running, chunk_range, end_stream, known_chunks,
    land_chunks,
};
pub use terms::{Purpose, Shape, TERM_BYTES, TERMS_VERSION, Term, index_terms, terms};
