//! Strategies: what is done about a history that has grown too large, as values that chain.

use super::background::BackgroundSummary;

/// One way to replace old history. [`PrepareOptions::strategies`](crate::PrepareOptions::strategies) are tried in their order
/// until one makes room.
///
/// ```
/// use std::sync::Arc;
///
/// use contexture_engine::{BackgroundSummary, PrepareOptions, Strategy};
/// # use contexture_models::ScriptedModel;
/// # let model = Arc::new(ScriptedModel::new([]));
///
/// let options = PrepareOptions {
///     // A summary where one is ready, else the manifest alone; where that gains too little, only the last round stays.
///     strategies: vec![
///         Strategy::Summary(BackgroundSummary::by_own_model(model)),
///         Strategy::Manifest,
///         Strategy::Reset,
///     ],
///     ..PrepareOptions::default()
/// };
/// # assert_eq!(options.strategies.len(), 3);
/// ```
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Strategy {
    /// A manifest stands for the older part of the history, behind the summary of
    /// [`CompactOptions::compactor`](crate::CompactOptions::compactor) if that writes one; the call waits for it.
    Manifest,
    /// The same with a summary that was written in the background. The call waits for nothing: where no summary is ready, the
    /// next strategy is tried, and the report says why.
    Summary(BackgroundSummary),
    /// The provider shortens the history itself, as the request asks it to
    /// ([`NativeCompaction`](contexture_compile::compaction::NativeCompaction)). Nothing is made of ours as long as the request
    /// fits; where it does not, the next strategy is tried.
    Provider,
    /// A manifest stands for everything but the opening and the last round.
    Reset,
}
