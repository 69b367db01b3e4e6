//! What runs of agents stand on, each piece by itself.
//!
//! * [`Spent`] counts what was used; a [`Budget`] limits it; [`Until`] says when a loop stops.
//! * An [`Abort`] cancels a run and all below it; [`Retry`] tries again what failed in passing.
//!
//! Not here: the history of a run, and asking models (`contexture-engine`, `contexture-llm`).

mod budget;
mod cancel;
mod money;
mod panics;
mod retry;
mod until;
mod usage;

pub use budget::{Amount, Budget, Exceeded, Limited};
pub use cancel::{Abort, Cancelled};
pub use money::{BadMoney, Money};
pub use retry::{Backoff, Retry, Retryable};
pub use until::{Cause, Snapshot, Stop, Until};
pub use usage::{Spent, Tokens};
