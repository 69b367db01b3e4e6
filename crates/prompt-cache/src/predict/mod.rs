//! What a call will read from a cache and write to it.
//!
//! * `prediction` looks one call ahead: from what the call before left, without a clock. It holds if the next call comes before
//!   the provider forgets.
//! * `simulator` replays a series of calls with their times. It keeps every prefix that the rules say is written, forgets what
//!   is too old, and counts look-back as the provider does.
//!
//! Both take the outline of the request, the rules of the model and the markers in force, and give tokens by what is paid for
//! them. Tokens are best guesses (the middle of their bounds), as the provider bills what there is and not the high bound of a
//! budget.
//!
//! A simulated cache is sequential, never evicts for want of room and is never missed by chance. Real caches do worse, so a
//! simulation compares strategies; it does not predict a bill to the cent.
//!
//! Not here: prices (`cost`), and where markers go (`markers`).

mod prediction;
mod simulator;

pub use prediction::predict_usage;
pub use simulator::{
    CacheSimulator, TracedCall, predict_continued, simulate_calls, simulate_windowed_calls,
};
