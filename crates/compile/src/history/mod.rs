//! The history as it is shown: covered, cleared, previewed, repaired, cut into rounds, weighed, trimmed.
//!
//! The order is fixed:
//! 1. `view_policy` builds the view: passes of the host (`host_pass`), compactions in the place of what they stand for
//!    (`covers`), placeholders (`clear`), thinking that may not be sent any more (`thinking`), previews (`preview`), passes
//!    of the host once more.
//! 2. `prepared` repairs and lowers it into `rounds`, and extends an earlier result where the path only grew.
//! 3. `trim` says with which round it begins, and which messages are kept of the rounds before.
//!
//! All of it follows from the path and the plan, so a call that only adds items sends what was sent before unchanged.
//!
//! Not here: whether more of it is cleared or previewed from now on (`rewrite`), and how much room it gets (`budget`).

mod clear;
mod covers;
mod host_pass;
mod prepared;
mod preview;
mod rounds;
mod sent_blocks;
mod thinking;
mod trim;
mod view_policy;

pub(crate) use clear::{HistorySize, advance_frontier};
pub use covers::{ActiveCovers, COVERS};
pub(crate) use prepared::{
    ActiveCompaction, PreparedHistory, RewrittenTotals, block_losses, split_loss_path,
};
pub(crate) use preview::output_previews;
pub(crate) use rounds::{BlockTotals, History, RequiredMessage, RoundTotals};
pub(crate) use sent_blocks::SentBlocks;
pub(crate) use thinking::LostThinking;
pub(crate) use trim::{TrimPoint, TrimmedItems};
pub(crate) use view_policy::ViewPolicy;
