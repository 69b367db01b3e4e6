//! The passes in their order, from a [`CompileInput`](crate::CompileInput) to a [`Compiled`](crate::Compiled) request.
//!
//! `compile` runs them and repeats them at most once where the history has to be rewritten; `outcome` is what they decided,
//! `explain` makes the report of it; `scratch` keeps work from one compile to the next and decides nothing.
//!
//! Everything below is called from here and calls nothing of it.

mod attempt;
mod compile;
mod explain;
mod fit;
mod outcome;
mod scratch;

pub use compile::{Compiled, compile};
pub use scratch::Scratch;
