//! What input costs with a cache, and whether rewriting a cached history pays.
//!
//! `usage` splits a request's input tokens by the price that is paid for them and multiplies by the model's rates;
//! `rewrite_value` compares two histories over the calls to come. Amounts are whole pico-dollars (10⁻¹² dollars), so sums
//! are exact and equal on every machine.
//!
//! Not here: which tokens are read or written, which is `predict`'s to say.

mod rewrite_value;
mod usage;

pub use rewrite_value::{
    CacheState, CallTokens, Rewrite, RewriteValue, invalidated_tokens, rewrite_value,
};
pub use usage::{CacheUsage, Rates};
