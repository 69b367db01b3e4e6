//! What input costs with a cache, and whether rewriting a cached history pays.
//!
//! * `usage` splits the input tokens of a call by the price that is paid for them (read, written for the usual time, written
//!   for the longer time, neither) and multiplies them by the rates of the model; with the price of the
//!   answer for calls of our own.
//! * `rewrite_value` compares two histories over the calls to come: the one that is cached, and a shorter one that has to be
//!   written first.
//!
//! Amounts are whole pico-dollars (10⁻¹² dollars) in 128 bits: sums are exact, and equal on every machine.
//!
//! Where a price is not known, nothing is decided for the sake of money: no rates, no rewriting. Where only the price of
//! reading is not known, reading is taken to cost what input costs.
//!
//! The cost of an answer is no part of the others, as it is the same with every cache; nor is the cost of a summary that a
//! model writes, which its caller adds.
//!
//! Not here: which tokens are read or written, which is `predict`'s to say; prices, which are the catalogue's.

mod rewrite_value;
mod usage;

pub use rewrite_value::{
    CacheState, CallTokens, Rewrite, RewriteValue, invalidated_tokens, rewrite_value,
};
pub use usage::{CacheUsage, Question, Rates};
