//! Search rules: which texts a node is found by, what a query means, how matches are ranked.
//!
//! Backends differ in the index they have (FTS5, GIN, a plain list), so an index only *proposes*
//! nodes; these rules decide. Every backend therefore finds the same nodes in the same order.
//!
//! The steps of a search, each a file:
//!
//! 0. `typed` reads what a person typed: filters and exclusions.
//! 1. `searchable_text` is the text of an item that counts, `contexture_text::search_terms` cuts it into index terms. Both
//!    are versioned by [`TERMS_VERSION`]: a backend indexes again when the version changes.
//! 2. `query` parses the request's text into phrases and gives [`IndexCondition`]s, a superset of
//!    what matches, in the index's vocabulary.
//! 3. `rank` takes the proposed nodes one by one as [`SearchCandidate`]s, newest first, asks
//!    `match_text` whether and where they match, weighs rare terms by `idf`, lets `neighbours` add to
//!    each other's scores, puts a newer statement before what it `replaced`, and cuts the page.
//! 4. `snippet` cuts the excerpt that a hit shows.
//!
//! What is not here: SQL, the index itself, and the order in which a backend proposes.

mod dates;
mod idf;
mod match_text;
mod neighbours;
mod query;
mod rank;
mod replaced;
mod searchable_text;
mod slots;
mod snippet;
mod typed;

pub use contexture_text::search_terms::{
    Purpose, TERM_BYTES, TERMS_VERSION, Term, TermShape, index_terms, is_function_word, stem_word,
    visit_terms,
};
pub(crate) use match_text::phrases_with_all_terms;
pub use match_text::{TextMatch, match_all};
pub use neighbours::NodePlace;
pub use query::{ConditionExtent, IndexCondition, Query};
pub use rank::{Ranking, SearchCandidate, check_search};
pub use searchable_text::{MAX_SEARCHED_BYTES, searchable_text};
pub use typed::{split_pieces, typed_request};
