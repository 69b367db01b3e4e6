//! What a call will read from a cache and write to it.
//!
//! `prediction` looks one call ahead and assumes that nothing is forgotten in between; `simulator` replays a series of
//! calls with their times, forgets what is too old, and counts look-back as the provider does.
//!
//! Not here: prices (`cost`), and where markers go (`markers`).

mod prediction;
mod simulator;

pub use prediction::predict_usage;
pub use simulator::{CacheSimulator, TracedCall, simulate_calls, simulate_windowed_calls};
