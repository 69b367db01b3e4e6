//! The ledger: an entry per call with its conversation, a sum there, and a sum per day of the owner.
//!
//! An entry and its conversation's sum are stored with the answer, in one append; the day's sum is added to after that, and
//! outlives the conversations. Entries are key-value pairs of the store: `writer` adds them, `queries` reads them back.
//!
//! Not here: what a call costs (`state::cost_accounts`), the answer (`capture::store_answer`).

mod queries;
pub(super) mod writer;

pub(crate) use queries::{load_conversation_ledger, load_owner_ledger};

/// The prefix of an entry's key in its conversation's scope; time and response id follow, so keys sort by time.
const ENTRY_PREFIX: &str = "ledger/call/";
/// The key of a conversation's sum.
const SUM_KEY: &str = "ledger/sum";
/// The prefix of the keys of an owner's days.
const DAY_PREFIX: &str = "ledger/day/";
