//! Lists that only grow at their end, and what is known of their beginnings without reading them again.
//!
//! A conversation grows by a message at a time, and each compile is about all of it. What would have to walk the whole
//! history is kept here instead and extended by what is new:
//!
//! * [`SharedList`]: a list whose older part is shared with the payloads and reports that were made of it.
//! * [`GrowingList`]: the same for a list whose last part may still change.
//! * [`RangeSums`]: sums over any range of a list, at the cost of its logarithm.
//! * [`PrefixHashes`]: hashes over ever longer beginnings of a list of hashes.
//!
//! None of them decides anything: each gives what a walk over the list would give.

mod growing_list;
mod prefix_hashes;
mod range_sums;
mod shared_list;

pub(crate) use growing_list::GrowingList;
pub(crate) use prefix_hashes::PrefixHashes;
pub(crate) use range_sums::{RangeSums, Totals};
pub(crate) use shared_list::{SharedIter, SharedList, SharedNode};
