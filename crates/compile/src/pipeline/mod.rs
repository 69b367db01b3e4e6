//! The passes in their order, from a [`CompileInput`](crate::CompileInput) to a [`Compiled`](crate::Compiled) request.
//!
//! 1. The history is prepared: selected, covered, cleared, previewed, repaired, lowered, weighed (`history`).
//! 2. Contributions are placed and their weight is known (`contributions`).
//! 3. The limit is divided (`fit`, `budget`); the history may first have to be rewritten (`rewrite`), which starts a second
//!    attempt.
//! 4. The payload is assembled, marked and verified (`attempt`, `payload`), and the report drawn up (`explain`) from what was
//!    decided (`outcome`).
//!
//! `compile` is the loop over attempts; `scratch` keeps work from one compile to the next and decides nothing: with an empty
//! one the same bytes come out.
//!
//! Everything below is called from here and calls nothing of it. Between passes a compile can be called off.
//!
//! Not here: filling a request from the catalogue (`compiler`).

mod attempt;
mod compile;
mod explain;
mod fit;
mod outcome;
mod scratch;

pub use compile::{Compiled, compile};
pub use scratch::Scratch;
